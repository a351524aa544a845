// Port: the interface that carries bursts of RoCE datagrams. The engine above knows no NIC, socket or simulator.
// Implementations: EthdevPort (pmd_glue), UringPort and FaultyPort (here), SimPort (lib/sim). One thread drives one
// port queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/mem/region.hpp"
#include "lib/port/path.hpp"
#include "lib/telemetry/counter_list.hpp"

namespace cairn::port {

// Bytes of the ICRC at the end of every datagram.
constexpr std::uint16_t kIcrcBytes = 4;
// Largest UDP payload of a RoCEv2 packet: a path MTU of 4096 after the longest headers.
constexpr std::uint16_t kMaxUdpPayloadBytes = 4096 + 64;

// One datagram in a buffer of the port's pool. `data` is the first byte of the BTH, `len` the UDP payload (BTH ...
// ICRC). A received buffer may be sent again unchanged, since both directions have the same layout.
struct PacketRef {
    std::uint8_t* data = nullptr;
    Path* path = nullptr;     // receive: the path it came by; transmit: the path it leaves by
    void* cookie = nullptr;   // the port's own handle of the buffer; nullptr: given away
    std::uint16_t len = 0;    // bytes, ICRC included
    std::uint8_t ecn = 0;     // receive: the two ECN bits
    bool icrc_ok = false;     // receive: set by the port's verify pass
    std::uint16_t room = 0;   // bytes that `data` may grow to
    std::uint16_t ip_id = 0;  // receive: IPv4 ID and flags/offset as seen
};

// A datagram to send. Without a `tail`, the buffer holds all of `packet.len`, and its last four bytes are left for the
// port's ICRC. With a `tail`, the buffer holds the headers and `tail` the payload with its pad. The port reads the tail
// in place (can_send_from() was true) or copies it after the headers. If the tail's memory has vanished, the packet is
// spoiled.
struct TxPacket {
    PacketRef packet;
    std::span<const std::uint8_t> tail{};
};

// Makes a packet with wrong contents one that each peer drops, by an opcode that does not exist.
inline void spoil(std::uint8_t* bth) noexcept {
    bth[0] = 0xff;
}

// Chooses packets whose tails lie in memory that is about to change.
class TailFilter {
public:
    // Makes a filter that calls `wants` for each packet. `wants` outlives the filter.
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
    std::uint16_t max_udp_payload_bytes = 0;  // room that the link's MTU leaves for BTH ... ICRC
    std::uint16_t burst = 32;                 // packets per receive or transmit that suit the port best
    bool poll_only = true;                    // no descriptor to sleep on
    bool batches_equals = false;              // a batch of equal datagrams to one peer costs little more than one
    mem::PageKind buffer_pages = mem::PageKind::Plain;  // the pages of its buffers
};

// A socket port's sleep that is shorter than this needs a timer of its own, which costs more than the sleep. A longer
// one ends with a tick of the kernel.
constexpr Duration kCoarseSleep = milliseconds(2);

class Port {
public:
    Port() = default;
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;
    virtual ~Port() = default;

    // Fills `out` from the front with datagrams whose lower headers are sound. Returns their number. `icrc_ok` is the
    // verdict on each ICRC. The caller owns the buffers: it releases, keeps or transmits each. Answers ARP, ND and ICMP
    // on the way.
    [[nodiscard]] virtual std::size_t receive_burst(std::span<PacketRef> out, Instant now) noexcept = 0;

    // Returns when the port was last found empty before the datagrams of the last receive_burst() arrived. So these
    // have waited here no longer than since that time. A worker that is slower than its peers never finds its port
    // empty.
    [[nodiscard]] virtual Instant empty_at() const noexcept = 0;

    // Adds ICRC and lower headers and sends from the front. Returns the number of packets taken; their buffers are the
    // port's again. The caller keeps the rest unchanged, but their tails may have been copied after the headers. A full
    // ring is a normal result, not an error. A packet for an unresolved path is taken, counted and dropped while the
    // neighbour is asked.
    [[nodiscard]] virtual std::size_t transmit_burst(std::span<TxPacket> packets, Instant now) noexcept = 0;

