// An engine on a port in memory, and two of them with connections between them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/worker/worker.hpp"
#include "tests/support/wire_port.hpp"
#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce {

struct EngineHost {
    static constexpr std::size_t kBytes = 1U << 20U;
    static constexpr std::uint64_t kBase = 0x10000;

    explicit EngineHost(const char* address, EngineConfig config = {}, bool sends_in_place = false,
                        bool batches_equals = false)
        : port(address, 2048, batches_equals),
          worker(worker::Worker::create(port, with_seed(config), Instant{}).value()) {
        port.sends_in_place = sends_in_place;
        pd = engine.create_pd();
        key = engine.register_region({pd, bytes, kBase, rc::kAllRights}).value();
    }

    static EngineConfig with_seed(EngineConfig config) {
        config.seed = {7, 11};
        return config;
    }

    Engine::RcQp& make_qp(const QpCapacity& capacity = {}) {
        return *engine.create_rc(pd, capacity, {sends, receives, nullptr}).value();
    }

    static Sge sge(Rkey key, std::uint64_t offset, std::uint32_t length) {
        return {kBase + offset, length, Lkey{key.value}};
    }
    PostVerdict post(Engine::RcQp& qp, SendRequest request, std::uint64_t offset, std::uint32_t length) {
        const std::array<Sge, 1> sges{sge(key, offset, length)};
        request.sges = sges;
        const PostVerdict verdict = qp.pair.post_send(request);
        engine.wake(qp);
        return verdict;
    }
    PostVerdict post_receive(Engine::RcQp& qp, std::uint64_t offset, std::uint32_t length) {
        const std::array<Sge, 1> sges{sge(key, offset, length)};
        return qp.pair.post_receive({0, sges});
    }

    // Takes a turn. Returns false if nothing came.
    bool turn(Instant now) { return worker->turn(now); }

    bool selective = false;         // for its queue pairs
    bool delayed_acks = false;      // for its queue pairs
    std::uint8_t ack_timeout = 14;  // of its queue pairs
    test::WirePort port;
    CompletionQueue sends{4096};
    CompletionQueue receives{4096};
    std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(kBytes);
    std::unique_ptr<worker::Worker> worker;  // ends before what its queue pairs use
    UdMux& datagrams = worker->datagrams();
    Sender& sender = worker->sender();
    Engine& engine = worker->engine();
    Pd pd;
    Rkey key;
};

inline QpAttributes attributes_to(const Engine::RcQp& peer) {
    QpAttributes values = rc::RcHost::usual_attributes();
    values.path_mtu_bytes = 4096;
    values.dest_qpn = peer.pair.qpn();
    values.receive_psn = values.send_psn = Psn{0xfffff0};
    return values;
}

inline void bring_up(EngineHost& host, Engine::RcQp& qp, const EngineHost& peer_host, const Engine::RcQp& peer) {
    QpAttributes values = attributes_to(peer);
    values.selective = host.selective;
    values.delayed_acks = host.delayed_acks;
    values.ack_timeout = host.ack_timeout;
    port::Path* const path =
        host.port.open_path({host.port.local_address(), peer_host.port.local_address(), 0xc000, 0}, {});
    const std::array states{QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts};
    for (std::size_t i = 1; i < states.size(); ++i) {
        const auto step = find_transition(states[i - 1], states[i], qp.pair.service());
        const AttributeSet own = step->optional.within(AttributeSet::of(Attribute::Selective, Attribute::DelayedAcks));
        EXPECT_EQ(host.engine.modify(qp, states[i], step->required.with(own), values, path), std::nullopt);
    }
}

struct EnginePair : testing::Test {
    using Ends = std::pair<Engine::RcQp*, Engine::RcQp*>;

    void SetUp() override { start({}); }
    void start(const EngineConfig& config, bool sends_in_place = false) {
        a = std::make_unique<EngineHost>("10.0.0.1", config, sends_in_place);
        b = std::make_unique<EngineHost>("10.0.0.2", config, sends_in_place);
        a->port.join(b->port);
        b->port.join(a->port);
    }
    Ends connect(const QpCapacity& capacity = {}) {
        Engine::RcQp& at_a = a->make_qp(capacity);
        Engine::RcQp& at_b = b->make_qp(capacity);
        bring_up(*a, at_a, *b, at_b);
        bring_up(*b, at_b, *a, at_a);
        return {&at_a, &at_b};
    }
    // Runs turns of both until no packet travels any more.
    void run() {
        for (std::size_t quiet = 0; quiet < 3;) {
            const bool came = a->turn(now);
            quiet = b->turn(now) || came ? 0 : quiet + 1;
        }
    }
    SendRequest request(WorkOpcode opcode, std::uint64_t wr_id = 0) const {
        SendRequest made;
        made.wr_id = wr_id;
        made.opcode = opcode;
        made.remote_address = EngineHost::kBase + EngineHost::kBytes / 2;
        made.rkey = b->key;
        return made;
    }
    // Returns the wr_ids, all of which must have succeeded.
    static std::vector<std::uint64_t> done(CompletionQueue& queue) {
        std::vector<std::uint64_t> ids;
        for (const Completion& one : rc::RcHost::drain(queue)) {
            EXPECT_EQ(one.status, CompletionStatus::Success);
            ids.push_back(one.wr_id);
        }
        return ids;
    }
    static bool same(const EngineHost& one, std::size_t at, const EngineHost& other, std::size_t there,
                     std::size_t count) {
        return std::memcmp(one.bytes.data() + at, other.bytes.data() + there, count) == 0;
    }
    void fill_a(std::uint8_t salt = 1) {
        for (std::size_t i = 0; i < EngineHost::kBytes; ++i) {
            a->bytes[i] = static_cast<std::uint8_t>(i * 31 + (i >> 8U) + salt);
        }
    }

    static constexpr std::size_t kHalf = EngineHost::kBytes / 2;
    std::unique_ptr<EngineHost> a;
    std::unique_ptr<EngineHost> b;
    Instant now{1'000'000};
};

}  // namespace cairn::roce
