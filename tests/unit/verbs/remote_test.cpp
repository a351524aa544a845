// Posting from threads that do not drive the device.
#include "lib/verbs/remote.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::verbs {
namespace {

struct RemotePosting : VerbsPair {
    SendRequest request(std::uint64_t wr_id, std::uint32_t bytes = 8) {
        sges[0] = a.mr->sge(0, bytes);
        SendRequest made;
        made.wr_id = wr_id;
        made.sges = sges;
        return made;
    }
    std::array<Sge, 1> sges{};
};

TEST_F(RemotePosting, WhatWasPostedLeavesInTheNextTurn) {
    connect();
    Remote<Qp> to_a(a.device, *a.qps[0], {});
    Remote<Qp> to_b(b.device, *b.qps[0], {});
    {
        const std::array<Sge, 1> place{b.mr->sge(64, 8)};
        EXPECT_EQ(to_b.post_receive({5, place}), PostVerdict::Posted);
        std::array<std::uint8_t, 5> inline_bytes{'c', 'a', 'i', 'r', 'n'};
        SendRequest made = request(1);
        made.is_inline = true;
        made.inline_bytes = inline_bytes;
        EXPECT_EQ(to_a.post_send(made), PostVerdict::Posted);
        inline_bytes = {};
    }
    run();
    EXPECT_EQ(drain(*b.receives).at(0).wr_id, 5U);
    EXPECT_EQ(drain(*a.sends).at(0).wr_id, 1U);
    EXPECT_EQ(std::memcmp(b.memory().data() + 64, "cairn", 5), 0);
    EXPECT_FALSE(destroy(a.qps[0]).ok());
}

// A queue pair to which more is posted whenever something is taken, as by busy threads.
struct Restless : Shared {
    using Request = SendRequest;

    [[nodiscard]] PostVerdict post_send(const SendRequest& request) noexcept {
        ++taken;
        if (remote != nullptr && taken < 10'000) {
            (void)remote->post_send(request);
        }
        return PostVerdict::Posted;
    }
    [[nodiscard]] PostVerdict post_receive(const ReceiveRequest&) noexcept { return PostVerdict::Posted; }

