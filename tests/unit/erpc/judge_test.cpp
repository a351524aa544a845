// The verdicts on packets, each for every state of a slot, and the retransmission timeout.
#include "rpc/erpc/judge.hpp"

#include <gtest/gtest.h>

#include <array>

#include "rpc/erpc/client_session.hpp"

namespace cairn::erpc {
namespace {

constexpr std::uint64_t kCurrent = 4000;
constexpr std::uint32_t kPacketBytes = 1008;
constexpr std::uint32_t kMost = 100'000;
constexpr std::uint32_t kFivePackets = 4 * kPacketBytes + 8;
constexpr std::array<ServerSlotState, 7> kStates{
    ServerSlotState::Idle,     ServerSlotState::Receiving, ServerSlotState::GivenUp, ServerSlotState::Executing,
    ServerSlotState::Answered, ServerSlotState::Forgotten, ServerSlotState::Declined};

Header small(std::uint64_t request_number, std::uint32_t message_bytes = 40, std::uint16_t packet_number = 0) {
    Header header;
    header.request_number = request_number;
    header.message_bytes = message_bytes;
    header.packet_number = packet_number;
    return header;
}

TEST(JudgeRequest, EveryStateAndEveryNumberHasItsVerdict) {
    using V = RequestVerdict;
    struct Row {
        std::uint64_t number;
        std::array<RequestVerdict, 7> verdicts;  // by state
    };
    for (const Row& row :
         {Row{0, {V::Stale, V::Stale, V::Stale, V::Stale, V::Stale, V::Stale, V::Stale}},
          Row{kCurrent - 1, {V::Stale, V::Stale, V::Stale, V::Stale, V::Stale, V::Stale, V::Stale}},
          Row{kCurrent, {V::Stale, V::WrongSize, V::WrongSize, V::Busy, V::Resend, V::Forgotten, V::Forgotten}},
          Row{kCurrent + kSlotsPerSession,
              {V::Execute, V::Execute, V::Execute, V::Busy, V::Execute, V::Execute, V::Execute}},
          Row{kCurrent + kMaxRequestJump,
              {V::Execute, V::Execute, V::Execute, V::Busy, V::Execute, V::Execute, V::Execute}},
          Row{kCurrent + kMaxRequestJump + 1,
              {V::Future, V::Future, V::Future, V::Future, V::Future, V::Future, V::Future}},
          Row{kCurrent + kRequestNumberMask / 2,
              {V::Future, V::Future, V::Future, V::Future, V::Future, V::Future, V::Future}},
          Row{kCurrent + kRequestNumberMask / 2 + 1,
              {V::Stale, V::Stale, V::Stale, V::Stale, V::Stale, V::Stale, V::Stale}},
          Row{kRequestNumberMask, {V::Stale, V::Stale, V::Stale, V::Stale, V::Stale, V::Stale, V::Stale}}}) {
        for (std::size_t i = 0; i < kStates.size(); ++i) {
            EXPECT_EQ(judge_request(kStates[i], kCurrent, small(row.number), 40), row.verdicts[i])
                << row.number << " in state " << i;
        }
    }
}

TEST(JudgeRequest, NumbersComeTo0BehindTheirEnd) {
    constexpr std::uint64_t kLast = kRequestNumberMask - kSlotsPerSession + 1;
    EXPECT_EQ(judge_request(ServerSlotState::Answered, kLast, small(0), 40), RequestVerdict::Execute);
    EXPECT_EQ(judge_request(ServerSlotState::Answered, kLast, small(kLast), 40), RequestVerdict::Resend);
    EXPECT_EQ(judge_request(ServerSlotState::Answered, 0, small(kLast), 40), RequestVerdict::Stale);
    EXPECT_EQ(judge_request(ServerSlotState::Answered, kLast, small(kMaxRequestJump - 8), 40), RequestVerdict::Execute);
    EXPECT_EQ(judge_request(ServerSlotState::Answered, kLast, small(kMaxRequestJump), 40), RequestVerdict::Future);
    ServerSlot slot;
    slot.request_number = kLast;
    slot.state = ServerSlotState::Answered;
    EXPECT_EQ(judge_request_packet(slot, small(0, 5000), kPacketBytes, {kPacketBytes, kMost, true}),
              PacketVerdict::Begin);
    slot.request_number = 0;
    EXPECT_EQ(judge_request_packet(slot, small(kLast, 5000), kPacketBytes, {kPacketBytes, kMost, true}),
              PacketVerdict::Stale);
}

TEST(JudgeRequest, SizesThatMakeNoSenseAreRefused) {
    const auto judged = [](const Header& header, std::size_t payload_bytes) {
        return judge_request(ServerSlotState::Answered, kCurrent, header, payload_bytes);
    };
    EXPECT_EQ(judged(small(kCurrent + 8, 0), 0), RequestVerdict::Execute);
    EXPECT_EQ(judged(small(kCurrent + 8, 40), 41), RequestVerdict::WrongSize);
    EXPECT_EQ(judged(small(kCurrent + 8, 41), 40), RequestVerdict::WrongSize);
    EXPECT_EQ(judged(small(kCurrent + 8, 40, 1), 40), RequestVerdict::WrongSize);
}

class JudgeRequestPacket : public testing::Test {
protected:
    JudgeRequestPacket() {
        slot.request_number = kCurrent;
        slot.request_type = 3;
        slot.request_packets = 5;
        transfer.request.bytes = 5000;
    }
    [[nodiscard]] PacketVerdict judged(ServerSlotState state, std::uint64_t number, std::uint32_t message_bytes,
                                       std::uint8_t type = 3, std::uint16_t packet = 0, std::size_t payload = kNone) {
        slot.state = state;
        slot.transfer = state == ServerSlotState::Receiving ? &transfer : nullptr;
        Header header = small(number, message_bytes, packet);
        header.request_type = type;
        payload = payload == kNone ? bytes_of_packet(message_bytes, kPacketBytes, packet) : payload;
        return judge_request_packet(slot, header, payload, {kPacketBytes, kMost, selective});
    }

