// Calls through the channels.
#include <algorithm>
#include <bit>

#include "fs/daemon/shard_tenant_parts.hpp"
#include "fs/message/requests.hpp"
#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint32_t kChannelSlots = ChannelShape::kMostSlots;
constexpr unsigned kSlotBits = std::bit_width(kChannelSlots - 1);
constexpr unsigned kPlaceBits = 26;
constexpr std::uint64_t kPlaceMask = (std::uint64_t{1} << kPlaceBits) - 1;
constexpr std::uint64_t kForeignPlace = kPlaceMask;  // for calls that came from other processes

// Returns the token of a call: the channel's generation, its place, and the slot.
CallToken token_of(std::uint32_t generation, std::size_t place, std::uint32_t slot) noexcept {
    return std::uint64_t{generation} << (kPlaceBits + kSlotBits) | std::uint64_t{place} << kSlotBits | slot;
}

}  // namespace

bool ShardTenant::has_work() const noexcept {
    if (more_ || mail_.has_work() || !draining_.empty() || !forgetting_.empty()) {
        return true;
    }
    if (takes_ && !mail_.is_held_up()) {
        for (const auto& channel : channels_) {
            if (channel != nullptr && channel->has_calls()) {
                return true;
            }
        }
    }
    return false;
}

Instant ShardTenant::next_deadline() const noexcept {
    if (has_work()) {
        return Instant{};
    }
    const Instant due = shard_.next_deadline();
    return network_ == nullptr ? due : std::min(due, network_->next_deadline());
}

// Each turn begins with another channel. If other shards are too slow, this shard takes no more calls: each call could
// add a message that waits.
void ShardTenant::take_calls() noexcept {
    if (takes_ && network_ != nullptr) {
        network_->give_calls(shard_, worker_.now(),
                             [](std::uint32_t number) { return token_of(number, kForeignPlace, 0); });
    }
    if (!takes_ || mail_.is_held_up() || channels_.empty()) {
        return;
    }
    std::uint32_t left = kCallsATurn;
    first_ = (first_ + 1) % channels_.size();
    for (std::size_t i = 0; i != channels_.size() && left != 0; ++i) {
        const std::size_t place = (first_ + i) % channels_.size();
        if (channels_[place] != nullptr && !channels_[place]->is_closed) {
            left -= take_from(place, left);
        }
    }
}

// Returns how many slots were looked at. A slot without a request counts, too, since a client may set its bit again and
// again.
std::uint32_t ShardTenant::take_from(std::size_t place, std::uint32_t most) noexcept {
    Channel& channel = *channels_[place];
    channel.due |= channel.end.take_pending();
    std::uint32_t looked_at = 0;
    for (; channel.due != 0 && looked_at != most; ++looked_at) {
        const auto slot = static_cast<std::uint32_t>(std::countr_zero(channel.due));
        channel.due &= channel.due - 1;
        const auto request = channel.end.take(slot);
        if (request) {
            ++channel.unanswered;
            ++unanswered_;
            const ChannelShape& shape = channel.end.segment().shape();
            take_call({token_of(channel.generation, place, slot),
                       channel.client,
                       channel.number * kChannelSlots + slot,
                       channel.person->credentials(),
                       *request,
                       {channel.end.data(0).data(), std::size_t{shape.slots} * shape.data_bytes},
                       channel.buffers == nullptr ? std::span<std::uint8_t>{} : channel.buffers->memory()});
        } else if (channel.end.breach() != ChannelBreach::None) {
            channel.is_closed = true;
            counters_.count(TenantCounter::Breaches);
            tell(ShardNews::What::Breach, channel.client);
            break;
        }
    }
    return looked_at;
}

// Handles a call. A call for a shard of another machine goes to the gateway. An invalid request is answered here.
void ShardTenant::take_call(const Call& call) noexcept {
    FieldReader in(call.request);
    RequestHead head;
    RequestHead::fields(in, head);
    if (network_ != nullptr && !in.failed() && network_->cluster().is_remote(head.shard)) {
        network_->forward(call, head.shard, worker_.now());
    } else {
        shard_.take(call);
    }
}

void ShardTenant::answer(CallToken token, std::span<const std::uint8_t> bytes) noexcept {
    const auto slot = static_cast<std::uint32_t>(token % kChannelSlots);
    const std::size_t place = (token >> kSlotBits) & kPlaceMask;
    if (place == kForeignPlace) {
        network_->answer(static_cast<std::uint32_t>(token >> (kPlaceBits + kSlotBits)), bytes);
        return;
    }
    CAIRN_ASSERT(place < channels_.size() && channels_[place] != nullptr);
    Channel& channel = *channels_[place];
    CAIRN_ASSERT(channel.generation == static_cast<std::uint32_t>(token >> (kPlaceBits + kSlotBits)));
    channel.end.answer(slot, bytes);
    --channel.unanswered;
    --unanswered_;
}

}  // namespace cairn::fs
