// Measures a worker's time by stage (--stages): receiving, handling, sending, idle turns, and the part of it that
// handlers take. Each turn reads the CPU's counter four times, some 60 ns, and each handler twice; without the argument
// it is not read.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/worker/worker.hpp"
#include "rpc/common/turn_watch.hpp"

namespace cairn::rpcbench {

// Sums, and the calls that they were spent on.
struct StageTimes {
    Duration receive{};  // port, engine; eRPC's handlers run here
    Duration handle{};   // the system's own part of a turn; the handlers of the others run here
    Duration send{};     // engine, port
    Duration idle{};     // whole turns without packets and without work
    Duration handler{};  // part of the stage in which handlers run: the service itself, and its answers
    // Parts of `handle`, for a system that reports them (rpc::TurnWatch):
    Duration judge{};    // received messages are read and judged, less the handlers
    Duration compose{};  // messages are composed and posted
    std::uint64_t calls = 0;

    StageTimes& operator+=(const StageTimes& other) noexcept {
        for (Duration StageTimes::*const part :
             {&StageTimes::receive, &StageTimes::handle, &StageTimes::send, &StageTimes::idle, &StageTimes::handler,
              &StageTimes::judge, &StageTimes::compose}) {
            this->*part = this->*part + other.*part;
        }
        calls += other.calls;
        return *this;
    }
};

// Receives the times of handlers from the service.
class HandlerWatch : public rpc::TurnWatch {
public:
    virtual void begin_handler() noexcept = 0;
    virtual void end_handler() noexcept = 0;

protected:
    ~HandlerWatch() = default;
};

// Measures the stages, as a tenant that comes before the tenants of the system: its turn is where receiving ends. Times
// count between looks during which calls ended. So a server counts the times of its clients' runs alone.
template <class Clock>
class StageWatch final : public HandlerWatch, private worker::Tenant {
public:
    explicit StageWatch(worker::Worker& worker) : tenancy_(worker.add(*this)) {}

    void begin_turn() noexcept {
        began_ = clock_.now();
        handlers_ = {};
    }
    void begin_handler() noexcept override { handler_began_ = clock_.now(); }
    void end_handler() noexcept override { handlers_ = handlers_ + (clock_.now() - handler_began_); }
    void on_taken() noexcept override { taken_ = clock_.now(); }
    // Notes that the system has had its turn.
    void end_handling() noexcept { handled_ = clock_.now(); }
    void end_turn(bool worked) noexcept {
        const Instant now = clock_.now();
        if (!worked) {
            recent_.idle = recent_.idle + (now - began_);
            return;
        }
        recent_.receive = recent_.receive + (received_ - began_);
        recent_.handle = recent_.handle + (handled_ - received_);
        recent_.send = recent_.send + (now - handled_);
        recent_.handler = recent_.handler + handlers_;
        if (taken_ >= received_) {
            recent_.judge = recent_.judge + (taken_ - received_ - handlers_);
            recent_.compose = recent_.compose + (handled_ - taken_);
        }
    }
    // Takes a look. `calls` is the number of calls that ended since the program began.
    void look(std::uint64_t calls) noexcept {
        recent_.calls = calls - calls_;
        calls_ = calls;
        if (recent_.calls != 0) {
            times_ += recent_;
        }
        recent_ = {};
    }
    [[nodiscard]] const StageTimes& times() const noexcept { return times_; }

private:
    bool on_turn(Instant) noexcept override {
        received_ = clock_.now();
        return false;
    }
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }

    const Clock clock_{};
    Instant began_{};
    Instant received_{};
    Instant taken_ = Instant{} - seconds(1);  // before `received_`: the system does not report it
    Instant handled_{};
    Instant handler_began_{};
    Duration handlers_{};  // of the turn
    StageTimes recent_{};  // since the last look
    StageTimes times_{};
    std::uint64_t calls_ = 0;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::rpcbench
