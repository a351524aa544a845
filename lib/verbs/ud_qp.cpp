#include "lib/verbs/ud_qp.hpp"

#include <algorithm>
#include <array>

namespace cairn::verbs {

UdQp::UdQp(AsyncEvents& events, roce::Engine& engine, roce::UdQueuePair& qp, Pd& pd, const QpQueues& queues) noexcept
    : AsyncSource(events), engine_(engine), qp_(qp), used_(pd, queues) {
    qp_.set_event_sink(this);
}

UdQp::~UdQp() {
    engine_.destroy_ud(qp_);
}

std::optional<ModifyRefusal> UdQp::bring_up(Qkey qkey, Pkey pkey) noexcept {
    QpAttributes values;
    values.qkey = qkey;
    values.pkey = pkey;
    if (state() != QpState::Reset) {
        return ModifyRefusal::NoTransition;
    }
    std::optional<ModifyRefusal> refusal =
        modify(QpState::Init, AttributeSet::of(Attribute::Qkey, Attribute::Pkey), values);
    if (!refusal) {
        refusal = modify(QpState::Rtr);
    }
    return refusal ? refusal : modify(QpState::Rts, AttributeSet::of(Attribute::SendPsn), values);
}

net::IpAddress source_of(std::span<const std::uint8_t> grh) noexcept {
    constexpr std::size_t kIpv4At = kGrhBytes - 20;
    if (grh.size() < kGrhBytes) {
        return {};
    }
    if (grh[0] >> 4U == 6) {
        std::array<std::uint8_t, 16> octets{};
        std::copy_n(grh.begin() + 8, octets.size(), octets.begin());
        return net::IpAddress::from_v6(octets);
    }
    if (grh[kIpv4At] != 0x45) {
        return {};
    }
    std::uint32_t address = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        address = address << 8U | grh[kIpv4At + 12 + i];
    }
    return net::IpAddress::from_v4(address);
}

}  // namespace cairn::verbs
