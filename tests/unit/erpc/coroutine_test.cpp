// co_await: calls, coroutine handlers, chains of them over several hosts, and the fate of the frames.
#include "rpc/common/coroutine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/erpc/host.hpp"

namespace cairn::erpc {
namespace {

constexpr std::uint8_t kSay = 1;

// Lives in a coroutine's frame, and counts the live frames.
class InFrame {
public:
    explicit InFrame(int& live) noexcept : live_(&live) { ++live; }
    InFrame(InFrame&& other) noexcept : live_(std::exchange(other.live_, nullptr)) {}
    InFrame(const InFrame&) = delete;
    InFrame& operator=(const InFrame&) = delete;
    ~InFrame() {
        if (live_ != nullptr) {
            --*live_;
        }
    }

private:
    int* live_;
};

std::span<const std::uint8_t> bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// A host that answers with its name. If there is a next host, it asks that one first.
struct Speaker {
    Speaker(const char* address, std::uint64_t seed, char letter) : host(address, seed), name(letter) {
        endpoint.set_handler(kSay, coroutine_handler<&Speaker::say>, this);
    }
    static Task<std::string> ask(Speaker& self, std::string question) {
        const InFrame counted(self.frames);
        Call what;
        what.type = kSay;
        what.request = bytes_of(question);
        const CallResult result = co_await call(self.endpoint, self.next, what, self.now, &self.last);
        self.status = result.status;
        co_return result.status == CallStatus::Ok ? std::string(result.response.begin(), result.response.end()) : "!";
    }
    static Task<> say(void* context, Request request) {
        auto& self = *static_cast<Speaker*>(context);
        const InFrame counted(self.frames);
        std::string text(request.payload.begin(), request.payload.end());
        ++self.handled;
        if (self.asks) {
            text = co_await ask(self, text + self.name);
        }
        text += self.name;
        const std::span<std::uint8_t> answer =
            request.endpoint.reserve(request.handle, static_cast<std::uint32_t>(text.size()));
        if (answer.empty()) {
            co_return;  // the session has ended
        }
        std::copy(text.begin(), text.end(), answer.begin());
        self.answered += request.endpoint.respond(request.handle, self.now) ? 1 : 0;
    }
    static Task<> keep_answer(Task<std::string> question, std::vector<std::string>& answers) {
        answers.push_back(co_await std::move(question));
    }
    // Parameters end with the frame; local variables end already at its last suspension.
    static Task<> keep_asking(InFrame, Speaker& self, int times, std::vector<std::string>& answers) {
        for (int i = 0; i < times; ++i) {
            answers.push_back(co_await ask(self, std::to_string(i)));
        }
    }
    void turn(Instant at) {
        now = at;
        host.turn(at);
    }
    Host host;
    Endpoint& endpoint = *host.endpoint;  // coroutines run while it is destroyed; `host` no longer owns it then
    char name;
    Instant now{};
    SessionId next{};
    CallId last = 0;
    CallStatus status{};
    bool asks = false;
    int frames = 0;
    int handled = 0;
    int answered = 0;
};

// a calls b.
class Coroutine : public testing::Test {
protected:
    void SetUp() override {
        a.host.port.join(b.host.port);
        b.host.port.join(a.host.port);
        a.next = a.host.connect(b.host, now);
        run(milliseconds(1));
    }
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            a.turn(now);
            if (b.host.endpoint != nullptr) {
                b.turn(now);
            }
        }
    }
    // Makes one call of a's into `answers`.
    void ask(int times = 1) { start(Speaker::keep_asking(InFrame(a.frames), a, times, answers)); }

