// The queues that all sessions of an endpoint share.
#include "rpc/copyrpc/queues.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cairn::copyrpc {

Result<Queues> Queues::create(const EndpointConfig& config, verbs::Device& device) {
    Queues queues;
    const std::uint32_t batches = std::uint32_t{config.sessions_max} * config.receives;
    auto sends = device.create_cq(2 * batches + 1);
    if (!sends.ok()) {
        return sends.error();
    }
    queues.sends = std::move(sends).value();
    auto receives = device.create_cq(batches + batches / 2);
    if (!receives.ok()) {
        return receives.error();
    }
    queues.receives = std::move(receives).value();
    queues.requests_promised = batches;
    queues.requests_full = batches + batches / 2;
    auto requests = device.create_srq(queues.requests_full, 0);  // for WRITEs, which bring their own addresses
    if (!requests.ok()) {
        return requests.error();
    }
    queues.requests = std::move(requests).value();
    queues.refill();
    return queues;
}

void Queues::refill() const noexcept {
    static constexpr std::array<verbs::ReceiveRequest, 32> kBare{};
    if (requests->size() >= requests_promised) {
        return;
    }
    while (requests->size() < requests_full) {
        const std::size_t count = std::min<std::size_t>(kBare.size(), requests_full - requests->size());
        const verbs::PostResult posted = requests->post(std::span(kBare).first(count));
        CAIRN_ASSERT(posted.posted == count);
    }
}

}  // namespace cairn::copyrpc
