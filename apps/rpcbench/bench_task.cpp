#include "apps/rpcbench/bench_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace cairn::rpcbench {

namespace {

constexpr std::uint8_t kEcho = 1;
constexpr std::size_t kPoolBytes = std::size_t{64} << 20U;
constexpr std::uint16_t kUdpSourcePort = 0xc000;
constexpr Duration kWarmUp = milliseconds(500);

}  // namespace

double LatencyTable::percentile_us(double quantile) const noexcept {
    const double wanted = quantile * static_cast<double>(count_);
    double seen = 0;
    for (std::size_t i = 0; i < kSteps; ++i) {
        seen += steps_[i];
        if (seen >= wanted && seen > 0) {
            return static_cast<double>(i) / 100.0;
        }
    }
    return 0;
}

BenchTask::BenchTask(const Options& options, pmd::EthdevPort& port)
    : options_(options),
      port_(port),
      memory_(kPoolBytes),
      pool_(memory_),
      service_(port),
      sender_(port),
      request_(options.request_bytes, 0x5a) {}

Status BenchTask::prepare(std::uint64_t seed, Instant now) {
    erpc::EndpointConfig config;
    config.qp.qpn = Qpn{options_.qpn};
    config.qp.qkey = Qkey{options_.qkey};
    config.qp.path_mtu_bytes = static_cast<std::uint16_t>(options_.path_mtu_bytes);
    config.sessions_max = 32767;
    config.credits = static_cast<std::uint16_t>(options_.credits);
    config.seed = seed;
    config.drop_per_million = options_.drop_per_million;
    auto endpoint = erpc::Endpoint::create(config, service_, sender_, pool_);
    if (!endpoint.ok()) {
        return endpoint.error();
    }
    endpoint_ = std::move(endpoint).value();
    if (std::max(options_.request_bytes, options_.response_bytes) > endpoint_->max_message_bytes()) {
        return Error{fmt::format("messages of {} bytes do not fit one packet at path MTU {}",
                                 std::max(options_.request_bytes, options_.response_bytes), options_.path_mtu_bytes),
                     fmt::format("use at most {} bytes or a larger --path-mtu", endpoint_->max_message_bytes())};
    }
    if (options_.server) {
        endpoint_->set_handler(kEcho, serve, this);
    }
    endpoint_->set_session_callback(session_changed, this);
    next_progress_ = now + seconds(1);
    if (options_.peer.empty()) {
        return Nothing{};
    }
    const Result<net::IpAddress> remote = net::IpAddress::parse(options_.peer);
    if (!remote.ok()) {
        return remote.error();
    }
    roce::UdAddress peer;
    peer.path = port_.open_path({port_.local_address(), remote.value(), kUdpSourcePort, 0}, now);
    peer.qpn = Qpn{options_.qpn};
    peer.qkey = Qkey{options_.qkey};
    for (std::uint32_t i = 0; i < options_.sessions; ++i) {
        const Result<SessionId> session = endpoint_->connect(peer, now);
        if (!session.ok()) {
            return session.error();
        }
        sessions_.push_back(session.value());
    }
    return Nothing{};
}

bool BenchTask::run_turn(Instant now) noexcept {
    std::array<port::PacketRef, 64> burst;
    now_ = now;
    const std::size_t received = port_.receive_burst(burst, now);
    if (received != 0) {
        service_.on_packets(std::span(burst).first(received), now);
    }
    endpoint_->on_timeout(now);
    port_.on_timeout(now);
    sender_.flush(now);
    if (now >= next_progress_) {
        progress(now);
    }
    if (ended_.ns == 0 && measuring_ &&
        now - started_ >= Duration{static_cast<std::int64_t>(options_.duration_s * 1e9)}) {
        ended_ = now;
        for (const SessionId session : sessions_) {
            endpoint_->disconnect(session, now);
        }
        sender_.flush(now);
    }
    return received != 0;
}

