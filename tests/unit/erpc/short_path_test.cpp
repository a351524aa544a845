// The short path of small calls: the packets that take it, and its equality to the long path.
#include <gtest/gtest.h>

#include "lib/roce/ud/known_start.hpp"
#include "tests/support/guarded_pages.hpp"
#include "tests/unit/erpc/short_path.hpp"

namespace cairn::erpc {
namespace {

wire::RawUd ordinary() {
    return wire::UdHeader{.to = Qpn{0x100}, .qkey = Qkey{0x205}, .from = Qpn{0x300}}.raw(0);
}

TEST(KnownStart, FitsWhatItWasMadeForWhateverItsPadAndNumbers) {
    const roce::KnownStart known(Qpn{0x100}, Pkey{0xffff});
    wire::RawUd raw = ordinary();
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&raw);
    EXPECT_TRUE(known.fits(bytes));
    EXPECT_EQ(roce::KnownStart::word_of(bytes), roce::KnownStart::source_word(Qkey{0x205}, Qpn{0x300}));
    raw.bth.flags = static_cast<std::uint8_t>(raw.bth.flags ^ 0xf0U);  // SE, MigReq, pad
    raw.bth.psn.set(0x123456);
    EXPECT_TRUE(known.fits(bytes));
    EXPECT_FALSE(roce::KnownStart().fits(bytes));
}

// Each bit of BTH and DETH is either compared or listed here as free.
TEST(KnownStart, EachOtherBitThatIsFlippedMakesItAnotherPacket) {
    const roce::KnownStart known(Qpn{0x100}, Pkey{0xffff});
    const std::uint64_t source = roce::KnownStart::source_word(Qkey{0x205}, Qpn{0x300});
    for (std::size_t bit = 0; bit < sizeof(wire::RawUd) * 8; ++bit) {
        wire::RawUd raw = ordinary();
        auto* const bytes = reinterpret_cast<std::uint8_t*>(&raw);
        bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (0x80U >> (bit % 8)));
        const bool flags = bit / 8 == offsetof(wire::RawBth, flags) && bit % 8 < 4;  // SE, MigReq, pad
        const bool psn = bit / 8 >= offsetof(wire::RawBth, ack_req) && bit / 8 < sizeof(wire::RawBth);
        EXPECT_EQ(known.fits(bytes) && roce::KnownStart::word_of(bytes) == source, flags || psn) << "bit " << bit;
    }
}

TEST_F(ShortPath, ARequestAndItsResponseTakeIt) {
    const port::PacketRef packet = response();
    EXPECT_EQ(executed[2], 1);
    EXPECT_TRUE(takes(client, packet));
    EXPECT_EQ(results.at(2), CallStatus::Ok);
    EXPECT_FALSE(takes(client, packet)) << "a copy";
}

// If any bit of the headers differs, the packet takes the long path. Only bits that do not describe the request are
// free.
TEST_F(ShortPath, ARequestWithAnyOtherBitFlippedDoesNotTakeIt) {
    const port::PacketRef packet = request();
    for (std::size_t bit = 0; bit < kHeaders * 8; ++bit) {
        const std::size_t at = bit / 8;
        const bool flags = at == offsetof(wire::RawBth, flags) && bit % 8 < 2;  // SE, MigReq
        const bool psn = at >= offsetof(wire::RawBth, ack_req) && at < sizeof(wire::RawBth);
        if (flags || psn) {
            continue;
        }
        const auto mask = static_cast<std::uint8_t>(0x80U >> (bit % 8));
        packet.data[at] = static_cast<std::uint8_t>(packet.data[at] ^ mask);
        EXPECT_FALSE(takes(server, packet)) << "bit " << bit;
        packet.data[at] = static_cast<std::uint8_t>(packet.data[at] ^ mask);
    }
    EXPECT_EQ(executed.count(2), 0U);
    packet.data[offsetof(wire::RawBth, flags)] ^= 0xc0U;
    EXPECT_TRUE(takes(server, packet));
    EXPECT_EQ(executed[2], 1);
}

TEST_F(ShortPath, WhatThePortSaysIsHeard) {
    const port::PacketRef packet = request();
    const auto changed = [&packet](auto&& change) {
        port::PacketRef other = packet;
        change(other);
        return other;
    };
    EXPECT_FALSE(takes(server, changed([](port::PacketRef& each) { each.icrc_ok = false; })));
    EXPECT_FALSE(takes(server, changed([](port::PacketRef& each) { each.ecn = 3; })));
    EXPECT_FALSE(takes(server, changed([](port::PacketRef& each) { each.path = nullptr; })));
    for (std::uint16_t bytes = 0; bytes < packet.len + 8; ++bytes) {
        const auto cut = [bytes](port::PacketRef& each) { each.len = bytes; };
        EXPECT_EQ(bytes != packet.len && takes(server, changed(cut)), false) << bytes;
    }
    EXPECT_TRUE(takes(server, packet));
}

TEST_F(ShortPath, ACopyOfARequestDoesNotTakeIt) {
    const port::PacketRef packet = request();
    std::vector<std::uint8_t> bytes(packet.data, packet.data + packet.len);
    EXPECT_TRUE(takes(server, packet));
    port::PacketRef copy = packet;
    copy.data = bytes.data();
    EXPECT_FALSE(takes(server, copy)) << "answered";
    EXPECT_EQ(executed[2], 1);
}

