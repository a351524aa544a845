#include "apps/rpcbench/ud_endpoint.hpp"

#include <utility>

namespace cairn::rpcbench {

UdEndpoint::UdEndpoint(const UdConfig& config, verbs::Device& device, connections::Home& home,
                       std::unique_ptr<UdRoad> road)
    : RequestTypes({config.message_bytes, "let messages be longer"}, nullptr),
      worker_(device.worker()),
      config_(config),
      road_(std::move(road)),
      sessions_(config_, device, home, *road_, statistics_),
      calls_(config.calls_max, statistics_.calls_failed),
      posted_(config.calls_max, Instant::never()),
      tenancy_(device.worker().add(*this)),
      registration_(device.worker().counters().add(statistics_.list_counters())) {}

Result<std::unique_ptr<UdEndpoint>> UdEndpoint::create(const UdConfig& config, verbs::Device& device,
                                                       connections::Home& home, rpc::MsgPool& pool) {
    auto road = UdRoad::create(config.message_bytes, device, pool);
    if (!road.ok()) {
        return road.error();
    }
    return std::unique_ptr<UdEndpoint>(new UdEndpoint(config, device, home, std::move(road).value()));
}

UdEndpoint::~UdEndpoint() {
    tenancy_.leave();
    calls_.end_awaited([this](std::uint32_t index) {
        if (calls_.slot_of(index) == rpc::CallTable::kNoSlot) {
            calls_.leave(backlog_, index);
        }
        calls_.finish(index, rpc::CallStatus::Disconnected, {}, worker_.now());
    });
}

void UdEndpoint::look(Instant now) noexcept {
    constexpr Duration kInterval = milliseconds(10);
    next_look_ = now + kInterval;
    sessions_.look(calls_.pending() != 0, now);
    end_late_calls(now);
}

// Ends calls that lost a datagram, or their session.
void UdEndpoint::end_late_calls(Instant now) noexcept {
    for (std::uint32_t index = 0; calls_.pending() != 0 && index < posted_.size(); ++index) {
        if (posted_[index] == Instant::never()) {
            continue;
        }
        const bool is_open = sessions_.open_session(calls_.session_of(index).number()) != nullptr;
        const bool is_late = now - posted_[index] > config_.peer_timeout || now >= calls_[index].deadline;
        if (is_open && !is_late) {
            continue;
        }
        if (calls_.slot_of(index) == rpc::CallTable::kNoSlot) {
            calls_.leave(backlog_, index);
        } else {
            --under_way_;
        }
        posted_[index] = Instant::never();
        calls_.finish(index, is_open ? rpc::CallStatus::DeadlinePassed : rpc::CallStatus::Disconnected, {}, now);
    }
}

}  // namespace cairn::rpcbench
