// Calls of an RPC system over ports in memory, with a number of calls under way, for counting without a device.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "rpc/common/call.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "tests/rulers/memory_port.hpp"

namespace cairn::ruler {

constexpr std::uint8_t kEcho = 1;
constexpr std::uint32_t kMessageBytes = 32;
constexpr std::size_t kPoolBytes = std::size_t{32} << 20U;

// The memory and the port of one end, and its worker.
struct Host {
    Host(const char* address, std::uint8_t number, BufferStore& store) : port(address, number, store) {}
    [[nodiscard]] std::uint64_t key() const { return reinterpret_cast<std::uintptr_t>(this); }

    MemoryPort port;
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kPoolBytes);
    rpc::MsgPool pool{memory};
    std::unique_ptr<worker::Worker> worker;
};

// `Side` is a Host with an endpoint. It has start(sessions), which makes both; serve(), which answers requests of kEcho
// with their own content; and connect(server, now), which begins a session.
template <class Side>
class CallLoop {
public:
    explicit CallLoop(std::size_t sessions) {
        client_.port.connect(server_.port);
        server_.port.connect(client_.port);
        client_.start(sessions);
        server_.start(sessions);
        server_.serve();
        request_ = client_.pool.allocate(kMessageBytes);
        std::memset(request_.data, 0x5a, kMessageBytes);
        for (std::size_t i = 0; i < sessions; ++i) {
            sessions_.push_back(client_.connect(server_, now_));
            turn();
        }
        what_ = draft();
        for (int i = 0; i < 1000; ++i) {
            turn();
        }
    }
    CallLoop(const CallLoop&) = delete;
    CallLoop& operator=(const CallLoop&) = delete;
    // Ends the ends one after the other. Packets that the second one still sends have no receiver.
    ~CallLoop() {
        client_.port.connect(client_.port);
        server_.port.connect(server_.port);
    }
    // Makes `calls` calls, `window` of them at a time, over the sessions in turn.
    void make(std::uint64_t calls, std::uint64_t window) {
        const std::uint64_t until = completed_ + calls;
        left_ = calls - window;
        for (std::uint64_t i = 0; i < window; ++i) {
            call(i % sessions_.size());
        }
        while (completed_ < until) {
            turn();
        }
    }
    [[nodiscard]] Side& client() noexcept { return client_; }
    [[nodiscard]] Side& server() noexcept { return server_; }

private:
    void turn() {
        now_ = now_ + nanoseconds(300);
        client_.worker->turn(now_);
        server_.worker->turn(now_);
    }
    // Returns the parts that all calls have in common.
    [[nodiscard]] rpc::Call draft() {
        rpc::Call made;
        made.type = kEcho;
        made.request = request_.span();
        made.context = this;
        made.completion = [](void* context, const rpc::CallResult& result) {
            auto& self = *static_cast<CallLoop*>(context);
            if (result.status != rpc::CallStatus::Ok || result.response.size() != kMessageBytes) {
                std::abort();
            }
            ++self.completed_;
            if (self.left_ != 0) {
                --self.left_;
                self.call(result.tag);
            }
        };
        return made;
    }
    void call(std::uint64_t session) {
        what_.tag = session;
        if (client_.endpoint->post(sessions_[session], what_, now_).verdict != rpc::PostVerdict::Posted) {
            std::abort();
        }
    }

    Instant now_{1'000'000};
    BufferStore store_;
    Side client_{"10.77.0.2", 2, store_};
    Side server_{"10.77.0.1", 1, store_};
    rpc::MsgBuffer request_;
    rpc::Call what_;
    std::vector<SessionId> sessions_;
    std::uint64_t left_ = 0;
    std::uint64_t completed_ = 0;
};

// Runs the part that callgrind counts: neither the set-up nor the end.
template <class Side>
[[gnu::noinline]] void counted_part(CallLoop<Side>& loop, std::uint64_t calls, std::uint64_t window) {
    loop.make(calls, window);
}

// Runs a program with the arguments CALLS [WINDOW [SESSIONS]]. Returns its exit code.
template <class Side>
int count_calls(int argc, char** argv, std::uint64_t usual_window, std::size_t sessions) {
    const std::uint64_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
    const std::uint64_t window = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : usual_window;
    sessions = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : sessions;
    if (calls < window || window == 0 || window > 1024 || sessions == 0 || sessions > 1000) {
        std::fputs(
            "usage: CALLS [WINDOW [SESSIONS]]; at least as many calls as the window, which is 1 to 1024; 1 to "
            "1000 sessions\n",
            stderr);
        return 2;
    }
    auto loop = std::make_unique<CallLoop<Side>>(sessions);
    loop->make(2000 + window, window);
    counted_part(*loop, calls, window);
    loop->client().check();
    loop->server().check();
    std::printf("%llu calls\n", static_cast<unsigned long long>(calls));
    return 0;
}

}  // namespace cairn::ruler
