// A program on one worker: a port, a worker on it, and the program's own part of each turn.
#pragma once

#include <memory>

#include "lib/worker/loop.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::app {

// Runs a program on one worker. A derived class opens the worker, adds its parts, and then joins, so that its on_turn()
// comes after theirs.
class WorkerProgram : public worker::Task, protected worker::Tenant {
public:
    [[nodiscard]] bool run_turn(Instant now) noexcept override { return worker_->turn(now); }
    [[nodiscard]] bool can_wait() const noexcept final { return worker_->can_wait(); }
    void wait(Instant now) noexcept final { worker_->wait(now, now + kLongestWait); }

    [[nodiscard]] const worker::Worker& worker() const noexcept { return *worker_; }
    [[nodiscard]] const port::Port& port() const noexcept { return *port_; }

protected:
    explicit WorkerProgram(std::unique_ptr<port::Port> port) noexcept : port_(std::move(port)) {}
    ~WorkerProgram() override = default;

    // Makes the worker. Errors: those of Worker::create().
    Status open_worker(const roce::EngineConfig& config, Instant now) {
        auto made = worker::Worker::create(*port_, config, now);
        if (!made.ok()) {
            return made.error();
        }
        worker_ = std::move(made).value();
        return Nothing{};
    }
    void join() { tenancy_ = worker_->add(*this); }
    [[nodiscard]] worker::Worker& worker() noexcept { return *worker_; }
    [[nodiscard]] port::Port& port() noexcept { return *port_; }

private:
    std::unique_ptr<port::Port> port_;
    std::unique_ptr<worker::Worker> worker_;
    worker::Tenancy tenancy_;
};

}  // namespace cairn::app