bool BenchTask::finished(Instant) const noexcept {
    return failed_ || (ended_.ns != 0 && !options_.server && endpoint_->sessions_open() == 0) ||
           (ended_.ns != 0 && options_.server && now_ - ended_ > seconds(1));
}

void BenchTask::progress(Instant now) noexcept {
    next_progress_ = next_progress_ + seconds(1);
    if (!measuring_ && connected_ == sessions_.size() && !sessions_.empty() && now.ns > kWarmUp.ns) {
        measuring_ = true;
        started_ = now;
        completed_ = 0;
        latency_.clear();
    }
    const std::uint64_t done = options_.peer.empty() ? endpoint_->statistics().requests_handled : completed_;
    const std::uint64_t since = done >= completed_before_ ? done - completed_before_ : done;
    std::fprintf(stderr, "%.3f M/s, %u sessions, %llu resent\n", static_cast<double>(since) / 1e6,
                 endpoint_->sessions_open(), static_cast<unsigned long long>(endpoint_->statistics().retransmits));
    completed_before_ = done;
}

void BenchTask::serve(void* context, const erpc::Request& request) {
    const auto& self = *static_cast<BenchTask*>(context);
    const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, self.options_.response_bytes);
    if (answer.size() == self.options_.response_bytes) {
        std::memcpy(answer.data(), request.payload.data(), std::min(answer.size(), request.payload.size()));
        request.endpoint.respond(request.handle, request.now);
    }
}

void BenchTask::call(std::uint32_t index) noexcept {
    erpc::Call call;
    call.type = kEcho;
    call.request = request_;
    call.completion = completed;
    call.context = this;
    call.tag = index;
    failed_ = failed_ ||
              endpoint_->post(sessions_[index % sessions_.size()], call, now_).verdict != erpc::PostVerdict::Posted;
}

void BenchTask::completed(void* context, const erpc::CallResult& result) {
    auto& self = *static_cast<BenchTask*>(context);
    if (result.status != erpc::CallStatus::Ok) {
        return;  // the session callback says why
    }
    ++self.completed_;
    self.latency_.add(result.latency);
    if (self.ended_.ns == 0) {
        self.call(static_cast<std::uint32_t>(result.tag));
    }
}

void BenchTask::session_changed(void* context, SessionId session, erpc::SessionEvent event, erpc::RefuseReason) {
    auto& self = *static_cast<BenchTask*>(context);
    if (event == erpc::SessionEvent::Connected) {
        ++self.connected_;
        if (self.connected_ == self.sessions_.size()) {
            for (std::uint32_t i = 0; i < self.options_.window; ++i) {
                self.call(i);
            }
        }
    } else if (self.ended_.ns == 0) {
        std::fprintf(stderr, "cairn-rpcbench: session %u ended: %s\n", session.value,
                     event == erpc::SessionEvent::PeerLost ? "the peer is gone; is the server running?"
                                                           : "the server refused it; raise its sessions");
        self.failed_ = true;
    }
}

void BenchTask::print_result() const {
    const erpc::Statistics& statistics = endpoint_->statistics();
    for (std::size_t i = 0; i < erpc::kDropReasons; ++i) {
        if (statistics.drops[i] != 0) {
            fmt::print(stderr, "{} {}: {}\n", erpc::kDropTexts[i].counter, statistics.drops[i],
                       erpc::kDropTexts[i].meaning);
        }
    }
    const double elapsed_s = static_cast<double>((ended_ - started_).ns) / 1e9;
    const double rate_mops = elapsed_s > 0 ? static_cast<double>(completed_) / elapsed_s / 1e6 : 0;
    if (options_.json) {
        fmt::print(
            "{{\"system\":\"erpc\",\"rate_mops\":{:.3f},\"p50_us\":{:.2f},\"p99_us\":{:.2f},\"p999_us\":{:.2f},"
            "\"retransmits\":{},\"requests_handled\":{}}}\n",
            rate_mops, latency_.percentile_us(0.5), latency_.percentile_us(0.99), latency_.percentile_us(0.999),
            statistics.retransmits, statistics.requests_handled);
    }
}

}  // namespace cairn::rpcbench
