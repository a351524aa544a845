// Port: what carries bursts of RoCE datagrams. The engine above knows no NIC, socket or simulator.
// Implementations: EthdevPort (pmd_glue), UringPort (here), SimPort (tests/support); one thread drives one port queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/port/path.hpp"

namespace cairn::port {

// Bytes of ICRC at the end of every datagram.
constexpr std::uint16_t kIcrcBytes = 4;
// Largest UDP payload of a RoCEv2 packet: path MTU 4096 behind the longest headers.
constexpr std::uint16_t kMaxUdpPayloadBytes = 4096 + 64;

// One datagram in a buffer of the port's pool. `data` is the first byte of the BTH, `len` the UDP
// payload (BTH ... ICRC). A received buffer may be sent again as it is: geometry is the same both ways.
struct PacketRef {
    std::uint8_t* data = nullptr;
    Path* path = nullptr;     // receive: where it came from; transmit: where it goes
    void* cookie = nullptr;   // the port's own handle of the buffer; nullptr: given away
    std::uint16_t len = 0;    // bytes, ICRC included
    std::uint16_t room = 0;   // bytes that `data` may grow to
    std::uint16_t ip_id = 0;  // receive: IPv4 ID and flags/offset as seen
    std::uint8_t ecn = 0;     // receive: the two ECN bits
    bool icrc_ok = false;     // receive: set by the port's verify pass
};

// A datagram to send. Without a `tail` all of `packet.len` is in the buffer, the last four bytes left
// for the port's ICRC. With one, the buffer holds the headers and `tail` the payload (with its pad),
// which the port reads in place (can_send_from() said so) or copies behind the headers.
struct TxPacket {
    PacketRef packet;
    std::span<const std::uint8_t> tail{};
};

// Says of packets with a tail which are meant: memory that they are sent from is to change.
class TailFilter {
public:
    // `wants` is called with packets and outlives this.
    template <class Wants>
    explicit TailFilter(const Wants& wants) noexcept
        : context_(&wants), call_([](const void* context, const TxPacket& packet) noexcept -> bool {
              return (*static_cast<const Wants*>(context))(packet);
          }) {}
    [[nodiscard]] bool operator()(const TxPacket& packet) const noexcept { return call_(context_, packet); }

private:
    const void* context_;
    bool (*call_)(const void* context, const TxPacket& packet) noexcept;
};

struct PortLimits {
    std::uint16_t max_udp_payload_bytes = 0;  // what the link's MTU leaves for BTH ... ICRC
    std::uint16_t burst = 32;                 // packets per receive or transmit that suit the port
    bool poll_only = true;                    // no descriptor to sleep on
    bool batches_equals = false;              // datagrams of one length to one peer cost little more than one
};

class Port {
public:
    Port() = default;
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;
    virtual ~Port() = default;

    // Fills `out` from the front with datagrams whose lower headers are sound and whose ICRC has been
    // judged (all verified in one pass, `icrc_ok` says how); returns how many. The caller owns the
    // buffers: it releases or transmits each. Answers ARP, ND and ICMP on the way.
    [[nodiscard]] virtual std::size_t receive_burst(std::span<PacketRef> out, Instant now) noexcept = 0;

    // When the port was last found empty before it brought what the last receive_burst() gave: that waited here no
    // longer than since then. A worker that is slower than its peers never finds it empty.
    [[nodiscard]] virtual Instant empty_at() const noexcept = 0;

    // Adds ICRC and lower headers and sends from the front; returns how many were taken (their buffers
    // are the port's again). The rest stay the caller's, as they were but that a tail may have been copied behind its
    // headers: a full ring is a value.
    // A packet for an unresolved path is taken, counted and dropped while the neighbour is asked.
    [[nodiscard]] virtual std::size_t transmit_burst(std::span<TxPacket> packets, Instant now) noexcept = 0;

