// One end of a reliable connection for tests: memory, queues, a queue pair, and packets as datagrams.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/roce/rc/queue_pair.hpp"
#include "lib/roce/rc/timers.hpp"

namespace cairn::roce::rc {

using Datagram = std::vector<std::uint8_t>;  // BTH ... ICRC, which stays zero

inline Datagram datagram_of(const OutPacket& packet) {
    Datagram bytes(packet.headers().begin(), packet.headers().end());
    for (const std::span<std::uint8_t> piece : packet.payload.all()) {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    bytes.resize(packet.bytes(), 0);
    return bytes;
}

inline Datagram datagram_of(const wire::Packet& packet) {
    Datagram bytes(packet.traits().header_bytes);
    (void)packet.emit(bytes);
    bytes.insert(bytes.end(), packet.payload().begin(), packet.payload().end());
    bytes.resize(packet.bytes(), 0);
    return bytes;
}

// Returns a view into `datagram`, which must be a packet.
inline wire::Packet packet_of(const Datagram& datagram) {
    const wire::Parsed<wire::Packet> parsed = wire::Packet::parse(datagram);
    EXPECT_TRUE(parsed.ok());
    return parsed.ok() ? parsed.value() : wire::Packet{};
}

constexpr AttributeSet kToInit = AttributeSet::of(Attribute::Access, Attribute::Pkey);
constexpr AttributeSet kToRtr =
    AttributeSet::of(Attribute::Path, Attribute::PathMtu, Attribute::DestQpn, Attribute::ReceivePsn,
                     Attribute::MaxDestRdAtomic, Attribute::MinRnrTimer, Attribute::Selective, Attribute::DelayedAcks);
constexpr AttributeSet kToRts =
    AttributeSet::of(Attribute::SendPsn, Attribute::AckTimeout, Attribute::RetryCount, Attribute::RnrRetry,
                     Attribute::MaxRdAtomic, Attribute::MigrationState);
constexpr Rights kAllRemote = Rights{Right::RemoteWrite} | Right::RemoteRead | Right::RemoteAtomic;
constexpr Rights kAllRights = kAllRemote | Right::LocalWrite;

// `kBytes` of memory, registered at kBase with all rights, and one queue pair in RESET.
struct RcHost {
    struct CountedEvents final : EventSink {
        int count = 0;
        void on_event() noexcept override { ++count; }
    };
    static constexpr std::size_t kBytes = 65536;
    static constexpr std::uint64_t kBase = 0x10000;

    explicit RcHost(const QpCapacity& capacity = {}, std::uint32_t completion_slots = 1024, bool equal_writes = false)
        : send_completions(completion_slots), receive_completions(completion_slots) {
        pd = memory.create_pd();
        key = memory.register_region({pd, span(), kBase, kAllRights}).value();
        QpContext context{memory, send_completions, receive_completions, counters};
        context.held = &held;
        context.equal_writes = equal_writes;
        context.writes = &writes;
        qp = std::make_unique<QueuePair>(kQpn, pd, capacity, context);
    }

    static QpAttributes usual_attributes() {
        QpAttributes values;
        values.access = kAllRemote;
        values.path_mtu_bytes = 256;
        values.dest_qpn = kQpn;
        values.receive_psn = Psn{0xfffff0};
        values.send_psn = Psn{0x100};
        values.max_dest_rd_atomic = 4;
        values.max_rd_atomic = 4;
        values.min_rnr_timer = wire::RnrTimer{12};
        values.ack_timeout = 14;
        return values;
    }

    // Moves the queue pair from RESET to `state`, one of INIT, RTR, RTS.
    void bring_to(QpState state, const QpAttributes& values = usual_attributes()) {
        const auto go = [&](QpState to, AttributeSet which) {
            const Transition step = find_transition(qp->state(), to, qp->service()).value();
            EXPECT_EQ(qp->modify(to, which.within(step.required.with(step.optional)), values), std::nullopt);
        };
        go(QpState::Init, kToInit);
        if (state >= QpState::Rtr) {
            go(QpState::Rtr, kToRtr);
        }
        if (state >= QpState::Rts) {
            go(QpState::Rts, kToRts);
        }
    }

    [[nodiscard]] std::span<std::uint8_t> span() { return {reinterpret_cast<std::uint8_t*>(words.data()), kBytes}; }
    [[nodiscard]] std::uint8_t* at(std::uint64_t address) { return span().data() + (address - kBase); }
    [[nodiscard]] Sge sge(std::uint64_t address, std::uint32_t bytes) const {
        return {address, bytes, Lkey{key.value}};
    }

    PostVerdict post_receive(std::uint64_t wr_id, std::uint64_t address, std::uint32_t bytes) {
        const std::array<Sge, 1> sges{sge(address, bytes)};
        return qp->post_receive({wr_id, sges});
    }
    PostVerdict post(SendRequest request, std::uint64_t address, std::uint32_t bytes) {
        const std::array<Sge, 1> sges{sge(address, bytes)};
        request.sges = sges;
        return qp->post_send(request);
    }

    // Returns the next packet to send, if any.
    std::optional<Datagram> poll(Instant now = {}) {
        OutPacket packet;
        if (qp->poll_transmit({&packet, 1}, now) == 0) {
            return std::nullopt;
        }
        qp->check_invariants();
        return datagram_of(packet);
    }
    std::vector<Datagram> poll_all(Instant now = {}) {
        std::vector<Datagram> all;
        while (std::optional<Datagram> one = poll(now)) {
            all.push_back(*std::move(one));
        }
        return all;
    }
    void take(const wire::Packet& packet, Instant now = {}) { take(datagram_of(packet), now); }
    // Takes a datagram in a buffer that the queue pair may keep.
    void take(const Datagram& datagram, Instant now = {}) {
        auto buffer = std::make_unique<Datagram>(datagram);
        const wire::Packet packet = packet_of(*buffer);
        if (qp->on_packet(packet, {*buffer, buffer.get()}, now)) {
            Datagram* const name = buffer.get();
            kept.emplace(name, std::move(buffer));
        }
        qp->check_invariants();
        std::array<void*, 8> cookies{};
        while (const std::size_t count = held.poll_released(cookies)) {
            for (std::size_t i = 0; i < count; ++i) {
                EXPECT_EQ(kept.erase(static_cast<Datagram*>(cookies[i])), 1U);
            }
        }
        EXPECT_EQ(kept.size(), held.in_use());
    }

    static std::vector<Completion> drain(CompletionQueue& queue) {
        std::vector<Completion> all(queue.size());
        all.resize(queue.poll(all));
        return all;
    }

    static constexpr Qpn kQpn{0x11};
    MemoryTable memory{64, {0x0123456789abcdefU, 0xfedcba9876543210U}};
    Pd pd;
    Rkey key;
    CountedEvents writes;  // the peer's WRITEs
    CompletionQueue send_completions;
    CompletionQueue receive_completions;
    RcCounters counters;
    HeldPackets held{300};
    std::map<Datagram*, std::unique_ptr<Datagram>> kept;
    std::vector<std::uint64_t> words = std::vector<std::uint64_t>(kBytes / 8);
    std::unique_ptr<QueuePair> qp;
};

}  // namespace cairn::roce::rc
