// Payloads that are sent in place: which ones are, and that their memory is not read once its owner has it back.
#include <tuple>

#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

using enum WorkOpcode;
using Ids = std::vector<std::uint64_t>;

struct EngineInPlace : EnginePair {
    void SetUp() override { start({}, true); }
    // The port sends the bytes of a large WRITE later, so their content then matters.
    static constexpr std::uint32_t kLarge = 2 * 4096;
};

TEST_F(EngineInPlace, LargePayloadsLeaveFromWhereTheyLie) {
    const auto [at_a, at_b] = connect();
    (void)at_b;
    fill_a();
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, kLarge + 1), PostVerdict::Posted);
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 2), 0, 1024), PostVerdict::Posted);
    run();
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PayloadsInPlace), 2U);
    EXPECT_EQ(done(a->sends), (Ids{1, 2}));
    EXPECT_TRUE(same(*a, 0, *b, kHalf, kLarge + 1));
}

// It completes when the sender takes its last packet, and its memory may be overwritten then.
TEST_F(EngineInPlace, WhatAnUnreliableQueuePairSendsIsCopied) {
    QpCapacity unreliable;
    unreliable.service = wire::Service::Uc;
    const auto [at_a, at_b] = connect(unreliable);
    (void)at_b;
    fill_a();
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, kLarge), PostVerdict::Posted);
    a->turn(now);
    EXPECT_EQ(done(a->sends), Ids{1});
    fill_a(99);
    run();
    fill_a();
    EXPECT_TRUE(same(*a, 0, *b, kHalf, kLarge));
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PayloadsInPlace), 0U);
}

TEST_F(EngineInPlace, WhatIsSentAgainIsCopied) {
    const auto [at_a, at_b] = connect();
    (void)at_b;
    b->port.fate = [](std::uint64_t number) { return number == 0 ? 0 : 1; };  // the acknowledgement
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, 4096), PostVerdict::Posted);
    run();
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PayloadsInPlace), 1U);
    for (now = at_a->pair.next_deadline() + milliseconds(1); a->engine.counters().of(EngineCounter::PacketsResent) == 0;
         now = now + milliseconds(1)) {
        run();
    }
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PayloadsInPlace), 1U);
    EXPECT_EQ(done(a->sends), Ids{1});
}

// Packets of a stopped queue pair may still be on their way, but have no bytes written after its completions.
TEST_F(EngineInPlace, NothingReadsTheMemoryOfAQueuePairThatStopped) {
    const auto [at_a, at_b] = connect();
    (void)at_b;
    fill_a();
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, kLarge), PostVerdict::Posted);
    a->turn(now);
    ASSERT_EQ(a->engine.modify(*at_a, QpState::Err, {}, {}), std::nullopt);
    fill_a(99);
    run();
    EXPECT_FALSE(same(*a, 0, *b, kHalf, 16));
    fill_a();
    EXPECT_TRUE(same(*a, 0, *b, kHalf, kLarge));
}

// A hostile peer acknowledges packets that still wait here and that it never received.
TEST_F(EngineInPlace, NothingReadsTheMemoryOfARequestThatThePeerAcknowledgedTooSoon) {
    const auto [at_a, at_b] = connect();
    fill_a();
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, kLarge), PostVerdict::Posted);
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 2), kLarge, kLarge), PostVerdict::Posted);
    a->turn(now);
    rc::OutPacket forged;
    wire::Bth bth;
    bth.dest_qpn = at_a->pair.qpn();
    bth.psn = Psn{0xfffff1};
    bth.pkey = at_a->pair.attributes().pkey;
    forged.payload_bytes = 0;
    rc::write_headers(forged, std::move(bth), wire::Service::Rc, wire::Operation::Acknowledge,
                      wire::Aeth{wire::AckCredits{31}, Msn{1}});
    port::PacketRef packet;
    ASSERT_EQ(a->port.allocate_burst({&packet, 1}), 1U);
    std::memcpy(packet.data, forged.headers().data(), forged.headers().size());
    packet.len = static_cast<std::uint16_t>(forged.bytes());
    packet.path = at_a->path;
    packet.icrc_ok = true;
    a->engine.on_packets({&packet, 1}, now);
    ASSERT_EQ(done(a->sends), Ids{1});
    fill_a(99);
    run();
    fill_a();
    EXPECT_TRUE(same(*a, 0, *b, kHalf, kLarge));
    (void)at_b;
}

// The answer is torn, as on any device, but it comes: a write by the owner between the port's two reads spoils only the
// first answer.
TEST_F(EngineInPlace, AReadOfMemoryThatKeepsChangingCompletes) {
    const auto [at_a, at_b] = connect();
    (void)at_b;
    ASSERT_EQ(a->post(*at_a, request(RdmaRead, 1), 0, 3 * 4096), PostVerdict::Posted);
    std::vector<std::uint64_t> ids;
    for (int turns = 0; turns < 100 && ids.empty(); ++turns) {
        a->turn(now);
        b->turn(now);
        for (std::size_t page = 0; page < 3; ++page) {
            ++b->bytes[kHalf + page * 4096];
        }
        a->turn(now);
        ids = done(a->sends);
        now = now + milliseconds(10);
    }
    EXPECT_EQ(ids, Ids{1});
    EXPECT_NE(a->bytes[0], 0);
}

