// Messages that are sent in place: waiting packets do not change, whatever the peer does meanwhile.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {
namespace {

class SentInPlace : public TwoHosts {
protected:
    static constexpr std::uint16_t kPathMtu = 4096;
    static constexpr std::uint32_t kAnswerBytes = 1024;

    void SetUp() override {
        client.config.qp.path_mtu_bytes = server.config.qp.path_mtu_bytes = kPathMtu;
        client.restart(11);
        server.restart(22);
        TwoHosts::SetUp();
        client.port.sends_in_place = server.port.sends_in_place = true;
        server.endpoint->set_handler(kEcho, &SentInPlace::fill, this);
    }
    // Answers with as many bytes as the request says; each is the request's last byte.
    static void fill(void* context, const Request& request) {
        auto& self = *static_cast<SentInPlace*>(context);
        self.last = request.handle;
        std::uint32_t bytes = 0;
        std::memcpy(&bytes, request.payload.data(), sizeof(bytes));
        const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, bytes);
        ASSERT_EQ(answer.size(), bytes);
        std::fill(answer.begin(), answer.end(), request.payload.back());
        request.endpoint.respond(request.handle, request.now);
    }
    // Sends a request in the client's name that it never made.
    void forge(RequestHandle to, std::uint32_t bytes, std::uint8_t with) {
        std::array<std::uint8_t, 5> payload{};
        std::memcpy(payload.data(), &bytes, sizeof(bytes));
        payload.back() = with;
        Header header;
        header.request_type = kEcho;
        header.session = to.session;
        header.message_bytes = payload.size();
        header.request_number = to.request_number;
        client.inject(server, header, payload, now);
        (void)client.port.receive_burst({}, now);  // waiting packets leave
    }
    RequestHandle open_session() {
        requests[1] = {0, 4, 0, 0, 0};
        Call call;
        call.type = kEcho;
        call.request = requests[1];
        opened = connect();
        client.endpoint->post(opened, call, now);
        run(milliseconds(1));
        return last;
    }
    // Returns the request in the same slot, this many rounds later.
    static RequestHandle later(RequestHandle handle, std::uint64_t rounds) {
        return {handle.session, handle.request_number + rounds * kSlotsPerSession};
    }
    // Returns the answers that the client got: each by its number, with the byte that fills it.
    std::map<std::uint64_t, std::uint8_t> read_answers() {
        std::map<std::uint64_t, std::uint8_t> answers;
        std::array<port::PacketRef, 16> burst;
        (void)server.port.receive_burst(burst, now);  // waiting packets leave
        const std::size_t count = client.port.receive_burst(burst, now);
        for (const port::PacketRef& packet : std::span(burst).first(count)) {
            const std::uint8_t* const at = packet.data + sizeof(wire::RawUd);
            const Header header = Header::parse(*reinterpret_cast<const RawHeader*>(at));
            const std::span payload(at + sizeof(RawHeader), packet.data + packet.len - port::kIcrcBytes);
            EXPECT_TRUE(std::all_of(payload.begin(), payload.end(),
                                    [&payload](std::uint8_t byte) { return byte == payload.front(); }));
            answers[header.request_number * 100 + header.session.value] = payload.front();
        }
        client.port.release_burst(std::span(burst).first(count));
        return answers;
    }

    SessionId opened{};
};

TEST_F(SentInPlace, AnAnswerIsNotOverwrittenThoughItsClientAsksOnWithoutReadingIt) {
    const RequestHandle first = open_session();
    const RequestHandle second = open_session();
    for (const std::uint32_t longer : {kAnswerBytes, kAnswerBytes * 3}) {
        const std::uint64_t round = longer == kAnswerBytes ? 1 : 3;
        forge(later(first, round), kAnswerBytes, 0x11);
        forge(later(first, round + 1), longer, 0x22);
        forge(later(second, round), kAnswerBytes * 3 / 2, 0x33);
        server.turn(now);
        const std::map<std::uint64_t, std::uint8_t> answers = read_answers();
        EXPECT_EQ(answers.size(), 3U);
        std::map<std::uint64_t, int> bytes;
        for (const auto& [number, byte] : answers) {
            ++bytes[byte];
        }
        EXPECT_EQ(bytes, (std::map<std::uint64_t, int>{{0x11, 1}, {0x22, 1}, {0x33, 1}}));
        now = now + microseconds(50);
    }
}

