// Endpoint::answer(): an answer in one call, from a handler or later.
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {
namespace {

class Answer : public TwoHosts {
protected:
    void SetUp() override {
        TwoHosts::SetUp();
        server.endpoint->set_handler(kEcho, &Answer::serve, this);
        session = connect();
        run();
    }
    static void serve(void* context, const Request& asked) { static_cast<Answer*>(context)->handler(asked); }
    static void completed(void* context, const CallResult& result) {
        auto& self = *static_cast<Answer*>(context);
        self.status = result.status;
        self.response.assign(result.response.begin(), result.response.end());
    }
    void run() { TwoHosts::run(milliseconds(10)); }
    // Returns the status of a call with this request. Its response is in `response`.
    CallStatus call(std::size_t bytes) {
        request.assign(bytes, 0);
        for (std::size_t i = 0; i < bytes; ++i) {
            request[i] = static_cast<std::uint8_t>(i * 7);
        }
        Call what;
        what.type = kEcho;
        what.request = request;
        what.context = this;
        what.deadline = now + milliseconds(5);
        what.completion = &Answer::completed;
        EXPECT_EQ(client.endpoint->post(session, what, now).verdict, PostVerdict::Posted);
        run();
        server.endpoint->check_invariants();
        return status;
    }

    SessionId session{};
    std::vector<std::uint8_t> request;
    std::vector<std::uint8_t> response;
    CallStatus status = CallStatus::Disconnected;
    std::function<void(const Request&)> handler;
};

// The answers have one packet or many, take the short path or the long one, and use memory of the slot or new memory.
TEST_F(Answer, MayBeTheRequestItself) {
    handler = [](const Request& asked) { EXPECT_TRUE(asked.endpoint.answer(asked.handle, asked.payload, asked.now)); };
    for (const std::size_t bytes : {32U, 32U, 33U, 7U, 1'000U, 0U, 0U, 5'000U, 1U, 32U, 1'024U, 60'000U, 32U}) {
        EXPECT_EQ(call(bytes), CallStatus::Ok) << bytes;
        EXPECT_EQ(response, request) << bytes;
    }
}

TEST_F(Answer, IsTheLastWord) {
    const std::vector<std::uint8_t> other(32, 0xee);
    handler = [&other](const Request& asked) {
        EXPECT_TRUE(asked.endpoint.answer(asked.handle, asked.payload, asked.now));
        EXPECT_FALSE(asked.endpoint.answer(asked.handle, other, asked.now));
        EXPECT_EQ(asked.endpoint.reserve(asked.handle, 8).data(), nullptr);
        EXPECT_FALSE(asked.endpoint.respond(asked.handle, asked.now));
        EXPECT_FALSE(asked.endpoint.refuse(asked.handle, asked.now));
    };
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(call(32), CallStatus::Ok);
        EXPECT_EQ(response, request);
    }
}

TEST_F(Answer, AfterARefusalIsNone) {
    handler = [](const Request& asked) {
        EXPECT_TRUE(asked.endpoint.refuse(asked.handle, asked.now));
        EXPECT_FALSE(asked.endpoint.answer(asked.handle, asked.payload, asked.now));
    };
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(call(32), CallStatus::AnswerLost);
    }
}

// Checks in each of its turns whether the worker has sent anything.
struct Onlooker final : worker::Tenant {
    explicit Onlooker(Host& watched) : host(watched), tenancy(host.worker->add(*this)) {}
    bool on_turn(Instant) noexcept override {
        sent = host.port.sent();
        return false;
    }
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }

    Host& host;
    std::uint64_t sent = 0;
    worker::Tenancy tenancy;
};

TEST_F(Answer, ToFewRequestsLeavesBeforeTenantsTakeTheirTurn) {
    handler = [](const Request& asked) { asked.endpoint.answer(asked.handle, asked.payload, asked.now); };
    Onlooker onlooker(server);
    Call what;
    what.type = kEcho;
    what.context = this;
    what.completion = &Answer::completed;
    for (const std::uint64_t count : {1U, 3U, 4U}) {
        for (std::uint64_t i = 0; i != count; ++i) {
            static_cast<void>(client.endpoint->post(session, what, now));
        }
        client.turn(now);
        const std::uint64_t before = server.port.sent();
        server.turn(now);
        EXPECT_EQ(onlooker.sent - before, count < 4 ? count : 0) << count;
        EXPECT_EQ(server.port.sent() - before, count);
        run();
    }
}

TEST_F(Answer, MayComeLater) {
    rpc::KeptRequest kept;
    handler = [&kept](const Request& asked) { kept = asked.keep(); };
    const std::vector<std::uint8_t> late(40, 0x11);
    for (int i = 0; i < 20; ++i) {
        kept = rpc::KeptRequest{};
        Call what;
        what.type = kEcho;
        what.request = late;
        what.context = this;
        what.completion = &Answer::completed;
        static_cast<void>(client.endpoint->post(session, what, now));
        run();
        response.clear();
        status = CallStatus::Disconnected;
        EXPECT_TRUE(server.endpoint->answer(kept, late, now));
        EXPECT_FALSE(server.endpoint->answer(kept, late, now));
        server.turn(now);
        client.turn(now);  // before it asks again
        EXPECT_EQ(status, CallStatus::Ok);
        EXPECT_EQ(response, late);
    }
    client.endpoint->disconnect(session, now);
    run();
    EXPECT_FALSE(server.endpoint->answer(kept, late, now)) << "its session is no more";
}

TEST_F(Answer, BeyondTheLimitIsNotGiven) {
    server.config.max_message_bytes = 40;
    server.restart(22);
    const std::vector<std::uint8_t> longer(41, 0x22);
    int refused = 0;
    ASSERT_TRUE(server.endpoint->set_handler(kEcho, &Answer::serve, this, 40).ok());
    handler = [&](const Request& asked) {
        refused += asked.endpoint.answer(asked.handle, longer, asked.now) ? 0 : 1;
        EXPECT_TRUE(asked.endpoint.answer(asked.handle, asked.payload, asked.now));
    };
    session = connect();
    run();
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(call(40), CallStatus::Ok);
    }
    EXPECT_EQ(refused, 20);
}

// The slot has no memory, and later too little of it.
TEST_F(Answer, WithoutMemoryIsNotGiven) {
    server.restart(22, 512);
    int failed = 0;
    handler = [&failed](const Request& asked) {
        const std::vector<std::uint8_t> large(4'000, 0x33);
        failed += asked.endpoint.answer(asked.handle, large, asked.now) ? 0 : 1;
        asked.endpoint.answer(asked.handle, asked.payload, asked.now);
    };
    server.endpoint->set_handler(kEcho, &Answer::serve, this);
    session = connect();
    run();
    EXPECT_EQ(call(32), CallStatus::Ok);
    EXPECT_EQ(response, request);
    EXPECT_EQ(failed, 1);
    EXPECT_GT(server.endpoint->statistics().drops.of(Drop::NoBuffer), 0U);
}

}  // namespace
}  // namespace cairn::erpc