    Remote<Restless>* remote = nullptr;
    std::uint32_t taken = 0;
};

TEST_F(RemotePosting, WhoPostsWithoutEndKeepsNoTurnFromItsEnd) {
    Restless pair;
    Remote<Restless> remote(a.device, pair, {4});
    pair.remote = &remote;
    EXPECT_EQ(remote.post_send(request(1)), PostVerdict::Posted);
    a.worker->turn(now);
    EXPECT_EQ(pair.taken, 4U);
    EXPECT_EQ(a.worker->next_deadline(), Instant{});  // more is there
    pair.remote = nullptr;
    a.worker->turn(now);
    EXPECT_EQ(pair.taken, 5U);
    EXPECT_NE(a.worker->next_deadline(), Instant{});
}

TEST_F(RemotePosting, AFullQueueHoldsThemBackAndAFullRingIsTold) {
    QpCapacity small;
    small.send_slots = 2;
    connect(small);
    Remote<Qp> remote(a.device, *a.qps[0], {4});
    for (std::uint64_t i = 0; i < 4; ++i) {
        SendRequest write = request(i);
        write.opcode = WorkOpcode::RdmaWrite;
        write.remote_address = b.mr->address();
        write.rkey = b.mr->rkey();
        EXPECT_EQ(remote.post_send(write), PostVerdict::Posted);
    }
    EXPECT_EQ(remote.post_send(request(9)), PostVerdict::QueueFull);
    run();
    const std::vector<Completion> done = drain(*a.sends);
    ASSERT_EQ(done.size(), 4U);
    for (std::uint64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(done[i].wr_id, i);
    }
}

// The peer may be slow, or never ready.
TEST_F(RemotePosting, AFullQueueThatOnlyThePeerEmptiesLetsTheWorkerSleep) {
    QpCapacity small;
    small.send_slots = 2;
    connect(small);
    run();
    Remote<Qp> remote(a.device, *a.qps[0], {4});
    for (std::uint64_t i = 0; i < 4; ++i) {
        ASSERT_EQ(remote.post_send(request(i)), PostVerdict::Posted);
    }
    int turns = 0;
    for (; turns < 100 && a.worker->next_deadline() <= now; ++turns) {
        (void)a.turn(now);
    }
    EXPECT_LT(turns, 10);
}

// No packet reports that room: datagrams are complete when they have left.
TEST_F(RemotePosting, AFullQueueThatSendingEmptiesIsFilledAgainAtOnce) {
    QpCapacity small;
    small.send_slots = 2;
    auto from = a.device.create_datagram_qp(*a.pd, small, {*a.sends, *a.receives}).value();
    ASSERT_EQ(from->bring_up(Qkey{1}), std::nullopt);
    const auto way = a.device.create_ah(b.port.local_address(), 0xc000, now).value();
    Remote<UdQp> remote(a.device, *from, {8});
    for (std::uint64_t i = 0; i < 7; ++i) {
        ASSERT_EQ(remote.post_send({request(i), way.get(), Qpn{7}, Qkey{1}}), PostVerdict::Posted);
    }
    int turns = 0;
    for (; turns < 100 && a.worker->next_deadline() <= now; ++turns) {
        (void)a.turn(now);  // as a worker that sleeps when it may
    }
    EXPECT_EQ(drain(*a.sends).size(), 7U);
    EXPECT_LT(turns, 10);
}

TEST_F(RemotePosting, WhatIsRefusedIsTheDriversToKnow) {
    a.qps.push_back(a.make_qp());
    Remote<Qp> remote(a.device, *a.qps[0], {});
    EXPECT_EQ(remote.post_send(request(3)), PostVerdict::Posted);
    EXPECT_EQ(remote.post_receive({4, sges}), PostVerdict::Posted);
    const std::array<Sge, 9> many{};
    EXPECT_EQ(remote.post_receive({4, many}), PostVerdict::TooManySges);
    SendRequest too_long = request(3);
    const std::array<std::uint8_t, 65> bytes{};
    too_long.is_inline = true;
    too_long.inline_bytes = bytes;
    EXPECT_EQ(remote.post_send(too_long), PostVerdict::BadInline);
    for (const std::uint64_t wr_id : {3U, 4U}) {  // the queue pair is in RESET
        run();
        const std::optional<RefusedPost> refused = remote.poll_refused();
        ASSERT_TRUE(refused.has_value());
        EXPECT_EQ(refused->wr_id, wr_id);
        EXPECT_EQ(refused->is_receive, wr_id == 4);
        EXPECT_EQ(refused->verdict, PostVerdict::WrongState);
    }
    EXPECT_FALSE(remote.poll_refused().has_value());
}

TEST_F(RemotePosting, DatagramsGoTheSameWay) {
    auto from = a.device.create_datagram_qp(*a.pd, {}, {*a.sends, *a.receives}).value();
    auto to = b.device.create_datagram_qp(*b.pd, {}, {*b.sends, *b.receives}).value();
    ASSERT_EQ(from->bring_up(Qkey{1}), std::nullopt);
    ASSERT_EQ(to->bring_up(Qkey{1}), std::nullopt);
    const auto way = a.device.create_ah(b.port.local_address(), 0xc000, now).value();
    Remote<UdQp> at_a(a.device, *from, {});
    Remote<UdQp> at_b(b.device, *to, {});
    const std::array<Sge, 1> place{b.mr->sge(0, 64)};
    ASSERT_EQ(at_b.post_receive({1, place}), PostVerdict::Posted);
    ASSERT_EQ(at_a.post_send({request(2), way.get(), to->qpn(), Qkey{1}}), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*b.receives).size(), 1U);
}