TEST_F(EngineInPlace, NothingReadsTheMemoryOfADestroyedRegion) {
    const auto [at_a, at_b] = connect();
    (void)at_b;
    fill_a();
    ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, kLarge), PostVerdict::Posted);
    a->turn(now);
    ASSERT_TRUE(a->engine.destroy_region(a->key));
    EXPECT_FALSE(a->engine.destroy_region(a->key));
    fill_a(99);
    run();
    fill_a();
    EXPECT_TRUE(same(*a, 0, *b, kHalf, kLarge));
}

// A region of `a` that `b` READs, and that ends while the answer waits in a's port.
struct EngineInPlaceEnd : EngineInPlace {
    void SetUp() override {
        EngineInPlace::SetUp();
        std::tie(at_a, at_b) = connect();
        fill_a();
        open = register_open();
    }
    Rkey register_open() const {
        return a->engine.register_region({a->pd, a->bytes, EngineHost::kBase, rc::kAllRights | Right::RemoteInvalidate})
            .value();
    }
    SendRequest local_invalidate(Rkey key) const {
        SendRequest ended = request(LocalInvalidate, 9);
        ended.invalidate = key;
        return ended;
    }
    // READs from `b`, which then sends `behind`, if any; `end` ends the region while the answer waits.
    template <class End>
    void read_and(const SendRequest* behind, End&& end) {
        SendRequest read = request(RdmaRead, 1);
        read.remote_address = EngineHost::kBase;
        read.rkey = open;
        ASSERT_EQ(b->post(*at_b, read, kHalf, kLarge), PostVerdict::Posted);
        if (behind != nullptr) {
            ASSERT_EQ(b->post(*at_b, *behind, 0, 8), PostVerdict::Posted);
        }
        b->turn(now);
        std::array<port::PacketRef, 2> burst;
        EXPECT_EQ(b->port.receive_burst(std::span(burst).first(0), now), 0U);  // the packets of b leave
        const std::size_t received = a->port.receive_burst(burst, now);
        ASSERT_EQ(received, behind == nullptr ? 1U : 2U);
        a->engine.on_packets(std::span(burst).first(1), now);
        a->engine.transmit(now);
        a->sender.flush(now);
        EXPECT_EQ(a->engine.counters().of(EngineCounter::PayloadsInPlace), 2U);
        a->engine.on_packets(std::span(burst).first(received).subspan(1), now);
        end();
        fill_a(99);
        run();
        fill_a();
        EXPECT_TRUE(same(*a, 0, *b, kHalf, kLarge));
        EXPECT_FALSE(a->engine.destroy_region(open));
    }

    Engine::RcQp* at_a = nullptr;
    Engine::RcQp* at_b = nullptr;
    Rkey open{};
};

TEST_F(EngineInPlaceEnd, NothingReadsTheMemoryOfARegionThatThePeerEnded) {
    ASSERT_EQ(a->post_receive(*at_a, kHalf, 64), PostVerdict::Posted);
    SendRequest ending = request(SendWithInvalidate, 2);
    ending.invalidate = open;
    read_and(&ending, [] {});
    EXPECT_EQ(done(a->receives).size(), 1U);
}

TEST_F(EngineInPlaceEnd, NothingReadsTheMemoryOfARegionThatAWorkRequestEnded) {
    read_and(nullptr, [this] {
        ASSERT_EQ(a->post(*at_a, local_invalidate(open), 0, 0), PostVerdict::Posted);
        a->engine.transmit(now);
        EXPECT_EQ(done(a->sends), Ids{9});
    });
}

TEST_F(EngineInPlaceEnd, NothingReadsTheMemoryThatARegionHadBeforeItWasRegisteredAnew) {
    std::vector<std::uint8_t> other(4096);
    read_and(nullptr, [&] {
        const RegionChange change{{}, {}, RegionChange::Translation{other, EngineHost::kBase}};
        ASSERT_TRUE(a->engine.reregister_region(open, change).ok());
    });
}

TEST_F(EngineInPlaceEnd, MemoryOfARegionThatEndedIsNotTakenForSendable) {
    std::vector<std::uint8_t> other(kLarge);
    ASSERT_EQ(a->post(*at_a, local_invalidate(open), 0, 0), PostVerdict::Posted);
    run();
    a->port.sends_in_place = false;  // from the memory's content at that time
    const RegionChange change{{}, {}, RegionChange::Translation{other, EngineHost::kBase}};
    for (const Rkey key : {register_open(), a->engine.reregister_region(a->key, change).value()}) {
        a->key = key;
        ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, kLarge), PostVerdict::Posted);
        run();
        EXPECT_EQ(done(a->sends).back(), 1U);
    }
    EXPECT_EQ(a->engine.counters().of(EngineCounter::PayloadsInPlace), 0U);
}

}  // namespace
}  // namespace cairn::roce
