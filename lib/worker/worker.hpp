// A worker: one queue of a port, and all that runs on it. It has the queue's engine, datagrams and sender, tenants that
// use them, and mail from other threads. One turn drives them all.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/roce/engine.hpp"
#include "lib/telemetry/registry.hpp"
#include "lib/worker/baton.hpp"
#include "lib/worker/mail.hpp"
#include "lib/worker/sleep.hpp"
#include "lib/worker/tenant.hpp"

namespace cairn::worker {

class Worker;

// A tenant's place on its worker. The tenant leaves when this object ends. The worker outlives both.
class Tenancy {
public:
    Tenancy() = default;
    Tenancy(Tenancy&& other) noexcept;
    Tenancy& operator=(Tenancy&& other) noexcept;
    Tenancy(const Tenancy&) = delete;
    Tenancy& operator=(const Tenancy&) = delete;
    ~Tenancy() { leave(); }
    void leave() noexcept;
    // Sets the time of the next call of a tenant that was added with WhenDue.
    void wake_at(Instant due) noexcept;

private:
    friend class Worker;
    Tenancy(Worker& worker, Tenant& tenant) noexcept : worker_(&worker), tenant_(&tenant) {}

    Worker* worker_ = nullptr;
    Tenant* tenant_ = nullptr;
};

// One thread at a time uses a worker. It is the thread that owns it and calls turn(), or the thread that gets the baton
// for a try_turn().
class Worker {
public:
    // Makes a worker. The port outlives it. Errors: the process has no descriptor left.
    static Result<std::unique_ptr<Worker>> create(port::Port& port, const roce::EngineConfig& config, Instant now);
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;
    // All tenants have left, and all counters but the worker's own (asserted). Letters that were not opened are
    // discarded.
    ~Worker();

    // Adds a tenant. It takes part in every turn from now on, after the earlier tenants. It may leave in any turn, its
    // own included.
    enum class Calls : std::uint8_t {
        OnTurn,
        OnTurnAndSent,
        WhenDue,  // on_turn() only, once the time given to Tenancy::wake_at() has come
    };
    [[nodiscard]] Tenancy add(Tenant& tenant, Calls calls = Calls::OnTurn);

    // Opens mail, delivers packets, lets the engine, the tenants and the port do the work that is due, and sends.
    // Returns true if something was done or came.
    bool turn(Instant now) noexcept {
        const bool worked = take_in(now);
        give_out(now);
        return worked;
    }
    // The two halves of turn(). Requests that a driver posts between them leave together with the packets that
    // take_in() made due.
    bool take_in(Instant now) noexcept;
    void give_out(Instant now) noexcept;
    // Takes a turn for a thread that shares the worker. Returns nullopt if another thread has the baton; the work that
    // this thread wanted done may then be in the mail.
    std::optional<bool> try_turn(Instant now) noexcept;
    // Returns the baton, for a thread that shares the worker and is about to use something on it.
    [[nodiscard]] Baton& baton() noexcept { return baton_; }

    // Returns when the next turn has something to do without packets or mail. A past time means at once. This is the
    // one place that takes the minimum of all deadlines.
    [[nodiscard]] Instant next_deadline() const noexcept;

    // Sleeps until a packet or mail comes, a doorbell rings, or something is due. A poll-only port cannot end a sleep;
    // with such a port the sleep takes kNap at most.
    static constexpr Duration kNap = microseconds(50);
    void wait(Instant now, Instant until = Instant::never()) noexcept;
    // Returns true if the port ends a sleep.
    [[nodiscard]] bool can_wait() const noexcept { return can_wait_; }

    // Returns a descriptor for the caller's own event loop. It is readable when a turn has packets, mail or the request
    // of a ringing doorbell to handle. The caller calls prepare_sleep() before each sleep, and sleeps until the
    // returned deadline at the latest. Errors: the port is poll-only and has no descriptor; the process has no
    // descriptor left.
    Result<int> descriptor();
    [[nodiscard]] Instant prepare_sleep(Instant now) noexcept;
    // Adds a doorbell. A process that maps `word` and has the doorbell's descriptor ends any sleep or nap of this
    // worker by ring(). The word outlives the doorbell. Errors: the process has no descriptor left.
    Result<std::unique_ptr<Doorbell>> add_doorbell(DoorbellWord& word) { return sleep_.add(word, name()); }

    // Returns the time of the current turn, or of the last one.
    [[nodiscard]] Instant now() const noexcept { return now_; }
    // Returns the address for letters of other threads. The address stays valid after the worker has ended.
    [[nodiscard]] Address address() const noexcept {
        address_.expect_mail();
        return address_;
    }
    // Returns the address for a holder that may never write. The holder calls expect_mail() before its first letter. A
    // sleep on a socket costs one more system call if mail must end it.
    [[nodiscard]] Address quiet_address() const noexcept { return address_; }
    // Returns the worker's name, for instance "worker 2 of 10.0.0.1".
    [[nodiscard]] const std::string& name() const noexcept { return address_.office_->worker; }
    // Returns the configuration of the worker's engine. `owner` is the worker's number among the workers of its port.
    [[nodiscard]] const roce::EngineConfig& config() const noexcept { return config_; }

    [[nodiscard]] port::Port& port() noexcept { return port_; }
    [[nodiscard]] roce::UdMux& datagrams() noexcept { return datagrams_; }
    [[nodiscard]] roce::Sender& sender() noexcept { return sender_; }
    [[nodiscard]] roce::Engine& engine() noexcept { return engine_; }
    [[nodiscard]] const roce::Engine& engine() const noexcept { return engine_; }
    // Returns the counters of port, engine, datagrams and sender, and of the tenants that register theirs here.
    [[nodiscard]] telemetry::Registry& counters() const noexcept { return counters_; }

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
    Address::Office* office_ = nullptr;  // the office of address_
    roce::UdMux datagrams_;
    roce::Sender sender_;
    roce::Engine engine_;
    mutable telemetry::Registry counters_;  // any thread uses it
    const telemetry::Registration registration_;
    Baton baton_;
    std::vector<Tenant*> tenants_;  // nullptr: the tenant left in this turn
    std::vector<Tenant*> senders_;  // the tenants whose on_sent() is called; nullptr: the tenant left in this turn
    std::vector<Timed> timed_;      // the tenants that are called when they are due
    Instant next_timed_ = Instant::never();
    bool any_left_ = false;
    Sleep sleep_;  // begun: since the last turn the worker slept, or is about to sleep
    Instant now_{};
    std::array<port::PacketRef, 64> burst_{};
};

}  // namespace cairn::worker
