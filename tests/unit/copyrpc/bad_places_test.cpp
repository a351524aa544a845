// Peers that lend memory that they do not have, or that answer without a lent room: their connection closes with a
// reason, and others stay open.
#include "tests/unit/copyrpc/stranger.hpp"

namespace cairn::copyrpc {
namespace {

constexpr std::uint32_t kRingAt = 16384;  // the stranger's ring in its memory
constexpr std::uint32_t kAt = 32768;      // the memory that it lends

class CopyrpcBadPlaces : public CopyrpcStranger {
protected:
    // Connects a client, then the stranger with a ring of its own.
    void meet() {
        session = connect();
        RawHello raw;
        Hello{kRing, 16, stranger.mr->address() + kRingAt, stranger.mr->rkey(), rpc::kMaxMessageBytes}.emit(raw);
        ask(raw);
        ASSERT_TRUE(stranger.peer.has_value());
        for (int i = 0; i < 8; ++i) {  // for arriving batches
            EXPECT_EQ(stranger.qp->post_receive(verbs::ReceiveRequest{}), verbs::PostVerdict::Posted);
        }
    }
    Place place(std::uint32_t bytes) const { return {stranger.mr->address() + kAt, stranger.mr->rkey(), bytes}; }
    Message request(const std::optional<Place>& elsewhere, const std::optional<Place>& room = {}) const {
        Message message;
        message.type = kEcho;
        message.charge = 4;
        message.elsewhere = elsewhere;
        message.room = room;
        return message;
    }
    // Checks that the stranger's connection is closed for its place, and that the client's goes on.
    void expect_closed() {
        EXPECT_EQ(breaches(Breach::BadPlace), 1U);
        EXPECT_EQ(server.endpoint->statistics().links.peers_lost, 1U);
        EXPECT_EQ(server.endpoint->requests_kept(), 0U);
        (void)post(session, 1, 20'000);
        run_all(milliseconds(10));
        EXPECT_EQ(count(CallStatus::Ok) + count(CallStatus::ResponseTooLong), 1U);
    }
    // Returns the message in the first batch that came into the stranger's ring.
    std::optional<Message> first_in_ring() {
        return Message::parse(stranger.memory().subspan(kRingAt + kBlockBytes, 4 * kBlockBytes));
    }
    // Makes the server call the stranger, with a long request and room for a long answer.
    void be_called() {
        meet();
        long_request.resize(5000, 0x5a);
        Call call;
        call.type = kKeep;
        call.request = long_request;
        call.response = &answer;
        answer = server.pool.allocate(3000);
        call.context = &ended;
        call.completion = [](void* context, const rpc::CallResult& result) {
            static_cast<std::vector<CallStatus>*>(context)->push_back(result.status);
        };
        ASSERT_EQ(server.endpoint->post(SessionId{1}, call, now).verdict, PostVerdict::Posted);
        run_all(milliseconds(1));
        lent = first_in_ring();
        ASSERT_TRUE(lent && lent->elsewhere && lent->room);
    }
    // READs from that place into the stranger's memory.
    void read(const Place& from, std::uint64_t offset, std::uint32_t bytes) {
        const std::array<verbs::Sge, 1> pieces{stranger.mr->sge(kAt, bytes)};
        verbs::SendRequest request;
        request.opcode = verbs::WorkOpcode::RdmaRead;
        request.sges = pieces;
        request.remote_address = from.address + offset;
        request.rkey = from.rkey;
        EXPECT_EQ(stranger.qp->post_send(request), verbs::PostVerdict::Posted);
        run_all(milliseconds(5));
    }

    SessionId session{};
    std::vector<std::uint8_t> long_request;
    rpc::MsgBuffer answer{};
    std::vector<CallStatus> ended;
    std::optional<Message> lent;
};

TEST_F(CopyrpcBadPlaces, TwoRequestsMayLieInTheSamePlace) {
    meet();
    send_first(request(place(20'000), place(20'000)));
    compose(request(place(20'000), place(20'000)), {1, 1, 0, 0, 0}, 3 * kBlockBytes);
    stranger.write(3, 3 * kBlockBytes, 3 * kBlockBytes);
    run_all(milliseconds(10));
    EXPECT_EQ(server.endpoint->statistics().requests_fetched, 2U);
    EXPECT_EQ(server.endpoint->statistics().answers_written, 2U);
    EXPECT_EQ(server.endpoint->statistics().links.peers_lost, 0U);
}

TEST_F(CopyrpcBadPlaces, ARequestThatIsLongerThanTheServerTakesIsABreach) {
    meet();
    Place much = place(rpc::kMaxMessageBytes);
    much.bytes = rpc::kMaxMessageBytes + 1;
    send_first(request(much));
    expect_closed();
}

TEST_F(CopyrpcBadPlaces, ARequestBeyondTheLastAddressIsABreach) {
    meet();
    send_first(request(Place{~std::uint64_t{0} - 100, stranger.mr->rkey(), 1000}));
    expect_closed();
}

TEST_F(CopyrpcBadPlaces, ARequestOfNoBytesElsewhereIsABreach) {
    meet();
    send_first(request(place(0)));
    expect_closed();
}

TEST_F(CopyrpcBadPlaces, ARequestBehindAKeyThatIsNoneIsABreach) {
    meet();
    send_first(request(Place{0, Rkey{0x1234567}, 20'000}));
    expect_closed();
    EXPECT_EQ(server.endpoint->statistics().requests_handled, 1U) << "the client's";
}

TEST_F(CopyrpcBadPlaces, ARequestBeyondWhatIsLentIsABreach) {
    meet();
    send_first(request(place(Stranger::kBytes - kAt + 1)));
    expect_closed();
}

TEST_F(CopyrpcBadPlaces, AnAnswerForARoomThatIsNoneIsABreach) {
    meet();
    send_first(request(place(20'000), Place{0, Rkey{0x1234567}, 20'000}));
    expect_closed();
}

TEST_F(CopyrpcBadPlaces, ARoomBeyondTheLastAddressIsABreach) {
    meet();
    send_first(request(place(20'000), Place{~std::uint64_t{0} - 100, stranger.mr->rkey(), 1000}));
    expect_closed();
}

TEST_F(CopyrpcBadPlaces, AKeyOpensItsRequestAndNoByteMore) {
    be_called();
    read(*lent->elsewhere, 0, 5000);
    EXPECT_EQ(stranger.qp->state(), verbs::QpState::Rts);
    EXPECT_EQ(stranger.memory()[kAt + 4999], 0x5a);
    read(*lent->elsewhere, 1, 5000);
    EXPECT_EQ(stranger.qp->state(), verbs::QpState::Err);
}

TEST_F(CopyrpcBadPlaces, ARoomIsNotRead) {
    be_called();
    read(*lent->room, 0, 100);
    EXPECT_EQ(stranger.qp->state(), verbs::QpState::Err);
}

TEST_F(CopyrpcBadPlaces, AKeyEndsWithItsCall) {
    be_called();
    Message message;
    message.answer = true;
    message.call = lent->call;
    send_first(message);
    EXPECT_EQ(ended, std::vector{CallStatus::Ok});
    EXPECT_EQ(stranger.qp->state(), verbs::QpState::Rts);
    read(*lent->elsewhere, 0, 100);
    EXPECT_EQ(stranger.qp->state(), verbs::QpState::Err);
}

TEST_F(CopyrpcBadPlaces, AnAnswerLongerThanItsRoomIsABreach) {
    be_called();
    Message message;
    message.answer = true;
    message.call = lent->call;
    message.written = 3001;
    send_first(message);
    EXPECT_EQ(breaches(Breach::BadPlace), 1U);
    EXPECT_EQ(ended, std::vector{CallStatus::PeerLost});
}

TEST_F(CopyrpcBadPlaces, AnAnswerThatWasWrittenIsThere) {
    be_called();
    std::fill_n(stranger.memory().begin() + kAt, 3000, std::uint8_t{0x77});
    const std::array<verbs::Sge, 1> pieces{stranger.mr->sge(kAt, 3000)};
    verbs::SendRequest request;
    request.opcode = verbs::WorkOpcode::RdmaWrite;
    request.sges = pieces;
    request.remote_address = lent->room->address;
    request.rkey = lent->room->rkey;
    EXPECT_EQ(stranger.qp->post_send(request), verbs::PostVerdict::Posted);
    Message message;
    message.answer = true;
    message.call = lent->call;
    message.written = 3000;
    send_first(message);
    EXPECT_EQ(ended, std::vector{CallStatus::Ok});
    EXPECT_EQ(answer.bytes, 3000U);
    EXPECT_EQ(answer.span()[2999], 0x77);
}

// The peer reports it as written, but it was not.
TEST_F(CopyrpcBadPlaces, ARoomHoldsNothingOfOthers) {
    std::array<rpc::MsgBuffer, 8> former{};
    for (rpc::MsgBuffer& each : former) {
        each = server.pool.allocate(3000);
        std::fill(each.span().begin(), each.span().end(), std::uint8_t{0xa7});
    }
    for (rpc::MsgBuffer& each : former) {
        server.pool.release(each);
    }
    be_called();
    std::fill(answer.span().begin(), answer.span().end(), std::uint8_t{1});
    Message message;
    message.answer = true;
    message.call = lent->call;
    message.written = 3000;
    send_first(message);
    EXPECT_EQ(ended, std::vector{CallStatus::Ok});
    const std::span<const std::uint8_t> got = answer.span();
    EXPECT_EQ(std::vector(got.begin(), got.end()), std::vector<std::uint8_t>(3000));
}

// The stranger's ring was another client's before. Its batch claims to be longer than the written bytes.
TEST_F(CopyrpcBadPlaces, ABatchThatSaysTooMuchHoldsNothingOfOthers) {
    constexpr std::uint8_t kSecret = 0xa7;
    session = connect();
    for (std::uint64_t tag = 1; tag <= 40; ++tag) {
        requests[tag].assign(400, kSecret);
        Call call;
        call.type = kEcho;
        call.request = requests[tag];
        ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
        run_all(microseconds(100));
    }
    client.endpoint->disconnect(session, now);
    run_all(milliseconds(5));
    meet();
    Message message;
    message.type = kEcho;
    message.charge = 16;
    const std::vector<std::uint8_t> payload(400);
    message.payload = payload;
    compose(message, {0, 1, 0, 0, 0});
    stranger.write(1 + message.blocks(), 2 * kBlockBytes);  // only the headers
    run_all(milliseconds(5));
    const std::optional<Message> echo = Message::parse(stranger.memory().subspan(kRingAt + kBlockBytes, kRing / 2));
    ASSERT_TRUE(echo && echo->answer);
    EXPECT_EQ(echo->payload.size(), 400U);
    const std::span<const std::uint8_t> ring = stranger.memory().subspan(kRingAt, kRing);
    EXPECT_EQ(std::count(ring.begin(), ring.end(), kSecret), 0);
}

TEST_F(CopyrpcBadPlaces, AnAnswerThatWasWrittenNowhereIsABreach) {
    meet();
    Call call;
    call.type = kKeep;
    call.context = &ended;
    call.completion = [](void* context, const rpc::CallResult& result) {
        static_cast<std::vector<CallStatus>*>(context)->push_back(result.status);
    };
    ASSERT_EQ(server.endpoint->post(SessionId{1}, call, now).verdict, PostVerdict::Posted);
    run_all(milliseconds(1));
    const std::optional<Message> asked = first_in_ring();
    ASSERT_TRUE(asked.has_value());
    Message message;
    message.answer = true;
    message.call = asked->call;
    message.written = 1;
    send_first(message);
    EXPECT_EQ(breaches(Breach::BadPlace), 1U);
    EXPECT_EQ(ended, std::vector{CallStatus::PeerLost});
}

}  // namespace
}  // namespace cairn::copyrpc