    bool selective = true;
    ServerTransfer transfer;
    ServerSlot slot;
};

TEST_F(JudgeRequestPacket, EveryStateAndEveryNumberHasItsVerdict) {
    using V = PacketVerdict;
    struct Row {
        std::uint64_t number;
        std::array<PacketVerdict, kStates.size()> verdicts;  // by state
    };
    for (const Row& row :
         {Row{kCurrent - 1, {V::Stale, V::Stale, V::Stale, V::Stale, V::Stale, V::Stale, V::Stale}},
          Row{kCurrent, {V::Stale, V::Part, V::GivenUp, V::Known, V::Known, V::Known, V::Known}},
          Row{kCurrent + kSlotsPerSession, {V::Begin, V::Begin, V::Begin, V::Busy, V::Begin, V::Begin, V::Begin}},
          Row{kCurrent + kMaxRequestJump, {V::Begin, V::Begin, V::Begin, V::Busy, V::Begin, V::Begin, V::Begin}},
          Row{kCurrent + kMaxRequestJump + 1,
              {V::Future, V::Future, V::Future, V::Future, V::Future, V::Future, V::Future}}}) {
        for (std::size_t i = 0; i < kStates.size(); ++i) {
            EXPECT_EQ(judged(kStates[i], row.number, 5000), row.verdicts[i]) << row.number << " in state " << i;
        }
    }
}

TEST_F(JudgeRequestPacket, NeitherAnotherMessageUnderItsNumberNorOneTooLongIsTaken) {
    for (const ServerSlotState state : kStates) {
        EXPECT_EQ(judged(state, kCurrent + 8, kMost + 1), PacketVerdict::TooLong);
        EXPECT_EQ(judged(state, kCurrent + kMaxRequestJump + 8, kMost + 1), PacketVerdict::WrongSize);
    }
    EXPECT_EQ(judged(ServerSlotState::Answered, kCurrent + 8, kMost), PacketVerdict::Begin);
    EXPECT_EQ(judged(ServerSlotState::Receiving, kCurrent, 5001), PacketVerdict::WrongSize);
    EXPECT_EQ(judged(ServerSlotState::Receiving, kCurrent, 5041), PacketVerdict::WrongSize) << "a packet more";
    EXPECT_EQ(judged(ServerSlotState::Receiving, kCurrent, 5000, 4), PacketVerdict::WrongSize);
    EXPECT_EQ(judged(ServerSlotState::Answered, kCurrent, 5041), PacketVerdict::WrongSize);
}

TEST_F(JudgeRequestPacket, APacketThatDoesNotFitItsPlaceIsNotTakenAndBeginsNothing) {
    const auto next = [this](std::uint16_t packet, std::size_t payload) {
        return judged(ServerSlotState::Answered, kCurrent + 8, 5'000, 3, packet, payload);
    };
    EXPECT_EQ(next(0, kPacketBytes), PacketVerdict::Begin);
    EXPECT_EQ(next(0, 0), PacketVerdict::WrongSize);
    EXPECT_EQ(next(0, kPacketBytes - 1), PacketVerdict::WrongSize);
    EXPECT_EQ(next(4, 5'000 - 4 * kPacketBytes), PacketVerdict::Begin);
    EXPECT_EQ(next(5, kPacketBytes), PacketVerdict::WrongSize);
    EXPECT_EQ(judged(ServerSlotState::Receiving, kCurrent, 5'000, 3, 1, 0), PacketVerdict::WrongSize);
}

TEST_F(JudgeRequestPacket, OnlyOneThatCanBeHeldBeginsAMessage) {
    const auto begins = [this](std::uint16_t packet) {
        return judged(ServerSlotState::Idle, kCurrent + 8, kMost, 3, packet);
    };
    slot.state = ServerSlotState::Idle;
    EXPECT_EQ(begins(98), PacketVerdict::Begin);
    selective = false;
    EXPECT_EQ(begins(0), PacketVerdict::Begin);
    EXPECT_EQ(begins(1), PacketVerdict::Early);
}

// 16,384 packets and more: the low bits identify the last one.
TEST_F(JudgeRequestPacket, TheLastPacketOfTheLongestMessageIsKnown) {
    const std::uint32_t packets = packets_of(kMaxMessageBytes, kPacketBytes);
    slot.request_packets = packets;
    slot.state = ServerSlotState::Answered;
    Header header = small(kCurrent, kMaxMessageBytes, static_cast<std::uint16_t>((packets - 1) & kPacketNumberMask));
    header.request_type = 3;
    const std::size_t payload = bytes_of_packet(kMaxMessageBytes, kPacketBytes, packets - 1);
    EXPECT_EQ(judge_request_packet(slot, header, payload, {kPacketBytes, kMaxMessageBytes, true}),
              PacketVerdict::Known);
}

TEST(JudgeResponse, OnlyTheSlotsOwnRequestThatWasSentIsAnswered) {
    ClientSlot slot;
    slot.request_number = kCurrent;
    slot.call = 7;
    slot.sends = 1;
    EXPECT_EQ(judge_response(slot, small(kCurrent), 40), ResponseVerdict::Take);
    EXPECT_EQ(judge_response(slot, small(kCurrent - 8), 40), ResponseVerdict::Stale);
    EXPECT_EQ(judge_response(slot, small(kCurrent + 8), 40), ResponseVerdict::Stale);
    EXPECT_EQ(judge_response(slot, small(kCurrent), 39), ResponseVerdict::WrongSize);
    EXPECT_EQ(judge_response(slot, small(kCurrent, 40, 1), 40), ResponseVerdict::WrongSize);
    slot.sends = 0;
    EXPECT_EQ(judge_response(slot, small(kCurrent), 40), ResponseVerdict::Stale);
    slot.sends = 1;
    slot.call = kNone;
    EXPECT_EQ(judge_response(slot, small(kCurrent), 40), ResponseVerdict::Stale);
}

// A request of three packets. The client has asked for two more packets of the response.
TEST(JudgeResponsePacket, OnlyWhatWasAskedForIsTakenInItsSize) {
    ClientTransfer transfer;
    transfer.request_packets = 3;
    transfer.sent = transfer.sent_most = 5;
    ClientSlot slot;
    slot.transfer = &transfer;
    const auto judged = [&slot](std::uint16_t number, std::size_t payload, std::uint32_t message = kFivePackets) {
        return judge_response_packet(slot, small(kCurrent, message, number), payload, kPacketBytes);
    };
    EXPECT_EQ(judged(1, kPacketBytes), kNone);  // credit returns answer those before the last
    EXPECT_EQ(judged(2, kPacketBytes), 0U);
    EXPECT_EQ(judged(4, kPacketBytes), 2U);
    EXPECT_EQ(judged(5, kPacketBytes), kNone);  // not asked for yet
    EXPECT_EQ(judged(4, kPacketBytes - 1), kNone);
    EXPECT_EQ(judged(4, kPacketBytes, 2 * kPacketBytes), kNone);  // after its end
    transfer.sent = transfer.sent_most = 7;
    EXPECT_EQ(judged(6, 8), 4U);
    EXPECT_EQ(judged(6, kPacketBytes), kNone);
    transfer.response_packets = 5;
    transfer.response_bytes = kFivePackets;
    EXPECT_EQ(judged(6, 8), 4U);
    EXPECT_EQ(judged(2, kPacketBytes, kFivePackets + 8), kNone);  // another message
}

// RFC 6298, 2 and 5.5, with our own bounds.
TEST(RetransmissionTimeout, FollowsTheRoundTripsAndDoublesWithinItsBounds) {
    ClientSession session;
    EXPECT_EQ(session.rto(1), kRtoMin);
    EXPECT_EQ(session.rto(2), kRtoMin * 2);
    EXPECT_EQ(session.rto(4), kRtoMin * 8);
    EXPECT_EQ(session.rto(255), kRtoMax);
    session.round_trip.sample(milliseconds(8));
    EXPECT_EQ(session.round_trip.smoothed(), milliseconds(8));
    EXPECT_EQ(session.rto(1), milliseconds(8 + 4 * 4));
    session.round_trip.sample(milliseconds(16));
    EXPECT_EQ(session.round_trip.smoothed(), milliseconds(9));
    EXPECT_EQ(session.rto(1), milliseconds(9 + 4 * 5));
    session.round_trip.sample(milliseconds(1));
    session.round_trip.sample(seconds(10));
    EXPECT_EQ(session.rto(1), kRtoMax);
}

}  // namespace
}  // namespace cairn::erpc
