// The demultiplexer of unreliable datagrams: finds the queue pair of each, judges and delivers them in bursts (IBTA
// vol. 1, 9.8.3, 10.2.5).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/endian.hpp"
#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/base/types.hpp"
#include "lib/port/port.hpp"
#include "lib/roce/send/drops.hpp"
#include "lib/wire/ud.hpp"

namespace cairn::roce {

// The destination of a datagram: a verbs address handle, the remote QPN and the Q_Key together.
struct UdAddress {
    port::Path* path = nullptr;
    Qpn qpn{};
    Qkey qkey{};
};

// One delivered datagram. The payload lies in the buffer of `packet`. A receiver keeps the buffer by copying *packet
// and setting packet->cookie to nullptr; otherwise the buffer is released. A datagram to a group that this worker
// itself sends has the path that it leaves by, and its buffer is not kept (asserted).
struct UdDatagram {
    port::PacketRef* packet = nullptr;
    std::uint8_t* payload = nullptr;
    std::uint16_t payload_bytes = 0;
    bool has_immediate = false;
    Qpn source_qpn{};
    std::uint32_t immediate = 0;
};

// The owner of a queue pair. Called on the worker's thread with a run of consecutive datagrams.
class UdReceiver {
public:
    virtual ~UdReceiver() = default;
    virtual void on_datagrams(std::span<const UdDatagram> datagrams, Instant now) noexcept = 0;
    // Takes packets from the front that the receiver recognises by their bytes: the short path. Returns their number;
    // the receiver then owns their buffers. Only the port has judged them. The rest comes by on_datagrams() if it is
    // for this receiver.
    [[nodiscard]] virtual std::size_t take_known(std::span<port::PacketRef> burst, Instant now) noexcept {
        static_cast<void>(burst);
        static_cast<void>(now);
        return 0;
    }
    // Returns true if take_known() may take any.
    [[nodiscard]] bool knows_packets() const noexcept { return knows_packets_; }

protected:
    bool knows_packets_ = false;
};

struct UdConfig {
    Qpn qpn{};  // 0: the demultiplexer picks one; 1 is the general services interface
    Qkey qkey{};
    Pkey pkey{0xffff};
    std::uint16_t path_mtu_bytes = 1024;  // 256, 512, 1024, 2048 or 4096
};

class UdEntry {
public:
    UdEntry(const UdConfig& config, UdReceiver& receiver) noexcept;
    [[nodiscard]] const UdConfig& config() const noexcept { return config_; }
    // Sets the keys that its datagrams must carry from now on.
    void set_keys(Pkey pkey, Qkey qkey) noexcept;

    // Returns the headers of a datagram to `to`, with PSN 0, to be completed and emitted.
    [[nodiscard]] wire::UdHeader header_to(const UdAddress& to) const noexcept {
        return {to.qpn, to.qkey, config_.qpn, config_.pkey};
    }
    // As header_to(), as the bytes of a datagram without payload: a template. stamp() completes a copy of it.
    [[nodiscard]] wire::RawUd make_header(const UdAddress& to) const noexcept;
    // Writes the PSN of the next datagram into the headers at `header`.
    void stamp(std::uint8_t* header) noexcept {
        const Be32 psn_word{next_psn().value()};  // AckReq and reserved bits 0
        std::memcpy(header + offsetof(wire::RawBth, ack_req), &psn_word, sizeof(psn_word));
    }
    // Returns the PSN of the next packet. Receivers do not check it, captures show it.
    [[nodiscard]] Psn next_psn() noexcept {
        const Psn psn = psn_;
        psn_ = psn_.next();
        return psn;
    }
    void set_next_psn(Psn psn) noexcept { psn_ = psn; }

private:
    friend class UdMux;
    // The first 16 bytes of an ordinary SEND to this queue pair. A comparison masks out the bits that vary.
    std::array<std::uint8_t, 16> expected_{};
    UdReceiver& receiver_;
    Psn psn_{};
    UdConfig config_;
};

// All UD queue pairs of one worker. Not thread-safe: the worker that owns the port drives it.
class UdMux {
public:
    explicit UdMux(port::Port& port);

    // Creates a queue pair. Errors: the number is taken or out of range, the path MTU is no legal one or above the
    // link's.
    Result<UdEntry*> create_qp(const UdConfig& config, UdReceiver& receiver);
    void destroy_qp(UdEntry* qp) noexcept;

    [[nodiscard]] bool is_taken(Qpn qpn) const noexcept { return find(qpn) != nullptr; }
    // Gives the queue pair a copy of each datagram to the multicast group; its receiver keeps no buffers of these.
    // Errors: the address is no group's, the port cannot join the group, the queue pair is in it already.
    Status attach(UdEntry& qp, const net::IpAddress& group);
    // Takes the queue pair out of the group. Returns false if it was not in the group.
    bool detach(UdEntry& qp, const net::IpAddress& group) noexcept;
    // Delivers a datagram that is about to be sent to a group to the members here, unless the port brings it back.
    void loop_back(port::PacketRef packet, Instant now) noexcept;

    // Takes packets from the front that the receiver of the last run recognises by their bytes, as
    // UdReceiver::take_known().
    [[nodiscard]] std::size_t take_known(std::span<port::PacketRef> burst, Instant now) noexcept;
    // Judges the whole burst, then delivers runs to their receivers. Buffers that receivers did not keep are released.
    void on_packets(std::span<port::PacketRef> burst, Instant now) noexcept;

    [[nodiscard]] const telemetry::CounterSet<Drop>& drops() const noexcept { return drops_; }
    // Counts a datagram that its receiver does not take.
    void drop(Drop reason) noexcept { drops_.count(reason); }

private:
    struct Member {
        net::IpAddress group{};
        UdEntry* qp = nullptr;
    };
    // Consecutive datagrams for one queue pair.
    struct Run {
        UdEntry* owner = nullptr;
        std::span<const UdDatagram> datagrams;
    };
    struct Ordinary;  // the form of an ordinary packet
    // Judges the packets into datagrams_ and runs_. Returns how many runs are to be delivered.
    [[nodiscard]] std::size_t take_burst(std::span<port::PacketRef> burst, Instant now) noexcept;
    // Returns the queue pair of a packet that is not ordinary; nullptr: the packet was dropped.
    [[nodiscard]] [[gnu::noinline]] UdEntry* take_other(port::PacketRef& packet, UdDatagram& out, Instant now) noexcept;
    // Judges if the packet is a datagram. Returns nullopt and writes `parts`, or returns the reason why it is none.
    [[nodiscard]] static std::optional<Drop> judge(const port::PacketRef& packet, wire::UdParts& parts) noexcept;
    [[nodiscard]] static std::optional<Drop> judge_for(const UdEntry& qp, const wire::UdParts& parts) noexcept;
    void deliver_to_group(port::PacketRef& packet, const wire::UdParts& parts, Instant now) noexcept;
    [[nodiscard]] UdEntry* find(Qpn qpn) const noexcept;

    static constexpr std::uint32_t kBuckets = 1024;
    static constexpr std::size_t kBurst = 64;
    port::Port& port_;
    UdEntry* recent_ = nullptr;
    std::array<UdDatagram, kBurst> datagrams_{};  // of the burst under way
    std::array<Run, kBurst + 1> runs_{};
    telemetry::CounterSet<Drop> drops_;
    std::vector<std::unique_ptr<UdEntry>> qps_;
    std::vector<Member> members_;
    std::vector<UdEntry*> buckets_;  // [kBuckets] by low QPN bits, open addressing
    std::uint32_t next_qpn_ = 0x11;
};

}  // namespace cairn::roce