TEST_F(ShortPath, ARequestWhoseHandlerKeepsTheLastOneDoesNotTakeIt) {
    const port::PacketRef packet = request();
    hold = true;
    std::vector<std::uint8_t> bytes(packet.data, packet.data + packet.len);
    EXPECT_TRUE(takes(server, packet));
    port::PacketRef next = packet;
    next.data = bytes.data();
    bytes[kHeaders - 1] = static_cast<std::uint8_t>(bytes[kHeaders - 1] + (kSlotsPerSession << 4U));
    EXPECT_FALSE(takes(server, next));
}

TEST_F(ShortPath, ARequestForWhichAnAnswerNeedsMoreRoomDoesNotTakeIt) {
    const port::PacketRef packet = request();
    ASSERT_TRUE(server.endpoint->set_handler(kEcho, &TwoHosts::echo, this, 100'000).ok());
    EXPECT_FALSE(takes(server, packet));
    server.endpoint->set_handler(kEcho, nullptr, nullptr);
    EXPECT_FALSE(takes(server, packet));
    server.endpoint->set_handler(kEcho, &TwoHosts::echo, this);
    EXPECT_TRUE(takes(server, packet));
}

TEST_F(ShortPath, AnAnswerThatWasSentAgainMakesTheNextRequestTakeTheLongWay) {
    session = connect();
    run(milliseconds(5));
    client.port.fate = [](std::uint64_t) { return 2; };
    post(session, 1);
    run(milliseconds(5));
    client.port.fate = [](std::uint64_t) { return 1; };
    post(session, 2);
    client.turn(now);
    EXPECT_FALSE(takes(server, arrived(server)));
}

// Bytes after a short packet must not be read: here such a read ends the test.
TEST_F(ShortPath, NothingIsReadBehindAShortPacket) {
    test::GuardedPages pages(1);
    const auto short_ones = [this, &pages](Host& host, const port::PacketRef& packet) {
        for (std::uint16_t bytes = 0; bytes < packet.len; ++bytes) {
            port::PacketRef cut = packet;
            cut.len = bytes;
            cut.data = pages.span().last(bytes).data();
            std::memcpy(cut.data, packet.data, bytes);
            EXPECT_FALSE(takes(host, cut)) << bytes;
        }
    };
    port::PacketRef packet = request();
    short_ones(server, packet);
    EXPECT_EQ(server.endpoint->take_known({&packet, 1}, now), 1U);
    server.worker->sender().flush(now);
    const port::PacketRef answer = arrived(client);
    short_ones(client, answer);
    EXPECT_TRUE(takes(client, answer));
}

TEST_F(ShortPath, SwitchedOffNothingTakesIt) {
    client.config.short_path = server.config.short_path = false;
    client.restart(11);
    server.restart(22);
    SetUp();
    session = connect();
    run(milliseconds(5));
    for (std::uint64_t tag = 1; tag <= 20; ++tag) {
        post(session, tag);
    }
    EXPECT_FALSE(server.endpoint->knows_packets());
    run(milliseconds(50));
    expect_all(20, CallStatus::Ok);
}

// Histories with losses, doubling and reordering end alike, call by call, with and without the short path.
class BothPaths : public testing::TestWithParam<std::uint64_t> {};

struct History {
    std::map<std::uint64_t, CallStatus> results;
    std::map<std::uint64_t, int> executed;
    std::uint64_t retransmits = 0;
    std::uint64_t resent = 0;
    std::uint64_t sent = 0;
    telemetry::CounterSnapshot<Drop> drops;
    bool operator==(const History&) const = default;
};

class World : public TwoHosts {
public:
    void TestBody() override {}
    History play(std::uint64_t seed, bool short_path) {
        client.config.short_path = server.config.short_path = short_path;
        client.restart(11);
        server.restart(22);
        SetUp();
        const SessionId session = connect();
        run(milliseconds(5));
        std::uint64_t state = seed;
        const auto draw = [&state] { return (state = state * 6364136223846793005U + 1442695040888963407U) >> 33U; };
        const auto fate = [&draw](std::uint64_t) { return draw() % 16 == 0 ? 0 : draw() % 16 == 1 ? 2 : 1; };
        client.port.fate = server.port.fate = fate;
        std::vector<CallId> ids;
        for (std::uint64_t tag = 1; tag <= 300; ++tag) {
            const Instant deadline = draw() % 8 == 0 ? now + milliseconds(3) : Instant::never();
            ids.push_back(post(session, tag, deadline, draw() % 12 == 0 ? 3000 : 0).id);
            if (draw() % 20 == 0) {
                client.endpoint->cancel(ids[draw() % ids.size()], now);
            }
            hold = draw() % 10 == 0;
            run(microseconds(static_cast<std::int64_t>(draw() % 4) * 50));
            hold = false;
            answer_held(now);
            client.endpoint->check_invariants();
            server.endpoint->check_invariants();
        }
        run(seconds(1));
        client.port.fate = server.port.fate = [](std::uint64_t) { return 1; };  // the one above ends here
        const Statistics& ours = client.endpoint->statistics();
        const Statistics& theirs = server.endpoint->statistics();
        History history{
            results, executed, ours.retransmits, theirs.responses_resent, ours.requests_sent, ours.drops.snapshot()};
        history.drops += theirs.drops.snapshot();
        return history;
    }
};

TEST_P(BothPaths, ComeToTheSameEnd) {
    World with;
    World without;
    const History taken = with.play(GetParam(), true);
    const History reference = without.play(GetParam(), false);
    EXPECT_EQ(taken.results, reference.results);
    EXPECT_EQ(taken.executed, reference.executed);
    EXPECT_EQ(taken.drops.values, reference.drops.values);
    EXPECT_TRUE(taken == reference);
    EXPECT_EQ(taken.results.size(), 300U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BothPaths, testing::Range<std::uint64_t>(1, 40));

}  // namespace
}  // namespace cairn::erpc
