// Many clients in one worker of cairn-rpcbench: each is a coroutine with a session of its own, which begins a batch of
// calls, waits for all of them, thinks, and goes on.
#pragma once

#include <coroutine>
#include <cstdint>
#include <deque>
#include <vector>

#include "apps/rpcbench/load.hpp"
#include "rpc/common/coroutine.hpp"

namespace cairn::rpcbench {

template <class Endpoint>
class ClientsOf final : public Load {
public:
    // All references outlive the object.
    ClientsOf(const Options& options, Endpoint& endpoint, rpc::MsgPool& pool)
        : Load(options, pool, 0), endpoint_(endpoint) {}

private:
    struct Client {
        std::uint32_t number = 0;
        std::uint32_t pending = 0;  // calls of its batch
        std::coroutine_handle<> waiting{};
    };
    struct Thinking {
        Instant until{};
        Client* client = nullptr;
    };
    // co_await: until the last call of the client's batch has ended.
    struct BatchEnd {
        Client& client;
        [[nodiscard]] bool await_ready() const noexcept { return client.pending == 0; }
        void await_suspend(std::coroutine_handle<> waiting) const noexcept { client.waiting = waiting; }
        void await_resume() const noexcept {}
    };
    // co_await: until the client has thought for the time that the options say.
    struct Thought {
        ClientsOf& self;
        Client& client;
        [[nodiscard]] bool await_ready() const noexcept { return self.options_.clients.think_us == 0; }
        void await_suspend(std::coroutine_handle<> waiting) const noexcept;
        void await_resume() const noexcept {}
    };

    void begin() override;
    [[nodiscard]] bool begin_due() noexcept override;
    void end() override;
    rpc::Task<> live(Client& client);
    void call(Client& client, std::uint32_t slot) noexcept;
    static void on_completed(void* context, const rpc::CallResult& result);

    Endpoint& endpoint_;
    std::vector<Client> clients_;
    std::deque<Thinking> thinking_;  // all think equally long: by their times
};

}  // namespace cairn::rpcbench
