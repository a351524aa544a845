// Datagrams at the wrong worker: batches for several workers, and how each worker gets its own.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "tests/unit/port/workers_on_sockets.hpp"

namespace cairn::port {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

class HandOver : public WorkersOnSockets {
protected:
    void SetUp() override {
        WorkersOnSockets::SetUp();
        if (!IsSkipped()) {
            ports = open(config_of(1, 2));
        }
    }
    // Sends from a peer with one worker, whose datagrams of a turn are one batch. Queue pairs of both workers alternate
    // in it.
    void send_mixed(std::size_t count, std::uint32_t first_qpn = 0x100) {
        if (client == nullptr) {
            client = std::move(open(config_of(2, 1))[0]);
        }
        Numbers qpns(count);
        for (std::size_t i = 0; i < count; ++i) {
            qpns[i] = first_qpn ^ (i % 2);
        }
        const std::uint64_t before = count_of(*client, UringCounter::TransmittedBatches);
        send(*client, address(1), qpns);
        EXPECT_EQ(count_of(*client, UringCounter::TransmittedBatches), before + 1);
    }
    [[nodiscard]] bool nothing_in_use() const {
        return ports[0]->buffers_in_use() == 0 && ports[1]->buffers_in_use() == 0;
    }

    Ports ports;
    std::unique_ptr<UringPort> client;
};

class HandOverV4 : public HandOver {};

TEST_P(HandOver, ASenderKeepsTheBatchesOfItsPeersWorkersApart) {
    Numbers qpns;
    for (std::uint32_t i = 0; i < 40; ++i) {
        qpns.push_back(0x100 + i % 5);  // three of worker 0, two of worker 1
    }
    send(*ports[1], address(1), qpns);
    EXPECT_EQ(count_of(*ports[1], UringCounter::TransmittedBatches), 2U);
    const Numbers first = receive(*ports[0], 100);
    const Numbers second = receive(*ports[1], 100);
    EXPECT_EQ(first.size(), 24U);
    EXPECT_EQ(second.size(), 16U);
    EXPECT_TRUE(std::all_of(second.begin(), second.end(), [](std::uint32_t number) { return number % 5 % 2 == 1; }));
    EXPECT_TRUE(std::is_sorted(first.begin(), first.end()) && std::is_sorted(second.begin(), second.end()));
    EXPECT_EQ(count_of(*ports[0], UringCounter::HandedOver) + count_of(*ports[1], UringCounter::HandedOver), 0U);
    EXPECT_TRUE(nothing_in_use());
}

TEST_P(HandOverV4, EachWorkerGetsItsOwnOfABatchInOrder) {
    send_mixed(60, 0x101);  // so that worker 1 receives it
    EXPECT_EQ(receive(*ports[1], 30), counted(0, 2, 30));
    EXPECT_EQ(count_of(*ports[1], UringCounter::HandedOver), 30U);
    EXPECT_EQ(ports[0]->next_deadline(), Instant{});  // at once
    EXPECT_EQ(receive(*ports[0], 30), counted(1, 2, 30));
    EXPECT_EQ(ports[0]->next_deadline(), Instant::never());
    EXPECT_EQ(count_of(*ports[0], UringCounter::ReceivedBatches), 0U);
    EXPECT_EQ(count_of(*ports[0], UringCounter::SolvedIds), 0U) << "its place in the batch goes with a datagram";
    EXPECT_EQ(count_of(*ports[0], UringCounter::Received), 30U);
    EXPECT_TRUE(nothing_in_use());
}

// The peer is not Cairn: its kernel cuts one send into datagrams.
TEST_P(HandOver, AForeignPeersBatchIsDividedToo) {
    const int fd = socket(GetParam() ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_storage from{};
    socklen_t length = to_sockaddr(address(2), 0, from);
    ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&from), length), 0);
    ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&from), &length), 0);
    PathKey key{address(2), address(1), 0, 0};
    (void)from_sockaddr(from, key.udp_source_port);
    Path path(key);
    IpIdDeltas deltas;
    std::vector<std::uint8_t> batch(kBytes * 6);
    for (std::uint16_t i = 0; i < 6; ++i) {
        std::uint8_t* const at = batch.data() + kBytes * i;
        compose(at, 0x100U + i % 2U, i);
        std::uint32_t icrc = path.icrc(Direction::Transmit, at, kBytes);
        icrc ^= GetParam() || i == 0 ? 0 : deltas.delta(kBytes, i);
        std::memcpy(at + kBytes - kIcrcBytes, &icrc, sizeof(icrc));
    }
    const int segment = kBytes;
    ASSERT_EQ(setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)), 0);
    sockaddr_storage to{};
    length = to_sockaddr(address(1), test::own_udp_port(), to);
    ASSERT_EQ(sendto(fd, batch.data(), batch.size(), 0, reinterpret_cast<const sockaddr*>(&to), length),
              static_cast<ssize_t>(batch.size()));
    ::close(fd);
    EXPECT_EQ(receive(*ports[0], 3), counted(0, 2, 3));
    EXPECT_EQ(receive(*ports[1], 3), counted(1, 2, 3));
    EXPECT_EQ(count_of(*ports[0], UringCounter::HandedOver), 3U);
    EXPECT_TRUE(nothing_in_use());
}

