// The content of the buffers that handlers get for answers, in any RPC system: typed tests, as in rpc_promises.hpp. A
// system runs them by
//
//     INSTANTIATE_TYPED_TEST_SUITE_P(Erpc, RpcCleanRoom, ErpcPair);
#pragma once

#include <algorithm>

#include "tests/support/rpc_fixture.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::rpc::test {

template <class Pair>
class RpcCleanRoom : public RpcPromises<Pair> {};

TYPED_TEST_SUITE_P(RpcCleanRoom);

// A handler that writes less than it reserved sends zeros, whatever memory it got.
TYPED_TEST_P(RpcCleanRoom, RoomForAnAnswerHoldsNoFormerMessage) {
    constexpr std::uint8_t kSecret = 0xa7;
    const std::vector<std::uint8_t> secret(8, kSecret);
    this->pair.server_port().tap = [&](std::span<const std::uint8_t> datagram, const net::IpAddress& to) {
        const bool tells =
            std::search(datagram.begin(), datagram.end(), secret.begin(), secret.end()) != datagram.end();
        EXPECT_FALSE(tells && to == net::IpAddress::parse("10.0.0.3").value());
    };
    const std::vector<std::uint32_t> sizes{1, 3, 7, 15, 32, 60, 100, 500, 3000, 5000, 5999};
    const SessionId first = this->pair.connect();
    std::uint64_t tag = 0;
    for (const std::uint32_t bytes : sizes) {
        this->post(this->client(), first, ++tag, kEcho, std::vector(bytes, kSecret));
        this->pair.run(milliseconds(1));
        ASSERT_EQ(this->results.at(tag), CallStatus::Ok);
        this->post_lazy(this->client(), first, ++tag, bytes);
        this->pair.run(milliseconds(1));
        EXPECT_EQ(this->responses.at(tag), std::vector<std::uint8_t>(bytes)) << "of the same client";
    }
    this->client().disconnect(first, this->pair.now);
    this->pair.run(milliseconds(5));
    const SessionId second = this->pair.connect_other();
    for (const std::uint32_t bytes : sizes) {
        this->post_lazy(this->other(), second, ++tag, bytes);
        this->post(this->other(), second, ++tag, kKeep, std::vector<std::uint8_t>(40));
        this->pair.run(milliseconds(1));
        EXPECT_EQ(this->responses.at(tag - 1), std::vector<std::uint8_t>(bytes));
        const RequestHandle handle = this->kept.back();
        ASSERT_EQ(this->server().reserve(handle, bytes / 2).size(), bytes / 2);
        ASSERT_EQ(this->server().reserve(handle, bytes).size(), bytes);
        EXPECT_TRUE(this->server().respond(handle, this->pair.now));
        this->pair.run(milliseconds(1));
        EXPECT_EQ(this->responses.at(tag), std::vector<std::uint8_t>(bytes)) << "answered late";
    }
    this->pair.server_port().tap = [](auto, const auto&) {};
}

// A handler that learns late how long its answer is trims the room, or asks for more.
TYPED_TEST_P(RpcCleanRoom, RoomThatIsTrimmedKeepsWhatWasWritten) {
    const SessionId session = this->pair.connect();
    this->post(session, 1, kKeep);
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->kept.size(), 1U);
    const std::span<std::uint8_t> room = this->server().reserve(this->kept[0], 600);
    ASSERT_EQ(room.size(), 600U);
    std::fill(room.begin(), room.end(), std::uint8_t{5});
    ASSERT_EQ(this->server().reserve(this->kept[0], 2).size(), 2U);
    ASSERT_EQ(this->server().reserve(this->kept[0], 4).size(), 4U);
    EXPECT_TRUE(this->server().respond(this->kept[0], this->pair.now));
    this->pair.run(milliseconds(1));
    EXPECT_EQ(this->responses.at(1), (std::vector<std::uint8_t>{5, 5, 0, 0}));
}

// A handler that asks for too much, and then for less, may get memory that it had before.
TYPED_TEST_P(RpcCleanRoom, RoomAfterNoneHoldsNoFormerMessage) {
    const SessionId session = this->pair.connect();
    this->post(this->client(), session, 1, kEcho, std::vector<std::uint8_t>(3000, 0xa7));
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->results.at(1), CallStatus::Ok);
    this->post(session, 2, kKeep);
    this->pair.run(milliseconds(1));
    ASSERT_EQ(this->kept.size(), 1U);
    EXPECT_TRUE(this->server().reserve(this->kept[0], kMaxMessageBytes + 1).empty());
    ASSERT_EQ(this->server().reserve(this->kept[0], 100).size(), 100U);
    EXPECT_TRUE(this->server().respond(this->kept[0], this->pair.now));
    this->pair.run(milliseconds(1));
    EXPECT_EQ(this->responses.at(2), std::vector<std::uint8_t>(100));
}

REGISTER_TYPED_TEST_SUITE_P(RpcCleanRoom, RoomForAnAnswerHoldsNoFormerMessage, RoomThatIsTrimmedKeepsWhatWasWritten,
                            RoomAfterNoneHoldsNoFormerMessage);

}  // namespace cairn::rpc::test
