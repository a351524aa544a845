// The worker of cairn-counters: it serves the counters, or counts and ends.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "apps/common/worker_program.hpp"
#include "apps/counters/counters.hpp"
#include "apps/counters/hosts.hpp"
#include "pmd_glue/heap_block.hpp"

namespace cairn::counters {

struct Plan {
    std::uint16_t service = 7;
    std::uint32_t rounds = 4;
    std::uint16_t path_mtu_bytes = 1024;
    std::optional<net::IpAddress> server{};  // nullopt: this end is the server
};

// A program that has an end, and its result.
class Ending : public app::WorkerProgram {
public:
    [[nodiscard]] int exit_status() const noexcept { return exit_status_; }

protected:
    using WorkerProgram::WorkerProgram;
    int exit_status_ = 0;
};

template <class Host>
class CounterWorker final : public Ending {
public:
    CounterWorker(const Plan& plan, std::unique_ptr<port::Port> port, pmd::HeapBlock memory)
        : Ending(std::move(port)), plan_(plan), memory_(std::move(memory)), pool_(memory_.bytes()) {}

    Status open(Instant now) {
        now_ = now;
        const SipKey seed = derive_key(draw_secret(), Purpose::EngineNumbers);
        const Status opened = open_worker({.max_queue_pairs = 256, .max_regions = 4096, .seed = seed}, now);
        if (!opened.ok()) {
            return opened;
        }
        auto home = connections::Home::create(agent_, worker(), {});
        if (!home.ok()) {
            return home.error();
        }
        home_ = std::move(home).value();
        auto host = Host::create({worker(), *home_, pool_, plan_.path_mtu_bytes});
        if (!host.ok()) {
            return host.error();
        }
        host_ = std::move(host).value();
        join();
        return plan_.server ? host_->look_for(*plan_.server, plan_.service, now) : serve();
    }
    [[nodiscard]] bool finished(Instant now) const noexcept override {
        return leave_by_ != Instant::never() && (host_->endpoint().sessions_open() == 0 || now >= leave_by_);
    }

private:
    static constexpr Duration kFarewell = milliseconds(200);  // for the session's end to reach the server

    Status serve() {
        const Status served = counters_.serve(host_->endpoint());
        return served.ok() ? host_->listen(plan_.service) : served;
    }
    bool on_turn(Instant now) noexcept override {
        now_ = now;
        if (plan_.server && !begun_) {
            if (const std::optional<Result<SessionId>> session = host_->poll_session(now)) {
                begun_ = true;
                rpc::start(call(*session));
            }
        }
        return false;
    }
    [[nodiscard]] Instant next_deadline() const noexcept override { return !plan_.server || begun_ ? leave_by_ : now_; }
    rpc::Task<> call(Result<SessionId> server) {
        const char* failure = "the server did not answer; is it running, with this --system and --service?";
        if (server.ok() && co_await count(host_->endpoint(), server.value(), now_, plan_.rounds)) {
            host_->endpoint().disconnect(server.value(), now_);
        } else {
            std::fprintf(stderr, "cairn-counters: %s\n", server.ok() ? failure : server.error().text().c_str());
            exit_status_ = 1;
        }
        leave_by_ = now_ + kFarewell;
    }

    Plan plan_;
    Instant now_{};
    pmd::HeapBlock memory_;
    rpc::MsgPool pool_;
    Counters counters_;
    std::shared_ptr<connections::Agent> agent_ = connections::Agent::create();
    std::unique_ptr<connections::Home> home_;
    std::unique_ptr<Host> host_;
    bool begun_ = false;
    Instant leave_by_ = Instant::never();
};

}  // namespace cairn::counters
