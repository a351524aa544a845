// The client from one size to the next: memory, connections, the path MTU that both ends carry.
#include <fmt/format.h>

#include <bit>

#include "apps/perf/client.hpp"

namespace cairn::perf {

namespace {

constexpr std::uint32_t kLargestOfAll = 8U << 20U;

}  // namespace

Status Client::choose_sizes() {
    const bool datagrams = options().transport == Transport::Ud;
    const bool by_path_mtu = datagrams && !options().size_given && options().test == Test::Bandwidth;
    sizes_.assign(1, by_path_mtu ? path_mtu_bytes_ : options().message_bytes);
    if (options().all_sizes) {
        sizes_.clear();
        for (std::uint32_t bytes = 2; bytes <= (datagrams ? path_mtu_bytes_ : kLargestOfAll); bytes *= 2) {
            sizes_.push_back(bytes);
        }
    }
    results_.resize(sizes_.size());
    if (datagrams && sizes_.back() > path_mtu_bytes_) {
        return Error{fmt::format("a datagram of {} bytes is more than a packet of this path, which has {}",
                                 sizes_.back(), path_mtu_bytes_),
                     fmt::format("give --size {} or less", path_mtu_bytes_)};
    }
    return Nothing{};
}

Status Client::start_size(Instant now) {
    layout_.bytes = sizes_[size_at_];
    layout_.slots = slots_for(options(), layout_.bytes, share_);
    const std::size_t bytes = layout_.area_bytes() * 2 * options().queue_pairs + kHeaderArea;
    auto memory = pmd::HeapBlock::allocate(bytes, "messages");
    if (!memory.ok()) {
        return memory.error();
    }
    memory_ = std::make_unique<pmd::HeapBlock>(std::move(memory).value());
    auto mr = device().register_memory(pd(), memory_->bytes(), kRemoteRights | verbs::Right::LocalWrite);
    if (!mr.ok()) {
        return mr.error();
    }
    mr_ = std::move(mr).value();
    results_[size_at_].message_bytes = layout_.bytes;
    pass_asked_.reset();
    pass_.reset();
    enter(Phase::Connecting, now);
    return make_lanes();
}

Status Client::make_lanes() {
    auto sends = device().create_cq(2 * options().depth + 64);
    const std::uint32_t receives_each = receives_back() ? 2 * share_ : 2;
    auto receives = device().create_cq(receives_each * options().queue_pairs + 64);
    if (!sends.ok() || !receives.ok()) {
        return sends.ok() ? receives.error() : sends.error();
    }
    sends_ = std::move(sends).value();
    receives_ = std::move(receives).value();
    verbs::QpCapacity capacity;
    capacity.send_slots = 2 * share_ + 2;
    capacity.receive_slots = receives_each;
    capacity.inline_bytes = 0;
    capacity.window_packets = options().packet_window;
    lanes_.resize(options().queue_pairs);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
        auto made = Channel::create(options().transport, device(), pd(), capacity, {*sends_, *receives_});
        if (!made.ok()) {
            return made.error();
        }
        lanes_[i].channel = std::move(made).value();
        lanes_[i].area = layout_.area_bytes() * 2 * i;
        lanes_[i].posted_at.resize(std::bit_ceil(share_));
    }
    return Nothing{};
}

void Client::give_up_lanes(Instant now) {
    for (const auto& [id, lane] : lane_of_) {
        connector().abandon(verbs::ConnectionId{id}, now);
    }
    lanes_.clear();
    lane_of_.clear();
    asked_lanes_.clear();
    mr_.reset();
    under_way_ = 0;
}

void Client::end_size(Instant now) {
    give_up_lanes(now);
    ++size_at_;
    if (size_at_ == sizes_.size()) {
        phase_ = Phase::Done;
        return;
    }
    const Status started = start_size(now);
    if (!started.ok()) {
        fail(started.error().text());
    }
}

// Begins again with a smaller path MTU. All lanes get the same answer.
void Client::on_smaller_path_mtu(std::uint32_t path_mtu_bytes) {
    if (phase_ == Phase::Agreeing) {
        return;
    }
    const bool is_one =
        std::has_single_bit(path_mtu_bytes) && path_mtu_bytes >= 256 && path_mtu_bytes < path_mtu_bytes_;
    if (options().ports.path_mtu_bytes != 0 || !is_one) {
        fail(fmt::format("the server carries path MTU {} at the most; give --path-mtu {}, or leave it out",
                         path_mtu_bytes, path_mtu_bytes));
        return;
    }
    path_mtu_bytes_ = path_mtu_bytes;
    const Status chosen = choose_sizes();
    if (!chosen.ok()) {
        fail(chosen.error().text());
    }
    phase_ = Phase::Agreeing;
}

}  // namespace cairn::perf
