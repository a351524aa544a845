// A worker: one queue of a port, and all that runs on it. It has the engine, the datagrams and the sender of that
// queue, tenants that use them, and mail from other threads; one turn drives them all.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/roce/engine.hpp"
#include "lib/worker/baton.hpp"
#include "lib/worker/mail.hpp"
#include "lib/worker/tenant.hpp"

namespace cairn::worker {

class Worker;

// A tenant's place on its worker: it leaves when this ends. Neither outlives the worker.
class Tenancy {
public:
    Tenancy() = default;
    Tenancy(Tenancy&& other) noexcept;
    Tenancy& operator=(Tenancy&& other) noexcept;
    Tenancy(const Tenancy&) = delete;
    Tenancy& operator=(const Tenancy&) = delete;
    ~Tenancy() { leave(); }
    void leave() noexcept;
    // Of one that is called when it is due: when that is from now on.
    void wake_at(Instant due) noexcept;

private:
    friend class Worker;
    Tenancy(Worker& worker, Tenant& tenant) noexcept : worker_(&worker), tenant_(&tenant) {}

    Worker* worker_ = nullptr;
    Tenant* tenant_ = nullptr;
};

// One thread at a time: the one that owns the worker and calls turn(), or whoever gets the baton for a try_turn().
class Worker {
public:
    // The port outlives the worker. Errors: the process has no descriptor left.
    static Result<std::unique_ptr<Worker>> create(port::Port& port, const roce::EngineConfig& config, Instant now);
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    // All tenants have left (asserted). Letters that were not opened are discarded.
    ~Worker();

    // The tenant takes part in every turn from now on, after those that came before it. It may leave in any turn, its
    // own too.
    enum class Calls : std::uint8_t {
        OnTurn,
        OnTurnAndSent,
        WhenDue,  // on_turn(), when the time has come that it gave to Tenancy::wake_at()
    };
    [[nodiscard]] Tenancy add(Tenant& tenant, Calls calls = Calls::OnTurn);

    // Opens mail, delivers what came, lets the engine, the tenants and the port do what is due, sends. True: something
    // was done, or came.
    bool turn(Instant now) noexcept;
    // The same for threads that share the worker: nothing when another one is at it. What a thread wanted done may then
    // be in the mail.
    std::optional<bool> try_turn(Instant now) noexcept;
    // For a thread that shares the worker and is about to use something on it.
    [[nodiscard]] Baton& baton() noexcept { return baton_; }

    // When the next turn has something to do though nothing comes; the past when at once. The one place where
    // the minimum of all deadlines is taken.
    [[nodiscard]] Instant next_deadline() const noexcept;

    // Sleeps until something comes, by packet or mail, or is due; a poll-only port can not be slept on, so that
    // with one it is kNap at most.
    static constexpr Duration kNap = microseconds(50);
    void wait(Instant now, Instant until = Instant::never()) noexcept;
    // The port wakes who sleeps.
    [[nodiscard]] bool can_wait() const noexcept { return can_wait_; }

    // For the caller's own event loop: readable when a turn has something to do by packet or mail. Before each sleep
    // call prepare_sleep(), and sleep until the deadline it returns at most. Errors: a poll-only port has none; the
    // process has no descriptor left.
    Result<int> descriptor();
    [[nodiscard]] Instant prepare_sleep(Instant now) noexcept;

    // The time of the turn under way, or of the last one.
    [[nodiscard]] Instant now() const noexcept { return now_; }
    // Where other threads write to. Valid when the worker has ended, too.
    [[nodiscard]] Address address() const noexcept {
        address_.expect_mail();
        return address_;
    }
    // The same for who may never write: sleep by a socket costs a system call more where mail is to end it. Its holder
    // calls expect_mail() before the first letter.
    [[nodiscard]] Address quiet_address() const noexcept { return address_; }
    // "worker 2 of 10.0.0.1".
    [[nodiscard]] const std::string& name() const noexcept { return address_.office_->worker; }
    // Among the workers of its port.
    [[nodiscard]] std::uint32_t number() const noexcept { return config_.owner; }
    // What its engine was made with.
    [[nodiscard]] const roce::EngineConfig& config() const noexcept { return config_; }

    [[nodiscard]] port::Port& port() noexcept { return port_; }
    [[nodiscard]] roce::UdMux& datagrams() noexcept { return datagrams_; }
    [[nodiscard]] const roce::UdMux& datagrams() const noexcept { return datagrams_; }
    [[nodiscard]] roce::Sender& sender() noexcept { return sender_; }
    [[nodiscard]] const roce::Sender& sender() const noexcept { return sender_; }
    [[nodiscard]] roce::Engine& engine() noexcept { return engine_; }
    [[nodiscard]] const roce::Engine& engine() const noexcept { return engine_; }
    // What port, engine, datagrams and sender counted, a line for each that is not zero.
    [[nodiscard]] std::string counters_text() const;

private:
    friend class Tenancy;
    Worker(port::Port& port, const roce::EngineConfig& config, std::unique_ptr<Wakeup> wakeup, Instant now);
    void remove(Tenant& tenant) noexcept;
    void forget_removed() noexcept;
    void wake_at(const Tenant& tenant, Instant due) noexcept;
    bool call_due(Instant now) noexcept;

    struct Timed {
        Tenant* tenant = nullptr;
        Instant due = Instant::never();
    };

    port::Port& port_;
    const roce::EngineConfig config_;
    const bool can_wait_;
    Address address_;
    Address::Office* office_ = nullptr;  // of that
    roce::UdMux datagrams_;
    roce::Sender sender_;
    roce::Engine engine_;
    Baton baton_;
    std::vector<Tenant*> tenants_;  // nullptr: it left in this turn
    std::vector<Tenant*> senders_;  // those of them whose on_sent() is called; likewise
    std::vector<Timed> timed_;      // those that are called when they are due
    Instant next_timed_ = Instant::never();
    bool any_left_ = false;
    bool slept_ = false;  // since the last turn, or is about to
    int epoll_fd_ = -1;
    Instant now_{};
    std::array<port::PacketRef, 64> burst_{};
};

}  // namespace cairn::worker