TEST_P(HandOverV4, WhatIsHandedOverIsAnsweredInItsOwnMemory) {
    send_mixed(8);
    EXPECT_EQ(receive(*ports[0], 4).size(), 4U);
    std::array<PacketRef, 16> burst;
    std::size_t came = 0;
    for (int tries = 0; tries < 100 && came < 4; ++tries) {
        came += ports[1]->receive_burst(std::span(burst).subspan(came), now);
    }
    ASSERT_EQ(came, 4U);
    std::array<TxPacket, 4> answers;
    for (std::size_t i = 0; i < came; ++i) {
        EXPECT_EQ(burst[i].path->key().remote, address(2));
        EXPECT_EQ(burst[i].path->key().local, address(1));
        EXPECT_EQ(burst[i].room, kMaxUdpPayloadBytes);
        answers[i].packet = burst[i];
    }
    EXPECT_EQ(ports[1]->transmit_burst(answers, now), answers.size());
    ports[1]->wait({}, -1);
    EXPECT_EQ(receive(*client, 4), counted(1, 2, 4));
    EXPECT_TRUE(nothing_in_use());
}

TEST_P(HandOverV4, AFullRingCostsTheLastDatagramsAndIsCounted) {
    constexpr std::size_t kRing = 512;
    for (std::size_t sent = 0; sent < 1'200; sent += 60) {
        send_mixed(60);
        EXPECT_EQ(receive(*ports[0], 30).size(), 30U);
    }
    EXPECT_EQ(count_of(*ports[0], UringCounter::HandedOver), kRing);
    EXPECT_EQ(count_of(*ports[0], UringCounter::HandedOverFull), 600 - kRing);
    EXPECT_EQ(receive(*ports[1], kRing).size(), kRing);
    EXPECT_TRUE(nothing_in_use());
    send_mixed(2);
    EXPECT_EQ(receive(*ports[0], 1).size(), 1U);
    EXPECT_EQ(receive(*ports[1], 1).size(), 1U) << "there is room again";
}

TEST_P(HandOverV4, AFloodOfWhatOthersHandOverLeavesRoomForTheSocket) {
    for (std::size_t sent = 0; sent < 600; sent += 60) {
        send_mixed(60);
        EXPECT_EQ(receive(*ports[0], 30).size(), 30U);
    }
    send(*ports[0], address(1), {0x103});
    std::array<PacketRef, 16> burst;
    const std::size_t came = ports[1]->receive_burst(burst, now);
    EXPECT_EQ(came, 9U);
    EXPECT_EQ(count_of(*ports[1], UringCounter::ReceivedBatches), 1U);
    ports[1]->release_burst(std::span(burst).first(came));
}