    // Empty buffers with headroom for the lower headers: data, room and cookie set. Returns how many;
    // fewer than asked when the pool is empty.
    [[nodiscard]] virtual std::size_t allocate_burst(std::span<PacketRef> out) noexcept = 0;
    // Gives buffers back; entries whose cookie is nullptr are skipped.
    virtual void release_burst(std::span<PacketRef> packets) noexcept = 0;
    // Received buffers may be kept beyond the turn: what is left to receive into will do for a while.
    [[nodiscard]] virtual bool has_spare_buffers() const noexcept { return true; }

    // True when `range` may be a TxPacket::tail without a copy.
    [[nodiscard]] virtual bool can_send_from(std::span<const std::uint8_t> range) const noexcept = 0;
    // Makes memory known to the device, so that can_send_from() is true of all that lies in `range` until detach().
    // Ranges may overlap, and the same one be attached again. False: payloads from there are copied.
    [[nodiscard]] virtual bool attach(std::span<const std::uint8_t> range) { return can_send_from(range); }
    // Once for each attach() that returned true: after settle_tails(), before the memory ends or becomes other memory.
    virtual void detach(std::span<const std::uint8_t> range) noexcept { static_cast<void>(range); }

    // Packets that were taken in a turn before wait here still.
    [[nodiscard]] virtual bool holds_back() const noexcept { return false; }
    // Of all packets that wait here, copies the tails that `which` means; they stay where they are in their order.
    virtual void copy_tails(const TailFilter& which) noexcept { static_cast<void>(which); }
    // Returns when a device reads no tail any more that it was given, so that their memory may change; or when it has
    // kept one for a millisecond in vain: its link is down, and what it sends when that is up again has a wrong ICRC.
    // Needed only where a tail may still wait for a device although its message is over: one that was sent twice.
    virtual void settle_tails() noexcept {}

    // Interns the way to `key.remote` and starts resolving it. nullptr: the table is full of pinned paths,
    // or `key.remote` is not of the port's family.
    [[nodiscard]] virtual Path* open_path(const PathKey& key, Instant now) noexcept = 0;

    // The path that answers a datagram which another worker of the address received. It is known already, or a
    // stranger's, as if the datagram had come here: it goes where the datagram came from, and no neighbour is asked.
    // nullptr: strangers have no room.
    [[nodiscard]] virtual Path* path_back(const WayBack& way, Instant now) noexcept { return open_path(way.key, now); }

    // From now on receive_burst() brings datagrams to this multicast address too, their path's `local` being the group.
    // Joined once at a time. Errors: the port can not.
    virtual Status join(const net::IpAddress& group);
    virtual void leave(const net::IpAddress& group) noexcept { static_cast<void>(group); }
    // Whether what the port itself sends to a joined group comes back to it.
    [[nodiscard]] virtual bool loops_groups() const noexcept { return false; }

    // Sends what is queued, then sleeps until something arrives or `also`, a descriptor or -1, is readable, about so
    // long at most (a tick of the kernel more); for ports that are not poll_only. Others ignore it.
    virtual void wait(Duration most, int also) noexcept {
        static_cast<void>(most);
        static_cast<void>(also);
    }
    // Readable when something has arrived: for event loops, which call wait() with no time before they sleep, so that
    // what is queued leaves. -1: there is none (poll_only), or no descriptor is left.
    [[nodiscard]] virtual int descriptor() noexcept { return -1; }

    // Neighbour ageing and retries, link changes: call each loop turn or by next_deadline().
    virtual void on_timeout(Instant now) noexcept = 0;
    [[nodiscard]] virtual Instant next_deadline() const noexcept = 0;

    [[nodiscard]] virtual net::IpAddress local_address() const noexcept = 0;
    [[nodiscard]] virtual PortLimits limits() const noexcept = 0;
    // A line for the operator: driver, offloads used, what is done in software instead.
    [[nodiscard]] virtual std::string describe() const = 0;
    // What was counted, a line for each that is not zero.
    [[nodiscard]] virtual std::string counters_text() const { return {}; }
};

inline Status Port::join(const net::IpAddress& group) {
    return Error{"this port carries no multicast to " + group.text(), "use an ethernet port or a socket"};
}

}  // namespace cairn::port
