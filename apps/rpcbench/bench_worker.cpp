#include "apps/rpcbench/bench_worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "apps/common/pattern.hpp"
#include "apps/common/session_end.hpp"
#include "lib/port/qpn_owners.hpp"
#include "pmd_glue/lcores.hpp"

namespace cairn::rpcbench {

namespace {

constexpr Duration kWarmUp = milliseconds(500);
constexpr Duration kLook = milliseconds(10);     // interval between looks at time and progress
constexpr Duration kLinger = milliseconds(200);  // a caller that also serves waits this long for its peer's sessions,
constexpr Duration kLingerMost = seconds(5);     // and this long at most
constexpr Duration kPatience = seconds(2);       // with calls that do not end

}  // namespace

BenchWorker::BenchWorker(const Options& options, std::unique_ptr<port::Port> port, std::uint16_t worker,
                         pmd::HeapBlock memory, Lookup& lookup)
    : WorkerProgram(std::move(port)),
      options_(options),
      number_(worker),
      memory_(std::move(memory)),
      pool_(memory_.bytes()),
      lookup_(lookup),
      calls_(!options.peer.empty()) {}

Status BenchWorker::prepare(const std::optional<net::IpAddress>& peer, const SipKey& seed, Instant now) {
    erpc::EndpointConfig config;
    config.qp.qpn = Qpn{options_.qpn + number_};
    config.qp.qkey = Qkey{options_.qkey};
    config.qp.path_mtu_bytes = options_.carrier.path_mtu_bytes;
    config.sessions_max = kSessionsMax;
    config.calls_max = std::max(config.calls_max, options_.window);
    config.credits = static_cast<std::uint16_t>(options_.credits);
    config.seed = seed;
    config.peer_timeout = milliseconds(options_.peer_timeout_ms);
    config.congestion = options_.congestion;
    config.selective = !options_.go_back_n;
    const Status opened = open_worker({.max_queue_pairs = 1,
                                       .max_regions = 1,
                                       .owner_bits = port::QpnOwners(pmd::worker_count()).bits(),
                                       .owner = number_,
                                       .seed = derive_key(seed, Purpose::EngineNumbers)},
                                      now);
    if (!opened.ok()) {
        return opened;
    }
    auto endpoint = erpc::Endpoint::create(config, worker(), pool_);
    if (!endpoint.ok()) {
        return endpoint.error();
    }
    endpoint_ = std::move(endpoint).value();
    load_ = std::make_unique<Load>(options_, *endpoint_, pool_, 1.0 / pmd::worker_count());
    const Status ready = load_->prepare();
    if (!ready.ok()) {
        return ready.error();
    }
    if (options_.server) {
        endpoint_->set_handler(kEcho, serve, this, options_.response_bytes);
        endpoint_->set_handler(kChecked, serve_checked, this, options_.response_bytes);
    }
    endpoint_->set_session_callback(session_changed, this);
    peer_ = peer.value_or(net::IpAddress{});
    Status ready_to_find = number_ == 0 ? make_directory(peer, now) : Nothing{};
    join();
    return ready_to_find;
}

Status BenchWorker::make_directory(const std::optional<net::IpAddress>& peer, Instant now) {
    auto home = connections::Home::create(connections::Agent::create(), worker(), {});
    if (!home.ok()) {
        return home.error();
    }
    home_ = std::move(home).value();
    directory_ = std::make_unique<erpc::Directory>(*home_);
    if (peer.has_value()) {
        const Status asked = directory_->ask(*peer, options_.service, now);
        if (!asked.ok()) {
            return asked;
        }
    }
    const erpc::ServiceOffer offer{Qpn{options_.qpn}, Qkey{options_.qkey}, pmd::worker_count()};
    return options_.server ? directory_->serve(options_.service, offer) : Nothing{};
}

// Looks for the service. Sessions begin once it is found.
void BenchWorker::keep_directory(Instant now) {
    if (directory_ != nullptr) {
        if (const std::optional<erpc::ServiceAnswer> answer = directory_->poll_answer()) {
            lookup_.offer = answer->offer;
            const bool found = answer->outcome == erpc::ServiceAnswer::Outcome::Found;
            (found ? lookup_.known : lookup_.failed).store(true, std::memory_order_release);
            if (!found) {
                fail(fmt::format("service {} of {}: {}; is the server running, with this --service?", options_.service,
                                 peer_.text(), erpc::text_of(answer->outcome)));
            }
        }
    }
    failed_ = failed_ || lookup_.failed.load(std::memory_order_acquire);
    if (calls_ && sessions_.empty() && lookup_.known.load(std::memory_order_acquire)) {
        const Status connected = connect(now);
        if (!connected.ok()) {
            fail(connected.error().text());
        }
    }
}

Status BenchWorker::connect(Instant now) {
    const auto source_port = static_cast<std::uint16_t>(port::kFirstUdpSourcePort + number_);
    const erpc::ServiceOffer& offer = lookup_.offer;
    sessions_.reserve(options_.sessions);
    for (std::uint32_t i = 0; i < options_.sessions; ++i) {
        roce::UdAddress peer;
        peer.path = port().open_path({port().local_address(), peer_, source_port, 0}, now);
        peer.qpn = Qpn{offer.qpn.value + (number_ * options_.sessions + i) % offer.workers};
        peer.qkey = offer.qkey;
        const Result<SessionId> session = endpoint_->connect(peer, now);
        if (!session.ok()) {
            return session.error();
        }
        sessions_.push_back(session.value());
    }
    return Nothing{};
}

// Calls begin before the turn, so that no latency includes the time before the call could be posted.
bool BenchWorker::run_turn(Instant now) noexcept {
    const bool began = load_->on_turn(now);
    return worker().turn(now) || began;
}

bool BenchWorker::on_turn(Instant now) noexcept {
    if (now >= next_look_) {
        keep_time(now);
    }
    return false;
}

void BenchWorker::keep_time(Instant now) noexcept {
    next_look_ = now + kLook;
    keep_directory(now);
    show_progress();
    if (!load_->failure().empty()) {
        fail(load_->failure());
    }
    if (calls_ && !failed_) {
        keep_phase(now);
    }
}

void BenchWorker::show_progress() noexcept {
    const erpc::Statistics& statistics = endpoint_->statistics();
    const auto show = [this](BenchCounter which, std::uint64_t value) {
        progress_.count(which, value - progress_.of(which));
    };
    show(BenchCounter::Completed, load_->completed());
    show(BenchCounter::Handled, statistics.requests_handled);
    show(BenchCounter::Failed, load_->failed());
    show(BenchCounter::Resent, statistics.retransmits);
}

void BenchWorker::keep_phase(Instant now) noexcept {
    switch (phase_) {
        case Phase::Connecting:
            if (connected_ == options_.sessions) {
                phase_ = Phase::Calling;
                load_->start(sessions_, now + kWarmUp, now);
                phase_ends_ = now + kWarmUp + Duration{static_cast<std::int64_t>(options_.duration_s * 1e9)};
            }
            break;
        case Phase::Calling:
            if (now >= phase_ends_) {
                phase_ = Phase::Draining;
                load_->stop(now);
                phase_ends_ = now + kPatience;
            }
            break;
        case Phase::Draining:
            if (endpoint_->calls_pending() == 0 || now >= phase_ends_) {
                close(now);
            }
            break;
        case Phase::Closing:
            break;
    }
}

void BenchWorker::close(Instant now) noexcept {
    load_->give_up();
    if (load_->unfinished() != 0) {
        fail(fmt::format("{} calls did not end within 2 s after the last one began", load_->unfinished()));
    }
    phase_ = Phase::Closing;
    phase_ends_ = now;
    for (const SessionId session : sessions_) {
        endpoint_->disconnect(session, now);
    }
}

bool BenchWorker::finished(Instant now) const noexcept {
    if (failed_) {
        return true;
    }
    const bool over = phase_ == Phase::Closing;
    if (!over || !options_.server) {
        return over && endpoint_->sessions_open() == 0;
    }
    const Duration since = now - phase_ends_;
    return since > kLingerMost || (since > kLinger && endpoint_->sessions_open() == 0);
}

void BenchWorker::serve(void* context, const erpc::Request& request) {
    const auto& self = *static_cast<BenchWorker*>(context);
    const std::size_t bytes = self.options_.response_bytes;
    if (bytes <= request.payload.size()) [[likely]] {
        request.endpoint.answer(request.handle, request.payload.first(bytes), request.now);
        return;
    }
    const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, self.options_.response_bytes);
    if (answer.size() == bytes) {
        std::memcpy(answer.data(), request.payload.data(), std::min(answer.size(), request.payload.size()));
        request.endpoint.respond(request.handle, request.now);
    }
}

void BenchWorker::serve_checked(void* context, const erpc::Request& request) {
    const auto& self = *static_cast<BenchWorker*>(context);
    const std::uint32_t asked = app::digest(request.payload);
    const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, self.options_.response_bytes);
    if (answer.size() == self.options_.response_bytes) {
        app::fill_pattern(answer, asked);
        request.endpoint.respond(request.handle, request.now);
    }
}

void BenchWorker::session_changed(void* context, SessionId session, erpc::SessionEvent event,
                                  erpc::RefuseReason reason) {
    auto& self = *static_cast<BenchWorker*>(context);
    if (event == erpc::SessionEvent::Connected) {
        ++self.connected_;
    } else if (self.phase_ != Phase::Closing) {
        self.fail(fmt::format("session {} ended: {}", session.value, app::why(reason)));
    }
}

void BenchWorker::fail(const std::string& why) {
    if (!failed_) {
        fmt::print(stderr, "cairn-rpcbench: {}\n", why);
    }
    failed_ = true;
}

}  // namespace cairn::rpcbench
