// Where a worker's time goes (--stages): receiving, handling, sending, idle turns. Each turn reads the CPU's counter
// four times, some 60 ns; without the argument nothing is read.
#pragma once

#include <cstdint>

#include "lib/base/time.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::rpcbench {

// Sums, and the calls that they were spent on.
struct StageTimes {
    Duration receive{};  // port, engine; eRPC's handlers run here
    Duration handle{};   // the system's own part of a turn; the handlers of the others run here
    Duration send{};     // engine, port
    Duration idle{};     // whole turns in which nothing came and nothing was done
    std::uint64_t calls = 0;

    StageTimes& operator+=(const StageTimes& other) noexcept {
        receive = receive + other.receive;
        handle = handle + other.handle;
        send = send + other.send;
        idle = idle + other.idle;
        calls += other.calls;
        return *this;
    }
};

// A tenant that comes before the tenants of the system: its turn is where receiving ends. Times count between looks
// during which calls ended, so that a server counts the times of its clients' runs alone.
template <class Clock>
class StageWatch final : private worker::Tenant {
public:
    explicit StageWatch(worker::Worker& worker) : tenancy_(worker.add(*this)) {}

    void begin_turn() noexcept { began_ = clock_.now(); }
    // The system has had its turn.
    void end_handling() noexcept { handled_ = clock_.now(); }
    void end_turn(bool worked) noexcept {
        const Instant now = clock_.now();
        if (worked) {
            recent_.receive = recent_.receive + (received_ - began_);
            recent_.handle = recent_.handle + (handled_ - received_);
            recent_.send = recent_.send + (now - handled_);
        } else {
            recent_.idle = recent_.idle + (now - began_);
        }
    }
    // `calls` that ended since the program began.
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
    Instant handled_{};
    StageTimes recent_{};  // since the last look
    StageTimes times_{};
    std::uint64_t calls_ = 0;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::rpcbench
