// The interface of an RPC system for cairn-rpcbench, in addition to its calls: an endpoint, sessions to a server, and
// figures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/rpcbench/clients.hpp"
#include "apps/rpcbench/crew.hpp"
#include "apps/rpcbench/load.hpp"
#include "apps/rpcbench/service.hpp"
#include "lib/base/secret.hpp"
#include "lib/net/address.hpp"
#include "lib/worker/worker.hpp"
#include "rpc/copyrpc/statistics.hpp"

namespace cairn::rpcbench {

// A worker's objects for its system. Objects that are referred to outlive the system.
struct Stage {
    const Options& options;
    std::uint16_t number = 0;  // of the worker
    std::uint16_t workers = 1;
    Crew& crew;
    worker::Worker& worker;
    rpc::MsgPool& pool;
    std::optional<net::IpAddress> peer{};
    SipKey seed{};  // hard to guess
    HandlerWatch* watch = nullptr;
};

constexpr std::size_t kBatchSizes = copyrpc::BatchSizes::kClasses;

// The figures of groups that take turns.
struct SliceFigures {
    std::uint64_t begun = 0;
    std::uint64_t notices_alone = 0;    // ends of slices that were not announced in an answer
    std::uint64_t keys_ended = 0;       // of clients that did not leave in time
    std::uint64_t fetches = 0;          // READs of waiting requests
    std::uint64_t polls = 0;            // blocks looked at
    std::uint64_t legacy_requests = 0;  // that threads got, since requests of their type take longer than a slice

    SliceFigures& operator+=(const SliceFigures& other) noexcept {
        for (std::uint64_t SliceFigures::*const each :
             {&SliceFigures::begun, &SliceFigures::notices_alone, &SliceFigures::keys_ended, &SliceFigures::fetches,
              &SliceFigures::polls, &SliceFigures::legacy_requests}) {
            this->*each += other.*each;
        }
        return *this;
    }
};

struct SystemFigures {
    std::uint64_t handled = 0;           // requests, as a server
    std::uint64_t resent = 0;            // packets
    std::uint64_t responses_resent = 0;  // since their requests came again
    std::uint64_t notified = 0;          // cuts of a flow, for congestion
    std::uint64_t sessions_lost = 0;
    std::uint64_t batches_sent = 0;  // of messages; 0 without batches
    // Of these: batches without a message, with one, with 2 and more, with 4 and more, and so on.
    std::array<std::uint64_t, kBatchSizes> batches_by_size{};
    std::uint64_t packets_sent = 0;  // 0: not known
    SliceFigures slices{};
    std::uint64_t bytes_of_session = 0;   // memory of an idle one
    std::uint64_t bytes_beside_pool = 0;  // memory of the open sessions, apart from the pool of messages

    SystemFigures& operator+=(const SystemFigures& other) noexcept {
        handled += other.handled;
        resent += other.resent;
        responses_resent += other.responses_resent;
        notified += other.notified;
        sessions_lost += other.sessions_lost;
        batches_sent += other.batches_sent;
        for (std::size_t i = 0; i < kBatchSizes; ++i) {
            batches_by_size[i] += other.batches_by_size[i];
        }
        packets_sent += other.packets_sent;
        slices += other.slices;
        bytes_of_session += other.bytes_of_session;
        bytes_beside_pool += other.bytes_beside_pool;
        return *this;
    }
};

class System {
public:
    System(const System&) = delete;
    System& operator=(const System&) = delete;
    virtual ~System() = default;

    // Finds the service and begins the sessions. Called every few milliseconds.
    virtual void look(Instant now) = 0;
    // Ends the sessions.
    virtual void close(Instant now) = 0;
    [[nodiscard]] virtual std::size_t sessions_open() const = 0;
    [[nodiscard]] virtual std::uint32_t calls_pending() const = 0;
    [[nodiscard]] virtual SystemFigures figures() const = 0;

    [[nodiscard]] Load& load() noexcept { return *load_; }
    [[nodiscard]] const Load& load() const noexcept { return *load_; }
    [[nodiscard]] const std::vector<SessionId>& sessions() const noexcept { return sessions_; }
    // Returns whether the sessions of a client are open.
    [[nodiscard]] bool is_connected() const noexcept { return connected_ == options_.sessions; }
    // Returns why the system cannot go on; empty if it can.
    [[nodiscard]] const std::string& failure() const noexcept { return failure_; }

protected:
    explicit System(const Options& options) noexcept : options_(options) {}
    // Notes why it cannot go on. The first reason counts.
    void fail(std::string why) {
        if (failure_.empty()) {
            failure_ = std::move(why);
        }
    }

    const Options& options_;
    std::unique_ptr<Load> load_;
    std::vector<SessionId> sessions_;
    std::uint32_t connected_ = 0;
    bool closing_ = false;  // sessions end because we end them

private:
    std::string failure_;
};

// The common part of all systems.
template <class Endpoint>
class SystemOf : public System {
public:
    void close(Instant now) override {
        closing_ = true;
        for (const SessionId session : sessions_) {
            endpoint_->disconnect(session, now);
        }
    }
    [[nodiscard]] std::size_t sessions_open() const override { return endpoint_->sessions_open(); }
    [[nodiscard]] std::uint32_t calls_pending() const override { return endpoint_->calls_pending(); }

protected:
    ~SystemOf() override = default;
    explicit SystemOf(const Stage& stage) noexcept : System(stage.options), service_(stage.options, stage.watch) {}
    // Takes the endpoint, serves if the options ask for a server, and makes the load. Errors: those of Service::open()
    // and Load::prepare().
    Status take(std::unique_ptr<Endpoint> endpoint, const Stage& stage) {
        endpoint_ = std::move(endpoint);
        const Status opened = options_.server ? service_.open(*endpoint_) : Nothing{};
        if (!opened.ok()) {
            return opened;
        }
        const double share = 1.0 / stage.workers;
        if (options_.clients.count != 0) {
            load_ = std::make_unique<ClientsOf<Endpoint>>(options_, *endpoint_, stage.pool, share, stage.number);
        } else {
            load_ = std::make_unique<LoadOf<Endpoint>>(options_, *endpoint_, stage.pool, share);
        }
        return load_->prepare();
    }
    // Ends the endpoint, for a system that owns objects which the endpoint uses.
    void drop_endpoint() noexcept { endpoint_.reset(); }
    [[nodiscard]] Service<Endpoint>& service() noexcept { return service_; }
    [[nodiscard]] Endpoint& endpoint() noexcept { return *endpoint_; }
    [[nodiscard]] const Endpoint& endpoint() const noexcept { return *endpoint_; }

private:
    Service<Endpoint> service_;
    std::unique_ptr<Endpoint> endpoint_;
};

// Makes the system that the options name, on a worker with the engine of engine_config(). Errors: those of its
// endpoint; the service is taken.
Result<std::unique_ptr<System>> make_system(const Stage& stage, Instant now);
[[nodiscard]] roce::EngineConfig engine_config(const Options& options);
// Returns the memory of a worker's sessions.
[[nodiscard]] std::size_t session_memory(const Options& options);

}  // namespace cairn::rpcbench