TEST_P(HandOverV4, AFloodOfAStrangersBrokenOnesEndsWhereTheyBelong) {
    constexpr std::uint16_t kLarge = 300;  // sent in place, so that it can be damaged on its way
    client = std::move(open(config_of(2, 1))[0]);
    std::array<PacketRef, 61> buffers;
    ASSERT_EQ(client->allocate_burst(buffers), buffers.size());
    std::array<TxPacket, 61> packets;
    for (std::uint32_t i = 0; i < buffers.size(); ++i) {
        compose(buffers[i].data, i == 0 ? 0x100 : 0x101, i);
        packets[i].packet = buffers[i];
        packets[i].packet.path = client->open_path({address(2), address(1), 0, 0}, now);
        packets[i].packet.len = kLarge;
    }
    ASSERT_EQ(client->transmit_burst(packets, now), packets.size());
    for (std::uint32_t i = 1; i < buffers.size(); ++i) {
        buffers[i].data[200] ^= 1U;
    }
    client->wait({}, -1);
    std::array<PacketRef, 16> burst;
    ASSERT_EQ(ports[0]->receive_burst(burst, now), 1U);
    ports[0]->release_burst(std::span(burst).first(1));
    EXPECT_EQ(ports[1]->receive_burst(burst, now), 0U);
    EXPECT_EQ(count_of(*ports[1], UringCounter::BadIcrc), 8U);
    EXPECT_EQ(ports[1]->next_deadline(), Instant{}) << "the others wait for their turn";
    EXPECT_TRUE(receive(*ports[1], 1).empty());
    EXPECT_EQ(count_of(*ports[1], UringCounter::BadIcrc), 60U);
    EXPECT_TRUE(nothing_in_use());
}

TEST_P(HandOverV4, WithoutABufferItWaits) {
    std::array<PacketRef, 1'024> all;
    ASSERT_EQ(ports[1]->allocate_burst(all), all.size());
    send_mixed(4);
    EXPECT_EQ(receive(*ports[0], 2).size(), 2U);
    EXPECT_TRUE(receive(*ports[1], 2).empty());
    ports[1]->release_burst(all);
    EXPECT_EQ(receive(*ports[1], 2).size(), 2U);
    EXPECT_TRUE(nothing_in_use());
}

