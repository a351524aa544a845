#include <cstring>

#include "apps/rpcbench/ud_road.hpp"
#include "lib/verbs/connector.hpp"

namespace cairn::rpcbench {

namespace {

constexpr std::uint64_t kSignalled = 16;  // one of this many SENDs has a completion
static_assert(UdRoad::kSlots % kSignalled == 0);

}  // namespace

void UdRoad::post_receive(std::uint64_t slot) noexcept {
    const std::array<verbs::Sge, 1> memory{region_->sge(slot * slot_bytes_, slot_bytes_)};
    const verbs::PostVerdict verdict = qp_->post_receive({slot, memory});
    CAIRN_ASSERT(verdict == verbs::PostVerdict::Posted);
}

std::span<const UdArrival> UdRoad::receive(telemetry::CounterSet<UdBreach>& breaches) noexcept {
    CAIRN_ASSERT(received_ == 0);
    received_ = receives_->poll(completions_);
    std::size_t sound = 0;
    for (std::size_t i = 0; i < received_; ++i) {
        const verbs::Completion& completion = completions_[i];
        constexpr std::size_t kHeaders = verbs::kGrhBytes + sizeof(RawUdMessage);
        const std::uint8_t* const at = place_of(completion.wr_id);
        UdArrival& arrival = arrivals_[sound];
        if (completion.status != verbs::CompletionStatus::Success || completion.bytes < kHeaders ||
            at[verbs::kGrhBytes] != RawUdMessage::kVersion) {
            breaches.count(UdBreach::Malformed);
            continue;
        }
        std::memcpy(&arrival.head, at + verbs::kGrhBytes, sizeof(RawUdMessage));
        arrival.grh = {at, verbs::kGrhBytes};
        arrival.payload = {at + kHeaders, completion.bytes - kHeaders};
        arrival.from = completion.source_qpn;
        ++sound;
    }
    return std::span(arrivals_).first(sound);
}

void UdRoad::release_received() noexcept {
    for (std::size_t i = 0; i < received_; ++i) {
        post_receive(completions_[i].wr_id);
    }
    received_ = 0;
}

std::uint32_t UdRoad::room() noexcept {
    if (sent_ - left_ >= kSignalled) {
        left_ += kSignalled * sends_->poll(done_);
    }
    return kSlots - static_cast<std::uint32_t>(sent_ - left_);
}

void UdRoad::send(const UdWay& way, const RawUdMessage& head, std::uint32_t payload_bytes) noexcept {
    CAIRN_ASSERT(sent_ - left_ < kSlots && payload_bytes <= message_bytes_);
    const std::uint64_t slot = kSlots + next_place();
    std::memcpy(place_of(slot), &head, sizeof(head));
    const std::array<verbs::Sge, 1> memory{
        region_->sge(slot * slot_bytes_, std::uint32_t{sizeof(head)} + payload_bytes)};
    verbs::DatagramRequest request;
    request.work.opcode = verbs::WorkOpcode::Send;
    request.work.signalled = ++sent_ % kSignalled == 0;
    request.work.sges = memory;
    request.to = way.to;
    request.qpn = way.qpn;
    request.qkey = verbs::kRdmaCmQkey;
    const verbs::PostVerdict verdict = qp_->post_send(request);
    CAIRN_ASSERT(verdict == verbs::PostVerdict::Posted);
}

}  // namespace cairn::rpcbench