TEST_F(SentInPlace, AnAnswerThatWaitsForTurnsIsNotOverwrittenThoughItsClientGaveItUp) {
    const RequestHandle first = open_session();
    server.port.most_per_turn = 0;
    for (std::uint64_t round = 1; round <= 3; ++round) {
        forge(later(first, round), kAnswerBytes, static_cast<std::uint8_t>(round));
        server.turn(now);
        now = now + microseconds(50);
    }
    server.port.most_per_turn = 16;
    server.turn(now);
    std::vector<int> bytes;
    for (const auto& [number, byte] : read_answers()) {
        bytes.push_back(byte);
    }
    EXPECT_EQ(bytes, (std::vector<int>{1, 2, 3}));
}

// There is memory for one answer of that length. Everything happens in one turn.
TEST_F(SentInPlace, AnAnswerThatWaitsIsNotOverwrittenThoughItsMemoryGoesToAnotherSlot) {
    constexpr std::uint32_t kLong = 4000;
    server.restart(22, std::size_t{8} << 10U);
    server.endpoint->set_handler(kEcho, &SentInPlace::fill, this);
    const RequestHandle first = open_session();
    const RequestHandle second = open_session();
    (void)open_session();  // holds a little memory, so that the other half is not whole
    ASSERT_TRUE(server.endpoint->set_handler(kEcho, &SentInPlace::fill, this, kLong).ok());
    forge(later(first, 1), kLong, 0x11);
    forge(later(second, 1), kLong, 0x22);  // finds no memory
    forge(later(first, 2), kLong, 0x33);   // gives way
    forge(later(second, 1), kLong, 0x44);
    server.turn(now);
    std::vector<int> bytes;
    for (const auto& [number, byte] : read_answers()) {
        bytes.push_back(byte);
    }
    std::sort(bytes.begin(), bytes.end());
    EXPECT_EQ(bytes, (std::vector<int>{0x11, 0x44}));
}

TEST_F(SentInPlace, ARequestThatIsAnsweredBeforeItLeftIsSentAsItWas) {
    const std::uint64_t first = open_session().request_number;
    std::vector<std::uint8_t> request(kAnswerBytes, 0x44);
    Call call;
    call.type = kEcho;
    call.request = request;
    call.context = &request;
    call.completion = [](void* context, const CallResult&) {  // its memory belongs to the caller again
        auto& bytes = *static_cast<std::vector<std::uint8_t>*>(context);
        std::fill(bytes.begin(), bytes.end(), std::uint8_t{0x55});
    };
    client.endpoint->post(opened, call, now);
    Header header;  // the server knows the number of the request that will come
    header.session = opened;
    header.type = PacketType::Response;
    header.request_number = first + kSlotsPerSession;
    server.inject(client, header, {}, now);
    (void)server.port.receive_burst({}, now);  // it leaves
    client.turn(now);
    EXPECT_EQ(request.front(), 0x55);
    (void)client.port.receive_burst({}, now);
    std::array<port::PacketRef, 16> burst;
    ASSERT_EQ(server.port.receive_burst(burst, now), 1U);
    const std::span sent(burst[0].data + sizeof(wire::RawUd) + sizeof(RawHeader), kAnswerBytes);
    EXPECT_TRUE(std::all_of(sent.begin(), sent.end(), [](std::uint8_t byte) { return byte == 0x44; }));
    server.port.release_burst(std::span(burst).first(1));
}

}  // namespace
}  // namespace cairn::erpc