// A post leaves mail for the driver: a driver that sleeps until its next deadline does not sleep.
TEST_F(RemotePosting, WhatIsPostedIsSomethingToDoAtOnce) {
    connect();
    Remote<Qp> remote(a.device, *a.qps[0], {});
    run();
    EXPECT_GT(a.worker->next_deadline(), now);
    EXPECT_EQ(remote.post_send(request(1)), PostVerdict::Posted);
    EXPECT_EQ(remote.post_send(request(2)), PostVerdict::Posted);
    EXPECT_LE(a.worker->next_deadline(), now);
    EXPECT_TRUE(a.worker->turn(now));
    run();
    EXPECT_GT(a.worker->next_deadline(), now);
    EXPECT_EQ(remote.post_send(request(3)), PostVerdict::Posted);
    EXPECT_LE(a.worker->next_deadline(), now);
}

// A device may end while mail about a post is under way.
TEST_F(RemotePosting, ADeviceThatEndsLeavesNothingInTheMail) {
    test::WirePort port("10.0.0.9", 64);
    const auto worker = worker::Worker::create(port, VerbsHost::config_of(9), now).value();
    Restless pair;
    alignas(Device) std::array<std::byte, sizeof(Device)> place{};
    {
        Device& device = *new (place.data()) Device(*worker);
        {
            Remote<Restless> remote(device, pair, {4});
            EXPECT_EQ(remote.post_send(request(1)), PostVerdict::Posted);
        }
        device.~Device();
    }
    constexpr std::byte kGone{0xa5};
    place.fill(kGone);
    EXPECT_TRUE(worker->turn(now));  // the device is gone
    EXPECT_EQ(std::count(place.begin(), place.end(), kGone), static_cast<std::ptrdiff_t>(place.size()));
    EXPECT_EQ(pair.taken, 0U);
    {
        Device device(*worker);
        Remote<Restless> remote(device, pair, {4});
        EXPECT_EQ(remote.post_send(request(1)), PostVerdict::Posted);
    }  // and the worker ends with it
}

// Two threads post; this one drives both devices.
TEST_F(RemotePosting, TwoThreadsPostAndEachKeepsItsOrder) {
    constexpr std::uint64_t kEach = 2000;
    connect();
    Remote<Qp> remote(a.device, *a.qps[0], {16});
    const auto post_all = [&](std::uint64_t thread) {
        for (std::uint64_t i = 0; i < kEach;) {
            SendRequest add;
            const std::array<Sge, 1> result{a.mr->sge(64 + thread * 8, 8)};
            add.wr_id = thread << 32U | i;
            add.opcode = WorkOpcode::FetchAdd;
            add.sges = result;
            add.remote_address = b.mr->address();
            add.rkey = b.mr->rkey();
            add.swap_or_add = 1;
            if (remote.post_send(add) == PostVerdict::Posted) {
                ++i;
            } else {
                std::this_thread::yield();
            }
        }
    };
    std::thread first(post_all, 0);
    std::thread second(post_all, 1);
    std::array<std::uint64_t, 2> next{};
    std::uint64_t done = 0;
    for (int idle = 0; done < 2 * kEach && idle < 1'000'000;) {
        (void)a.turn(now);  // one turn each: a completion queue that is not polled overruns
        (void)b.turn(now);
        const std::vector<Completion> completions = drain(*a.sends);
        for (const Completion& one : completions) {
            EXPECT_EQ(one.status, CompletionStatus::Success);
            EXPECT_EQ(one.wr_id & 0xffffffffU, next[one.wr_id >> 32U]++);
        }
        done += completions.size();
        idle = completions.empty() ? idle + 1 : 0;
        std::this_thread::yield();
    }
    first.join();
    second.join();
    EXPECT_EQ(done, 2 * kEach);
    EXPECT_EQ(b.words[0], 2 * kEach);
    EXPECT_FALSE(remote.poll_refused().has_value());
}

}  // namespace
}  // namespace cairn::verbs
