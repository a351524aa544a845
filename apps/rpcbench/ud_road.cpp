#include "apps/rpcbench/ud_road.hpp"

#include <fmt/format.h>

#include "lib/base/fetch.hpp"
#include "lib/verbs/connector.hpp"

namespace cairn::rpcbench {

namespace {

std::uint32_t slot_bytes_for(std::uint32_t message_bytes) {
    const std::uint32_t whole = verbs::kGrhBytes + std::uint32_t{sizeof(RawUdMessage)} + message_bytes;
    constexpr auto kLine = static_cast<std::uint32_t>(kCacheLineBytes);
    return (whole + kLine - 1) / kLine * kLine;
}

}  // namespace

std::uint32_t UdRoad::memory_for(std::uint32_t message_bytes) noexcept {
    return 2 * kSlots * slot_bytes_for(message_bytes);
}

UdRoad::UdRoad(std::uint32_t message_bytes, rpc::MsgPool& pool)
    : pool_(pool), message_bytes_(message_bytes), slot_bytes_(slot_bytes_for(message_bytes)) {}

UdRoad::~UdRoad() {
    qp_.reset();
    region_.reset();
    pool_.release(memory_);
}

Result<std::unique_ptr<UdRoad>> UdRoad::create(std::uint32_t message_bytes, verbs::Device& device, rpc::MsgPool& pool) {
    const std::uint32_t most = device.limits().path_mtu_bytes - std::uint32_t{sizeof(RawUdMessage)};
    if (message_bytes > most) {
        return Error{
            fmt::format("a message of {} bytes is longer than a datagram here, which takes {}", message_bytes, most),
            "lower --req or --resp, or use another --system"};
    }
    std::unique_ptr<UdRoad> road(new UdRoad(message_bytes, pool));
    const Status opened = road->open(device);
    return opened.ok() ? Result<std::unique_ptr<UdRoad>>(std::move(road)) : opened.error();
}

Status UdRoad::open(verbs::Device& device) {
    memory_ = pool_.allocate(memory_for(message_bytes_));
    if (!memory_.valid()) {
        return Error{"no memory for datagrams", "lower --req or --resp"};
    }
    pd_ = device.create_pd();
    auto region = device.register_memory(*pd_, memory_.span(), verbs::Rights{verbs::Right::LocalWrite});
    auto sends = device.create_cq(kSlots);
    auto receives = device.create_cq(kSlots);
    if (!region.ok() || !sends.ok() || !receives.ok()) {
        return !region.ok() ? region.error() : !sends.ok() ? sends.error() : receives.error();
    }
    region_ = std::move(region).value();
    sends_ = std::move(sends).value();
    receives_ = std::move(receives).value();
    verbs::QpCapacity capacity;
    capacity.send_slots = kSlots;
    capacity.receive_slots = kSlots;
    capacity.max_sges = 1;
    capacity.inline_bytes = 0;
    auto qp = device.create_datagram_qp(*pd_, capacity, {*sends_, *receives_});
    if (!qp.ok()) {
        return qp.error();
    }
    qp_ = std::move(qp).value();
    const std::optional<verbs::ModifyRefusal> refusal = qp_->bring_up(verbs::kRdmaCmQkey);
    CAIRN_ASSERT(!refusal);
    for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
        post_receive(slot);
    }
    return Nothing{};
}

}  // namespace cairn::rpcbench
