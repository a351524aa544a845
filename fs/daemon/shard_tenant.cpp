// A tenant's channels: how they begin and end.
#include "fs/daemon/shard_tenant.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "fs/daemon/shard_tenant_parts.hpp"
#include "lib/base/assert.hpp"

namespace cairn::fs {

// A piece of work for the worker's thread. It deletes itself.
class ShardTenant::Errand final : public worker::Letter {
public:
    enum class What : std::uint8_t { OpenChannel, Drain, Forget, Nothing };

    Errand(ShardTenant& tenant, What what, std::uint64_t client) noexcept
        : tenant_(tenant), what_(what), client_(client) {}
    Errand(ShardTenant& tenant, ChannelOrder order) noexcept
        : tenant_(tenant), what_(What::OpenChannel), order_(std::move(order)) {}

    void open(worker::Worker&, Instant) noexcept override {
        switch (what_) {
            case What::OpenChannel:
                tenant_.add(*std::move(order_));
                break;
            case What::Drain:
                tenant_.end_channels(client_);
                break;
            case What::Forget:
                tenant_.forgetting_.push_back(client_);
                break;
            case What::Nothing:
                break;
        }
        discard();
    }
    void discard() noexcept override { delete this; }

private:
    ShardTenant& tenant_;
    const What what_;
    std::uint64_t client_ = 0;
    std::optional<ChannelOrder> order_{};
};

namespace {

// Returns the times of a turn. clock_gettime() cannot fail here: all kernels have a wall clock.
ShardTime time_of(Instant now) noexcept {
    timespec wall{};
    ::clock_gettime(CLOCK_REALTIME, &wall);
    return {now, std::int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec};
}

}  // namespace

ShardTenant::ShardTenant(worker::Worker& worker, NewsBox& news, Store& store, const ClusterFacts& facts,
                         ShardNumber number, std::uint64_t seed, Instant now)
    : worker_(worker),
      address_(worker.address()),
      news_(news),
      shard_(store, *this, facts, number, seed, time_of(now), ::geteuid()),
      registration_(worker.counters().add(telemetry::CounterList().add(counters_))),
      tenancy_(worker.add(*this)) {}

ShardTenant::~ShardTenant() = default;

void ShardTenant::open_channel(ChannelOrder order) {
    post(std::make_unique<Errand>(*this, std::move(order)));
}

void ShardTenant::drain(std::uint64_t client) {
    post(std::make_unique<Errand>(*this, Errand::What::Drain, client));
}

void ShardTenant::forget(std::uint64_t client) {
    post(std::make_unique<Errand>(*this, Errand::What::Forget, client));
}

void ShardTenant::wake() {
    post(std::make_unique<Errand>(*this, Errand::What::Nothing, 0));
}

// A worker that has ended serves no client, so the errand is dropped.
void ShardTenant::post(std::unique_ptr<Errand> errand) {
    if (address_.send(*errand).ok()) {
        (void)errand.release();  // the mail owns it now
    }
}

Status ShardTenant::set_peers(const std::vector<ShardTenant*>& peers) {
    std::vector<ShardMail*> all;
    for (ShardTenant* const peer : peers) {
        all.push_back(peer != nullptr ? &peer->mail_ : nullptr);
        is_near_.push_back(peer != nullptr);
    }
    return mail_.open(worker_, shard_.number(), all);
}

void ShardTenant::send(ShardNumber to, std::span<const std::uint8_t> message) noexcept {
    CAIRN_ASSERT(to < is_near_.size());
    if (is_near_[to]) {
        mail_.send(to, message);
    } else {
        network_->send(to, message);
    }
}

// The client gets copies of the descriptors: the channel's own may be closed before they are sent.
void ShardTenant::add(ChannelOrder order) {
    const std::uint64_t client = order.client;
    auto channel = std::make_unique<Channel>(std::move(order), ++generation_);
    auto bell = worker_.add_doorbell(channel->end.doorbell());
    auto news = std::make_unique<ShardNews>();
    news->client = client;
    news->shard = shard_.number();
    if (bell.ok()) {
        news->doorbell = OwnedFd(::fcntl(bell.value()->fd(), F_DUPFD_CLOEXEC, 0));
        news->segment = OwnedFd(::fcntl(channel->end.segment().fd(), F_DUPFD_CLOEXEC, 0));
    }
    if (!news->doorbell.is_open() || !news->segment.is_open()) {
        news->what = ShardNews::What::ChannelFailed;
        news_.tell(std::move(news));
        return;
    }
    channel->bell = std::move(bell).value();
    const auto free = std::find(channels_.begin(), channels_.end(), nullptr);
    if (free != channels_.end()) {
        *free = std::move(channel);
    } else {
        channels_.push_back(std::move(channel));
    }
    news->what = ShardNews::What::ChannelMade;
    news_.tell(std::move(news));
}

void ShardTenant::end_channels(std::uint64_t client) {
    for (const auto& channel : channels_) {
        if (channel != nullptr && channel->client == client) {
            channel->is_closed = true;
        }
    }
    draining_.push_back(client);
}

// Ends channels that are closed and have no unanswered call. Until then the shard may read and write their data.
void ShardTenant::retire() noexcept {
    std::erase_if(draining_, [this](std::uint64_t client) {
        bool is_drained = true;
        for (auto& channel : channels_) {
            if (channel != nullptr && channel->client == client) {
                if (channel->unanswered == 0) {
                    channel.reset();
                } else {
                    is_drained = false;
                }
            }
        }
        if (is_drained) {
            tell(ShardNews::What::Drained, client);
        }
        return is_drained;
    });
}

void ShardTenant::tell(ShardNews::What what, std::uint64_t client) noexcept {
    auto news = std::make_unique<ShardNews>();
    news->what = what;
    news->client = client;
    news->shard = shard_.number();
    news_.tell(std::move(news));
}

bool ShardTenant::on_turn(Instant now) noexcept {
    if (next_deadline() > now) {
        return false;
    }
    shard_.begin_turn(time_of(now));
    take_messages();
    take_calls();
    for (const std::uint64_t client : std::exchange(forgetting_, {})) {
        shard_.forget(client);
        if (network_ != nullptr) {
            network_->forget(client);
        }
        tell(ShardNews::What::Forgotten, client);
    }
    more_ = shard_.end_turn();
    mail_.flush();
    retire();
    publish();
    return true;
}

void ShardTenant::take_messages() noexcept {
    if (network_ != nullptr) {
        network_->begin_turn(shard_, worker_.now());
    }
    mail_.take([this](ShardNumber from, std::span<const std::uint8_t> message) {
        const bool is_message = shard_.take_message(from, message);
        CAIRN_ASSERT(is_message);  // it is of this process
    });
}

void ShardTenant::publish() noexcept {
    const ShardCounters& now = shard_.counters();
    const auto show = [this](TenantCounter which, std::uint64_t value, std::uint64_t& before) {
        counters_.count(which, value - std::exchange(before, value));
    };
    show(TenantCounter::Calls, now.calls, published_.calls);
    show(TenantCounter::Failed, now.failed, published_.failed);
    show(TenantCounter::Malformed, now.malformed, published_.malformed);
    show(TenantCounter::Repeated, now.repeated, published_.repeated);
    show(TenantCounter::OtherShard, now.other_shard, published_.other_shard);
    show(TenantCounter::Damaged, now.damaged, published_.damaged);
    show(TenantCounter::RemovedFiles, now.removed_files, published_.removed_files);
    show(TenantCounter::Syncs, now.syncs, published_.syncs);
    counters_.count(TenantCounter::Turns);
}

}  // namespace cairn::fs