    Instant now{1'000'000'000};
    std::vector<std::string> answers;
    Speaker a{"10.0.0.1", 11, 'a'};
    Speaker b{"10.0.0.2", 22, 'b'};
};

TEST_F(Coroutine, IsLazyAndOneThatIsNeverBegunLeavesNothing) {
    {
        const auto task = Speaker::keep_asking(InFrame(a.frames), a, 1, answers);
        EXPECT_EQ(a.frames, 1);
        EXPECT_EQ(a.host.endpoint->calls_pending(), 0U);
    }
    EXPECT_EQ(a.frames, 0);
}

TEST_F(Coroutine, AwaitsOneCallAfterTheOther) {
    ask(3);
    EXPECT_EQ(a.host.endpoint->calls_pending(), 1U);
    run(milliseconds(2));
    EXPECT_EQ(answers, (std::vector<std::string>{"0b", "1b", "2b"}));
    EXPECT_EQ(a.frames + b.frames, 0);
}

TEST_F(Coroutine, LossAndDoublingRunEachHandlerOnce) {
    a.host.port.fate = [](std::uint64_t number) { return number % 3 == 1 ? 0 : 2; };
    b.host.port.fate = [](std::uint64_t number) { return number % 4 == 1 ? 0 : 2; };
    ask(20);
    run(seconds(2));
    EXPECT_EQ(answers.size(), 20U);
    EXPECT_EQ(b.handled, 20);
    EXPECT_EQ(a.frames + b.frames, 0);
}

TEST_F(Coroutine, WhatIsNotPostedEndsAtOnceAndSaysWhy) {
    const std::string long_text(std::size_t{kMaxMessageBytes} + 1, 'x');
    start(Speaker::keep_answer(Speaker::ask(a, long_text), answers));
    EXPECT_EQ(a.status, CallStatus::RequestTooLong);
    std::vector<std::string> others;
    for (int i = 0; i < 256; ++i) {
        start(Speaker::keep_asking(InFrame(a.frames), a, 1, others));
    }
    EXPECT_TRUE(others.empty());
    ask();
    EXPECT_EQ(a.status, CallStatus::TableFull);
    a.next = SessionId{99};
    ask();
    EXPECT_EQ(a.status, CallStatus::Disconnected);
    EXPECT_EQ(answers, (std::vector<std::string>{"!", "!", "!"}));
    run(milliseconds(20));
    EXPECT_EQ(others.size(), 256U);
    EXPECT_EQ(a.frames, 0);
}

TEST_F(Coroutine, CancelResumesIt) {
    ask();
    EXPECT_TRUE(a.host.endpoint->cancel(a.last, now));
    EXPECT_EQ(a.status, CallStatus::Cancelled);
    EXPECT_EQ(a.frames, 0);
}

TEST_F(Coroutine, AnEndpointThatEndsResumesAllWithDisconnectedAndLeavesNoFrame) {
    for (int i = 0; i < 30; ++i) {  // more than the slots; their next calls are refused at once
        ask(5);
    }
    EXPECT_EQ(a.frames, 60);
    a.host.endpoint.reset();
    EXPECT_EQ(a.status, CallStatus::Disconnected);
    EXPECT_EQ(answers, std::vector<std::string>(150, "!"));
    EXPECT_EQ(a.frames, 0);
}

// a calls b, whose handler calls c.
class CoroutineChain : public Coroutine {
protected:
    void SetUp() override {
        b.host.port.join(c.host.port);
        c.host.port.join(b.host.port);
        Coroutine::SetUp();
        b.next = b.host.connect(c.host, now);
        b.asks = true;
        run_all(milliseconds(1));
    }
    void run_all(Duration span) {
        for (const Instant end = now + span; now < end;) {
            c.turn(now);
            run(microseconds(50));
        }
    }
    Speaker c{"10.0.0.3", 33, 'c'};
};

TEST_F(CoroutineChain, AnswersComeBackThroughAllOfIt) {
    ask(3);
    run_all(milliseconds(3));
    EXPECT_EQ(answers, (std::vector<std::string>{"0bcb", "1bcb", "2bcb"}));
    EXPECT_EQ(a.frames + b.frames + c.frames, 0);
}

TEST_F(CoroutineChain, LossEverywhereRunsEachHandlerOnce) {
    for (Speaker* const each : {&a, &b, &c}) {
        each->host.port.fate = [](std::uint64_t number) { return number % 5 == 3 ? 0 : number % 3 == 0 ? 2 : 1; };
    }
    for (int i = 0; i < 10; ++i) {
        ask(5);
    }
    run_all(seconds(3));
    EXPECT_EQ(answers.size(), 50U);
    EXPECT_EQ(std::count(answers.begin(), answers.end(), "!"), 0);
    EXPECT_EQ(b.handled, 50);
    EXPECT_EQ(c.handled, 50);
    EXPECT_EQ(a.frames + b.frames + c.frames, 0);
}

TEST_F(CoroutineChain, AHandlerWhoseClientLeftGoesOnAndItsAnswerGoesNowhere) {
    ask();
    run(milliseconds(1));  // c does not answer
    EXPECT_EQ(b.frames, 2);
    a.endpoint.disconnect(a.next, now);
    run(milliseconds(1));
    run_all(milliseconds(20));
    EXPECT_EQ(answers, std::vector<std::string>{"!"});
    EXPECT_EQ(b.handled, 1);
    EXPECT_EQ(b.answered, 0);
    EXPECT_EQ(a.frames + b.frames, 0);
}

TEST_F(CoroutineChain, TheMiddleThatEndsLeavesNoFrameAndStillAnswers) {
    ask();
    run(milliseconds(1));
    EXPECT_EQ(b.frames, 2);
    b.host.endpoint.reset();
    EXPECT_EQ(b.frames, 0);
    EXPECT_EQ(b.answered, 1);
    EXPECT_EQ(b.status, CallStatus::Disconnected);
    b.host.worker->sender().flush(now);
    run(milliseconds(1));
    EXPECT_EQ(answers, std::vector<std::string>{"!b"});
    EXPECT_EQ(b.host.pool->live(), 0U);
}

}  // namespace
}  // namespace cairn::erpc
