// Many clients in one worker of cairn-rpcbench. Each is a coroutine with a session of its own, which begins a batch of
// calls and waits for all of them. It goes on after its time to think or, with --rate, when its next batch is due.
#pragma once

#include <coroutine>
#include <cstdint>
#include <vector>

#include "apps/rpcbench/arrivals.hpp"
#include "apps/rpcbench/load.hpp"
#include "rpc/common/coroutine.hpp"

namespace cairn::rpcbench {

// The clients of a worker. With --rate, a batch that gets due while the client's last one is under way begins when that
// ends. The latencies of its calls count from the time when it was due.
template <class Endpoint>
class ClientsOf final : public Load {
public:
    // Makes the clients. All references outlive the object. `share` is this worker's part of the rate, `worker` its
    // number.
    ClientsOf(const Options& options, Endpoint& endpoint, rpc::MsgPool& pool, double share, std::uint16_t worker)
        : Load(options, pool, share), endpoint_(endpoint), worker_(worker) {}

private:
    struct Client {
        std::uint32_t number = 0;
        std::uint32_t pending = 0;  // calls of its batch
        Arrivals arrivals{};        // with --rate: of batches that have not begun
        std::coroutine_handle<> waiting{};
    };
    struct Waiting {
        Instant until{};
        Client* client = nullptr;
        [[nodiscard]] bool is_after(const Waiting& other) const noexcept {
            return until != other.until ? until > other.until : client > other.client;
        }
    };
    // Waits by co_await until the last call of the client's batch has ended.
    struct BatchEnd {
        Client& client;
        [[nodiscard]] bool await_ready() const noexcept { return client.pending == 0; }
        void await_suspend(std::coroutine_handle<> waiting) const noexcept { client.waiting = waiting; }
        void await_resume() const noexcept {}
    };
    // Waits by co_await until that time, or the end of the load.
    struct Until {
        ClientsOf& self;
        Client& client;
        Instant until;
        [[nodiscard]] bool await_ready() const noexcept {
            return until <= self.figures_.now() || self.phase_ != Phase::Calling;
        }
        void await_suspend(std::coroutine_handle<> waiting) const noexcept;
        void await_resume() const noexcept {}
    };

    void begin() override;
    [[nodiscard]] bool begin_due() noexcept override;
    void end() override;
    [[nodiscard]] std::uint64_t not_begun(Instant now) const noexcept override;
    rpc::Task<> live(Client& client);
    [[nodiscard]] Instant next_batch(const Client& client) const noexcept;
    void begin_batch(Client& client) noexcept;
    void call(Client& client, std::uint32_t slot) noexcept;
    void resume_first() noexcept;
    static void on_completed(void* context, const rpc::CallResult& result);

    Endpoint& endpoint_;
    std::uint16_t worker_;
    std::vector<Client> clients_;
    std::vector<Waiting> waiting_;  // a heap: the first is the one that waits until the earliest time
};

}  // namespace cairn::rpcbench
