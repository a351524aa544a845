#include "rpc/scalerpc/pools.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::scalerpc {

namespace {

// Slots at distances of a power of two would share few sets of the caches.
std::size_t stride_of(const EndpointConfig& config) noexcept {
    return config.shape.session_bytes() + (config.features.colouring ? kLineBytes : 0);
}

}  // namespace

std::size_t Pools::sides_of(const EndpointConfig& config) noexcept {
    return config.features.grouping && config.features.sharing ? 2 : 1;
}

std::uint32_t Pools::slots_for(const EndpointConfig& config) noexcept {
    const std::uint32_t all = config.sessions_max;
    return sides_of(config) == 2 ? std::min(config.groups.most(), all) : all;
}

std::size_t Pools::bytes_for(const EndpointConfig& config) noexcept {
    return sides_of(config) * slots_for(config) * stride_of(config);
}

Pools::Pools(const EndpointConfig& config, rpc::MsgPool& pool)
    : shape_(config.shape),
      is_shared_(sides_of(config) == 2),
      slots_(slots_for(config)),
      is_scarce_(slots_ < config.sessions_max),
      stride_(stride_of(config)),
      pool_(pool) {
    for (Side& side : sides_) {
        for (std::uint32_t i = slots_; i > 0; --i) {
            side.free.push_back(i - 1);
        }
        side.tenants.reserve(slots_);
    }
    late_hosts_.reserve(sides_.size() * slots_);
}

Pools::~Pools() {
    region_.reset();
    pool_.release(memory_);
}

Result<std::unique_ptr<Pools>> Pools::create(const EndpointConfig& config, verbs::Device& device, verbs::Pd& pd,
                                             rpc::MsgPool& memory) {
    std::unique_ptr<Pools> pools(new Pools(config, memory));
    const std::size_t bytes = bytes_for(config);
    if (bytes <= memory.longest_message()) {
        pools->memory_ = memory.allocate(static_cast<std::uint32_t>(bytes));
    }
    if (!pools->memory_.valid()) {
        return Error{fmt::format("there is no memory for {} bytes of requests", bytes),
                     fmt::format("choose fewer or smaller blocks, or fewer clients: the pool of messages has room for "
                                 "{} bytes at a time",
                                 memory.longest_message())};
    }
    std::fill(pools->memory_.span().begin(), pools->memory_.span().end(), std::uint8_t{0});
    auto region = device.register_memory(pd, pools->memory_.span(),
                                         verbs::Rights{verbs::Right::LocalWrite} | verbs::Right::BindWindow, 0);
    if (!region.ok()) {
        return region.error();
    }
    pools->region_ = std::move(region).value();
    return pools;
}

bool Pools::take_berth(std::uint8_t pool, Session& session) {
    Side& side = sides_[pool];
    const bool late = std::find(late_hosts_.begin(), late_hosts_.end(), session.asker) != late_hosts_.end();
    if (side.free.empty() || (late && !has_spare(pool))) {
        return false;
    }
    session.guest->berth = Berth{pool, side.free.back(), static_cast<std::uint32_t>(side.tenants.size())};
    side.free.pop_back();
    side.tenants.push_back(&session);
    CAIRN_ASSERT(side.tenants.size() <= slots_);  // one group's clients at most, however many clients there are (I2)
    return true;
}

void Pools::note_late_hosts(Instant now, Duration longest) noexcept {
    late_hosts_.clear();
    if (!is_scarce_) {
        return;
    }
    for (const Side& side : sides_) {
        for (const Session* const tenant : side.tenants) {
            const GuestState state = tenant->guest->state;
            const bool awaited = state == GuestState::Fetching || state == GuestState::Leaving;
            if (awaited && now - tenant->guest->left >= longest) {
                late_hosts_.push_back(tenant->asker);
            }
        }
    }
}

// A client that left normally wrote only zeros before its requests.
void Pools::give_back(Session& session) {
    std::optional<Berth>& berth = session.guest->berth;
    if (!berth) {
        return;
    }
    const std::span<std::uint8_t> blocks = memory_.span().subspan(offset_of(*berth), shape_.session_bytes());
    for (std::size_t at = 0; at < blocks.size(); at += shape_.bytes) {
        if (const std::span<std::uint8_t> left = blocks.subspan(at, shape_.bytes); !has_no_request(left)) {
            std::fill(left.begin(), left.end(), std::uint8_t{0});
        }
    }
    Side& side = sides_[berth->pool];
    side.free.push_back(berth->slot);
    Session*& place = side.tenants[berth->tenant];
    place = side.tenants.back();
    place->guest->berth->tenant = berth->tenant;
    side.tenants.pop_back();
    berth.reset();
}

void Pools::wipe(const Guest& guest) noexcept {
    if (guest.berth) {
        const std::span<std::uint8_t> berth = memory_.span().subspan(offset_of(*guest.berth), shape_.session_bytes());
        std::fill(berth.begin(), berth.end(), std::uint8_t{0});
    }
}

}  // namespace cairn::scalerpc