    // Gives empty buffers with headroom for the lower headers. Sets data, room and cookie. Returns their number; fewer
    // than asked if the pool is empty.
    [[nodiscard]] virtual std::size_t allocate_burst(std::span<PacketRef> out) noexcept = 0;
    // Gives buffers back. Skips entries whose cookie is nullptr.
    virtual void release_burst(std::span<PacketRef> packets) noexcept = 0;
    // Returns true if received buffers may be kept beyond the turn: enough others are left to receive into.
    [[nodiscard]] virtual bool has_spare_buffers() const noexcept { return true; }

    // Returns true if `range` may be a TxPacket::tail without a copy.
    [[nodiscard]] virtual bool can_send_from(std::span<const std::uint8_t> range) const noexcept = 0;
    // Makes memory known to the device, so that can_send_from() is true for all ranges within `range` until detach().
    // Ranges may overlap, and one range may be attached several times. Returns false if payloads from there are copied.
    [[nodiscard]] virtual bool attach(std::span<const std::uint8_t> range) { return can_send_from(range); }
    // Ends one attach() that returned true. The caller first calls settle_tails(), and ends or reuses the memory only
    // afterwards.
    virtual void detach(std::span<const std::uint8_t> range) noexcept { static_cast<void>(range); }

    // Returns true if packets taken in an earlier turn still wait here.
    [[nodiscard]] virtual bool holds_back() const noexcept { return false; }
    // Copies the tails that `which` chooses, of all packets that wait here. The packets keep their order.
    virtual void copy_tails(const TailFilter& which) noexcept { static_cast<void>(which); }
    // Waits until the device no longer reads any tail, so that the tails' memory may change. Gives up when the device
    // has kept a tail for a millisecond. Its link is then down, and the packet that it sends later has a wrong ICRC.
    // Needed only for a tail that may wait for a device although its message is over, that is, after it was sent twice.
    virtual void settle_tails() noexcept {}

    // Interns the path to `key.remote` and starts resolving it. Returns nullptr if the table is full of pinned paths,
    // or if `key.remote` is not of the port's family.
    [[nodiscard]] virtual Path* open_path(const PathKey& key, Instant now) noexcept = 0;

    // Returns the path that answers a datagram which another worker of the address received. It is a known path or the
    // path of a new peer, as if the datagram had come here. It goes to where the datagram came from, and no neighbour
    // is asked. Returns nullptr if unknown peers have no room.
    [[nodiscard]] virtual Path* path_back(const WayBack& way, Instant now) noexcept { return open_path(way.key, now); }

    // Joins a multicast group. From now on receive_burst() also returns datagrams to it, and their path's `local` is
    // the group. A group is joined only once at a time. Errors: the port cannot join it.
    virtual Status join(const net::IpAddress& group);
    virtual void leave(const net::IpAddress& group) noexcept { static_cast<void>(group); }
    // Returns true if datagrams that the port itself sends to a joined group come back to it.
    [[nodiscard]] virtual bool loops_groups() const noexcept { return false; }

    // Sends queued packets. Then sleeps until something arrives, the descriptor `also` is readable (-1: none), or about
    // `most` has passed (up to a tick of the kernel more). Only ports that are not poll_only sleep; others ignore the
    // call.
    virtual void wait(Duration most, int also) noexcept {
        static_cast<void>(most);
        static_cast<void>(also);
    }
    // Returns a descriptor that is readable when something has arrived; -1 if there is none (poll_only) or no
    // descriptor is left. Event loops use it. They call wait() with no time before they sleep, so that queued packets
    // leave.
    [[nodiscard]] virtual int descriptor() noexcept { return -1; }

    // Does neighbour ageing, retries and link changes. The caller calls it each loop turn or by next_deadline().
    virtual void on_timeout(Instant now) noexcept = 0;
    [[nodiscard]] virtual Instant next_deadline() const noexcept = 0;

    [[nodiscard]] virtual net::IpAddress local_address() const noexcept = 0;
    [[nodiscard]] virtual PortLimits limits() const noexcept = 0;
    // Returns a line for the operator: driver, offloads in use, and work done in software instead.
    [[nodiscard]] virtual std::string describe() const = 0;
    // Appends the port's counters to the list. They end with the port. Any thread may read them.
    virtual void list_counters(telemetry::CounterList& list) const { static_cast<void>(list); }
};

inline Status Port::join(const net::IpAddress& group) {
    return Error{"this port carries no multicast to " + group.text(), "use an ethernet port or a socket"};
}

}  // namespace cairn::port
