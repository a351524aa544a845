// Turns on a port that takes less than there is to send: no queue pair delays the packets of another, or the answers
// that its peer waits for.
#include <tuple>

#include "tests/unit/roce/engine_host.hpp"

namespace cairn::roce {
namespace {

using enum WorkOpcode;
using Ids = std::vector<std::uint64_t>;

constexpr QpCapacity kMany{16384, 16, 1, 0, 256};

struct EngineTurns : EnginePair {
    static constexpr std::size_t kPerTurn = 8;

    void SetUp() override {
        EnginePair::SetUp();
        a->port.most_per_turn = kPerTurn;
    }
    // Makes a queue pair of datagrams that can send.
    UdQueuePair& make_datagrams() {
        UdQueuePair& qp = *a->engine.create_ud(a->pd, kMany, {a->sends, a->receives}).value();
        QpAttributes values;
        EXPECT_EQ(qp.modify(QpState::Init, AttributeSet::of(Attribute::Pkey, Attribute::Qkey), values), std::nullopt);
        EXPECT_EQ(qp.modify(QpState::Rtr, {}, values), std::nullopt);
        EXPECT_EQ(qp.modify(QpState::Rts, AttributeSet::of(Attribute::SendPsn), values), std::nullopt);
        return qp;
    }
    void post_datagrams(UdQueuePair& qp, std::uint32_t count, bool signalled = false) {
        const std::array<Sge, 1> sges{EngineHost::sge(a->key, 0, 1024)};
        SendRequest one = request(Send);
        one.sges = sges;
        one.signalled = signalled;
        const UdAddress to{a->port.open_path({a->port.local_address(), b->port.local_address(), 0xc000, 0}, now),
                           Qpn{0x99}, Qkey{}};
        for (std::uint32_t i = 0; i < count; ++i) {
            ASSERT_EQ(qp.post_send({one, to}), PostVerdict::Posted);
        }
        a->engine.wake(qp);
    }
    // Posts as many requests of `bytes` as the queue holds.
    void post_writes(Engine::RcQp& qp, std::uint32_t count, std::uint32_t bytes) {
        SendRequest one = request(RdmaWrite);
        one.signalled = false;
        for (std::uint32_t i = 0; i < count; ++i) {
            ASSERT_EQ(a->post(qp, one, 0, bytes), PostVerdict::Posted);
        }
    }
    void turn() {
        now = now + microseconds(10);
        (void)a->turn(now);
        (void)b->turn(now);
    }
    // Fills the port, so that the waiting ones have the order of a long run.
    void fill() {
        for (int i = 0; i < 100; ++i) {
            turn();
        }
        EXPECT_GT(a->sender.queued(), 100U);
        EXPECT_GT(a->engine.counters().of(EngineCounter::NoBuffer), 0U);
    }
    // Returns how many turns pass until `holds`, at most 1,000.
    template <class Holds>
    std::size_t turns_until(Holds&& holds) {
        std::size_t turns = 0;
        for (; turns < 1000 && !holds(); ++turns) {
            turn();
        }
        return turns;
    }
    std::size_t turns_until_done(EngineHost& host) {
        return turns_until([&host] { return host.sends.size() != 0; });
    }
};

TEST_F(EngineTurns, BusyDatagramsDoNotStarveAConnection) {
    for (const int queue_pairs : {1, 6}) {
        for (int i = 0; i < queue_pairs; ++i) {
            post_datagrams(make_datagrams(), 10'000);
        }
        const auto [at_a, at_b] = connect();
        fill();
        ASSERT_EQ(a->post(*at_a, request(RdmaWrite, 1), 0, 1024), PostVerdict::Posted);
        EXPECT_LT(turns_until_done(*a), 200U) << queue_pairs;
        EXPECT_EQ(done(a->sends).size(), 1U);
    }
}

TEST_F(EngineTurns, BusyConnectionsDoNotStarveDatagrams) {
    for (int i = 0; i < 7; ++i) {
        post_writes(*connect().first, 8, 400'000);
    }
    fill();
    post_datagrams(make_datagrams(), 1, true);
    EXPECT_LT(turns_until_done(*a), 200U);
}

// For any number of senders an answer leaves at most one queue of the sender later.
struct EngineAnswers : EngineTurns {
    static constexpr std::size_t kSoon = Sender::kQueuePackets / kPerTurn + 10;

    void SetUp() override {
        EngineTurns::SetUp();
        for (int i = 0; i < 100; ++i) {
            post_writes(*connect().first, 8, 400'000);
        }
        std::tie(at_a, at_b) = connect();
        fill();
    }
    void TearDown() override { EXPECT_EQ(a->sender.drops().total(), 0U); }

    Engine::RcQp* at_a = nullptr;
    Engine::RcQp* at_b = nullptr;
};

TEST_F(EngineAnswers, AcknowledgementsAndAtomicsOfAFullPortComeSoon) {
    for (const WorkOpcode opcode : {RdmaWrite, FetchAdd, RdmaWrite, FetchAdd}) {
        SendRequest one = request(opcode, 7);
        one.rkey = a->key;
        ASSERT_EQ(b->post(*at_b, one, 0, 8), PostVerdict::Posted);
        EXPECT_LT(turns_until_done(*b), kSoon);
        EXPECT_EQ(done(b->sends), Ids{7});
    }
}

// The queue pair has requests of its own, whose turn comes much later.
TEST_F(EngineAnswers, AcknowledgementsThatWerePutOffLeaveAFullPortSoon) {
    a->delayed_acks = b->delayed_acks = true;
    const auto [here, there] = connect();
    post_writes(*here, 8, 400'000);
    fill();
    const rc::Requester& requester = there->pair.requester();
    const auto answered = [&requester] { return requester.unacknowledged_psn() == requester.next_psn(); };
    SendRequest one = request(RdmaWrite);
    one.signalled = false;
    for (int i = 0; i < 4; ++i) {  // the first one asks
        ASSERT_EQ(b->post(*there, one, 0, 8), PostVerdict::Posted);
        turn();
        constexpr std::size_t kTurnsOfDelay = 100;
        EXPECT_LT(turns_until(answered), kTurnsOfDelay + kSoon);
    }
}

TEST_F(EngineAnswers, NaksOfAFullPortComeSoon) {
    ASSERT_EQ(b->post(*at_b, request(Send, 7), 0, 8), PostVerdict::Posted);
    EXPECT_LT(turns_until([this] { return b->engine.rc_counters().of(rc::RcCounter::RnrNakReceived) != 0; }), kSoon);
    ASSERT_EQ(a->post_receive(*at_a, 0, 8), PostVerdict::Posted);
    now = now + milliseconds(1);
    EXPECT_LT(turns_until_done(*b), kSoon);
}

TEST_F(EngineAnswers, CongestionNotificationsOfAFullPortComeSoon) {
    b->port.marks = [](std::uint64_t) { return true; };
    SendRequest read = request(RdmaRead);
    read.rkey = a->key;
    ASSERT_EQ(b->post(*at_b, read, 0, 400'000), PostVerdict::Posted);
    EXPECT_LT(turns_until([this] { return b->engine.rc_counters().of(rc::RcCounter::CnpReceived) != 0; }), kSoon);
}

// A queue pair's turn at a full queue: requests, and after them the acknowledgement that let them go first.
TEST_F(EngineTurns, NothingOfATurnIsDroppedForWantOfRoom) {
    std::vector<Ends> all;
    for (int i = 0; i < 20; ++i) {
        all.push_back(connect());
        post_writes(*all.back().first, 8, 400'000);
    }
    for (int i = 0; i < 1000; ++i) {
        SendRequest one = request(RdmaWrite, 1);
        one.rkey = a->key;
        ASSERT_EQ(b->post(*all[static_cast<std::size_t>(i) % all.size()].second, one, 0, 8), PostVerdict::Posted);
        a->port.most_per_turn = i % 4 == 0 ? 32 : 0;
        turn();
        EXPECT_EQ(a->sender.drops().total(), 0U);
    }
}

// Acknowledgements may wait; other due packets may not.
TEST_F(EnginePair, KnowsWhetherItOwesOnlyAcknowledgements) {
    const auto owes_only = [this](EngineHost& host, std::size_t writes_to, bool reads, bool posts) {
        std::vector<Ends> ends;
        for (std::size_t i = 0; i < writes_to; ++i) {
            ends.push_back(connect());
            EXPECT_EQ(a->post(*ends.back().first, request(RdmaWrite), 0, 64), PostVerdict::Posted);
        }
        if (reads) {
            EXPECT_EQ(a->post(*ends.back().first, request(RdmaRead), 0, 64), PostVerdict::Posted);
        }
        a->worker->give_out(now);
        EXPECT_EQ(b->worker->take_in(now), writes_to != 0);
        if (posts) {
            SendRequest back = request(RdmaWrite);
            back.rkey = a->key;
            EXPECT_EQ(b->post(*ends.front().second, back, 0, 64), PostVerdict::Posted);
        }
        const bool owes = host.engine.owed() == Engine::Owed::Acknowledgements;
        EXPECT_EQ(host.engine.owed() != Engine::Owed::Nothing, writes_to != 0);
        run();
        EXPECT_EQ(host.engine.owed(), Engine::Owed::Nothing);
        return owes;
    };
    EXPECT_FALSE(owes_only(*b, 0, false, false));
    EXPECT_TRUE(owes_only(*b, 1, false, false));
    EXPECT_TRUE(owes_only(*b, 3, false, false));
    EXPECT_FALSE(owes_only(*b, 3, true, false));
    EXPECT_FALSE(owes_only(*b, 1, false, true));
    EXPECT_FALSE(owes_only(*b, 17, false, false));  // too many to check
}

}  // namespace
}  // namespace cairn::roce
