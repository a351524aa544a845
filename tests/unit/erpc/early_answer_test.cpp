// A server that answers a request before it can have received it. The request's memory belongs to its owner again, and
// packets that still wait do not change with it.
#include <gtest/gtest.h>

#include "tests/unit/erpc/host.hpp"

namespace cairn::erpc {
namespace {

constexpr std::uint8_t kEarlyType = 3;

struct EarlyAnswer : testing::Test {
    void SetUp() override {
        client.port.join(server.port);
        server.port.join(client.port);
        client.port.sends_in_place = true;
        server.endpoint->set_handler(
            kEarlyType,
            [](void* context, const Request& asked) {
                auto& self = *static_cast<EarlyAnswer*>(context);
                self.seen.assign(asked.payload.begin(), asked.payload.end());
                (void)asked.endpoint.reserve(asked.handle, 4);
                asked.endpoint.respond(asked.handle, asked.now);
            },
            this);
        session = client.connect(server, now);
        run();
    }
    void run() {
        for (int turns = 0; turns < 10; ++turns) {
            client.turn(now);
            server.turn(now);
            now = now + microseconds(10);
        }
    }
    void post() {
        Call call;
        call.type = kEarlyType;
        call.request = request;
        call.completion = [](void* context, const CallResult& result) {
            EXPECT_EQ(result.status, CallStatus::Ok);
            ++*static_cast<int*>(context);
        };
        call.context = &completed;
        ASSERT_EQ(client.endpoint->post(session, call, now).verdict, PostVerdict::Posted);
    }
    port::PacketRef receive() {
        port::PacketRef packet;
        for (int turns = 0; turns < 10 && client.port.receive_burst({&packet, 1}, now) == 0; ++turns) {
            client.worker->sender().flush(now);
            server.turn(now);
        }
        return packet;
    }

    Host client{"10.0.0.1", 1, nullptr, kMaxMessageBytes, 2048};
    Host server{"10.0.0.2", 2, nullptr, kMaxMessageBytes, 2048};
    Instant now{1'000'000};
    SessionId session{};
    std::vector<std::uint8_t> request = std::vector<std::uint8_t>(1024, 0x11);
    std::vector<std::uint8_t> seen;
    int completed = 0;
};

TEST_F(EarlyAnswer, ARequestThatWaitsLeavesAsItWas) {
    post();
    port::PacketRef first = receive();
    ASSERT_NE(first.cookie, nullptr);
    std::vector<std::uint8_t> answer(first.data, first.data + first.len);
    client.worker->datagrams().on_packets({&first, 1}, now);
    ASSERT_EQ(completed, 1);
    std::fill(request.begin(), request.end(), std::uint8_t{0x22});
    for (const bool same_turn : {true, false}) {
        post();
        if (!same_turn) {
            client.worker->sender().flush(now);
            now = now + microseconds(10);
        }
        auto& raw = *reinterpret_cast<RawHeader*>(answer.data() + sizeof(wire::RawUd));
        Header header = Header::parse(raw);
        header.request_number += kSlotsPerSession;
        header.emit(raw);
        port::PacketRef forged;
        ASSERT_EQ(client.port.allocate_burst({&forged, 1}), 1U);
        std::copy(answer.begin(), answer.end(), forged.data);
        forged.len = static_cast<std::uint16_t>(answer.size());
        forged.path = first.path;
        forged.icrc_ok = true;
        client.worker->datagrams().on_packets({&forged, 1}, now);
        ASSERT_EQ(completed, same_turn ? 2 : 3);
        std::fill(request.begin(), request.end(), std::uint8_t{0xdd});
        run();
        EXPECT_EQ(seen, std::vector<std::uint8_t>(1024, 0x22));
        std::fill(request.begin(), request.end(), std::uint8_t{0x22});
    }
}

}  // namespace
}  // namespace cairn::erpc