TEST_P(HandOverV4, WhatWaitedAtAnotherWorkerCountsAsWaiting) {
    std::array<PacketRef, 8> burst;
    now = Instant{50'000};
    EXPECT_EQ(ports[0]->receive_burst(burst, now), 0U);
    send_mixed(2);
    now = Instant{90'000};
    EXPECT_EQ(ports[1]->receive_burst(burst, now), 0U);
    ports[0]->release_burst(std::span(burst).first(ports[0]->receive_burst(burst, now)));
    now = Instant{95'000};
    ASSERT_EQ(ports[1]->receive_burst(burst, now), 1U);
    EXPECT_EQ(ports[1]->empty_at(), Instant{50'000});
    ports[1]->release_burst(std::span(burst).first(1));
}

TEST_P(HandOverV4, ItComesBetweenThePartsOfABatch) {
    send(*ports[0], address(1), Numbers(40, 0x101));
    std::array<PacketRef, 16> part;
    ASSERT_EQ(ports[1]->receive_burst(part, now), part.size());
    send_mixed(2);
    EXPECT_EQ(receive(*ports[0], 1), Numbers{0});
    Numbers expected{1};
    const Numbers rest = counted(16, 1, 24);
    expected.insert(expected.end(), rest.begin(), rest.end());
    EXPECT_EQ(receive(*ports[1], 25), expected);
    ports[1]->release_burst(part);
    EXPECT_TRUE(nothing_in_use());
}

TEST_P(HandOverV4, TwoStrangersAtOnceAreToldApart) {
    Ports other = open(config_of(3, 1));
    send(*other[0], address(1), {0x101});
    std::array<PacketRef, 4> burst;
    EXPECT_EQ(ports[1]->receive_burst(std::span(burst).first(0), now), 0U);  // it is there, but not handed out
    send_mixed(2);
    EXPECT_EQ(receive(*ports[0], 1), Numbers{0});
    std::size_t came = 0;
    for (int tries = 0; tries < 100 && came < 2; ++tries) {
        came += ports[1]->receive_burst(std::span(burst).subspan(came), now);
    }
    ASSERT_EQ(came, 2U);
    EXPECT_TRUE(burst[0].icrc_ok && burst[1].icrc_ok);
    EXPECT_EQ(burst[0].path->key().remote, address(3));
    EXPECT_EQ(burst[1].path->key().remote, address(2));
    ports[1]->release_burst(std::span(burst).first(2));
    EXPECT_TRUE(nothing_in_use());
}

// The worker sleeps once, for any time: a blocking receive would end by itself after a second.
TEST_P(HandOverV4, ItWakesTheWorkerThatSleeps) {
    std::atomic<bool> asleep{false};
    std::thread sleeper([&] {
        std::array<PacketRef, 8> burst;
        EXPECT_EQ(ports[1]->receive_burst(burst, now), 0U);
        const Clock::time_point begin = Clock::now();
        asleep = true;
        ports[1]->wait(seconds(30), -1);
        EXPECT_EQ(ports[1]->next_deadline(), Instant{});
        EXPECT_LT(seconds_since(begin), 15);
        EXPECT_EQ(receive(*ports[1], 1), Numbers{1});
    });
    while (!asleep) {
        std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1'500));
    send_mixed(2);
    EXPECT_EQ(receive(*ports[0], 1), Numbers{0});
    sleeper.join();
}

TEST_P(HandOverV4, WhatIsThereAlreadyIsNotSleptThrough) {
    send_mixed(2);
    EXPECT_EQ(receive(*ports[0], 1), Numbers{0});
    const Clock::time_point begin = Clock::now();
    ports[1]->wait(seconds(30), -1);
    EXPECT_LT(seconds_since(begin), 15);
    EXPECT_EQ(receive(*ports[1], 1), Numbers{1});
}

TEST_P(HandOverV4, ItMakesTheDescriptorReadableUntilItIsReceived) {
    pollfd one{ports[1]->descriptor(), POLLIN, 0};
    ASSERT_GE(one.fd, 0);
    ports[1]->wait({}, -1);
    EXPECT_EQ(poll(&one, 1, 0), 0);
    send_mixed(2);
    EXPECT_EQ(receive(*ports[0], 1), Numbers{0});
    EXPECT_EQ(poll(&one, 1, 10'000), 1);
    EXPECT_EQ(receive(*ports[1], 1), Numbers{1});
    ports[1]->wait({}, -1);
    EXPECT_EQ(poll(&one, 1, 0), 0);
}

TEST_P(HandOverV4, WhatComesToAGroupIsForWhoeverJoinedIt) {
    const auto group = net::IpAddress::parse("239.7.7.9").value();
    ASSERT_TRUE(ports[1]->join(group).ok());
    client = std::move(open(config_of(2, 1))[0]);
    send(*client, group, {0x100, 0xffffff});  // neither number belongs to worker 1
    ports[1]->wait(seconds(2), -1);
    EXPECT_EQ(receive(*ports[1], 2), (Numbers{0, 1}));
    EXPECT_EQ(count_of(*ports[1], UringCounter::HandedOver), 0U);
}

// Both turn as fast as they can while a peer sends less than the rings hold.
TEST_P(HandOverV4, NothingIsLostBetweenTwoThatTurn) {
    constexpr std::uint32_t kRounds = 400;
    std::array<std::atomic<std::uint32_t>, 2> came{};
    std::atomic<bool> done{false};
    const auto turn = [&](std::size_t worker) {
        std::array<PacketRef, 64> burst;
        while (!done) {
            const std::size_t count = ports[worker]->receive_burst(burst, now);
            ports[worker]->release_burst(std::span(burst).first(count));
            came[worker] += static_cast<std::uint32_t>(count);
            if (count == 0) {
                ports[worker]->wait(milliseconds(1), -1);
            }
        }
    };
    std::thread first(turn, 0);
    std::thread second(turn, 1);
    const Clock::time_point begin = Clock::now();
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
        send_mixed(40, 0x100 + round % 2);
        while ((came[0] < round * 20 || came[1] < round * 20) && seconds_since(begin) < 60) {
            std::this_thread::yield();
        }
    }
    done = true;
    first.join();
    second.join();
    EXPECT_EQ(came[0], kRounds * 20);
    EXPECT_EQ(came[1], kRounds * 20);
    EXPECT_TRUE(nothing_in_use());
}

INSTANTIATE_TEST_SUITE_P(Families, HandOver, testing::Bool(), family_of);
INSTANTIATE_TEST_SUITE_P(Families, HandOverV4, testing::Values(false), family_of);

}  // namespace
}  // namespace cairn::port
