#include "lib/verbs/device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cairn::verbs {

namespace {

// Returns an Error that names the limit unless `value` is in [least, most].
Status judge_limit(const char* what, std::uint32_t value, std::uint32_t least, std::uint32_t most) {
    if (value >= least && value <= most) {
        return Nothing{};
    }
    return Error{fmt::format("{} {} is out of range", value, what), fmt::format("give {} to {}", least, most)};
}

}  // namespace

// Takes the posts before the turn looks at packets. So a receive request is there for the message that it was posted
// for.
void PostNotice::open(worker::Worker&, Instant) noexcept {
    if (device_ == nullptr) {
        end();
        return;
    }
    // Cleared before the posts are taken. A thread that posts later sends the notice again. A thread that found the
    // notice already sent has its posts taken here.
    sent_.exchange(false, std::memory_order_acq_rel);
    device_->drain_posts();
    device_->drained_ = true;
}

void PostNotice::leave(std::unique_ptr<PostNotice> notice) noexcept {
    if (notice->sent_.load(std::memory_order_acquire)) {
        notice->device_ = nullptr;
        static_cast<void>(notice.release());  // it owns itself from now on and ends in end()
    }
}

void PostNotice::end() noexcept {
    delete this;
}

Device::Device(worker::Worker& worker)
    : worker_(worker),
      engine_(worker.engine()),
      address_(worker.quiet_address()),
      notice_(std::make_unique<PostNotice>(*this)) {
    limits_.queue_pairs = worker.config().max_queue_pairs;
    limits_.regions = worker.config().max_regions;
    limits_.queue_slots = roce::kMaxQueueSlots;
    limits_.completion_slots = roce::kMaxCompletionSlots;
    limits_.sges = roce::kMaxSges;
    limits_.inline_bytes = roce::kMaxInlineBytes;
    limits_.message_bytes = roce::kMaxMessageBytes;
    limits_.rd_atomic = roce::kMaxRdAtomic;
    limits_.path_mtu_bytes = roce::largest_path_mtu(worker.port());
}

void Device::take_part() {
    if (!takes_part_) {
        tenancy_ = worker_.add(*this, worker::Worker::Calls::OnTurnAndSent);
        takes_part_ = true;
    }
}

AsyncEvents& Device::async_events() {
    take_part();
    return events_;
}

void Device::add(RemotePosts& posts) {
    take_part();
    address_.expect_mail();
    remotes_.push_back(&posts);
}

Limits Device::limits() const noexcept {
    return limits_;
}

Result<std::unique_ptr<Mr>> Device::register_memory(Pd& pd, std::span<std::uint8_t> memory, Rights rights) {
    return register_memory(pd, memory, rights, reinterpret_cast<std::uintptr_t>(memory.data()));
}

Result<std::unique_ptr<Mr>> Device::register_memory(Pd& pd, std::span<std::uint8_t> memory, Rights rights,
                                                    std::uint64_t base) {
    const Result<Rkey> key = engine_.register_region({pd.id(), memory, base, rights});
    if (!key.ok()) {
        return key.error();
    }
    return std::make_unique<Mr>(engine_, pd, memory, base, key.value());
}

Result<std::unique_ptr<Mw>> Device::create_window(Pd& pd, WindowType type) {
    const Result<Rkey> key = engine_.create_window(pd.id(), type);
    if (!key.ok()) {
        return key.error();
    }
    return std::make_unique<Mw>(engine_, pd, type, key.value());
}

Result<std::unique_ptr<CompletionChannel>> Device::create_channel() {
    auto descriptor = EventDescriptor::create();
    if (!descriptor.ok()) {
        return descriptor.error();
    }
    take_part();
    return std::make_unique<CompletionChannel>(channels_, std::move(descriptor).value());
}

Result<std::unique_ptr<Cq>> Device::create_cq(std::uint32_t slots, CompletionChannel* channel) {
    const Status judged = judge_limit("completion slots", slots, 1, limits_.completion_slots);
    return judged.ok() ? std::make_unique<Cq>(events_, slots, channel) : Result<std::unique_ptr<Cq>>(judged.error());
}

Result<std::unique_ptr<Srq>> Device::create_srq(std::uint32_t slots, std::uint32_t max_sges) {
    const Status judged = judge_srq(slots, max_sges);
    return judged.ok() ? std::make_unique<Srq>(events_, slots, max_sges) : Result<std::unique_ptr<Srq>>(judged.error());
}

Result<std::unique_ptr<XrcSrq>> Device::create_xrc_srq(Pd& pd, Xrcd& domain, Cq& receives, std::uint32_t slots,
                                                       std::uint32_t max_sges) {
    Status judged = judge_srq(slots, max_sges);
    if (!judged.ok()) {
        return judged.error();
    }
    auto made = std::make_unique<XrcSrq>(events_, engine_, pd, domain, receives, slots, max_sges);
    judged = made->take_number();
    return judged.ok() ? std::move(made) : Result<std::unique_ptr<XrcSrq>>(judged.error());
}

Status Device::judge_srq(std::uint32_t slots, std::uint32_t max_sges) const {
    Status judged = judge_limit("receive slots", slots, 1, limits_.queue_slots);
    return judged.ok() ? judge_limit("SGEs of a receive request", max_sges, 0, limits_.sges) : judged;
}

Result<std::unique_ptr<Qp>> Device::create_qp(Pd& pd, const QpCapacity& capacity, const QpQueues& queues) {
    Status judged = judge_capacity(capacity, queues);
    if (judged.ok()) {
        judged = judge_limit("window packets", capacity.window_packets, 2, 1U << 20U);
    }
    if (!judged.ok()) {
        return judged.error();
    }
    const bool xrc = capacity.service == Service::Xrc;
    if (!xrc && capacity.service != Service::Rc && capacity.service != Service::Uc) {
        return Error{"this is a queue pair of a connection", "make it of service Rc, Uc or Xrc"};
    }
    if (xrc && queues.shared_receives != nullptr) {
        return Error{"an XRC initiator receives nothing", "make it without a shared receive queue"};
    }
    const Result<roce::Engine::RcQp*> made = engine_.create_rc(pd.id(), capacity, queues.of_engine());
    if (!made.ok()) {
        return made.error();
    }
    return std::make_unique<Qp>(events_, engine_, *made.value(), pd, queues);
}

Result<std::unique_ptr<Qp>> Device::create_xrc_target(Xrcd& domain) {
    const Result<roce::Engine::RcQp*> made = engine_.create_xrc_target(domain.id());
    if (!made.ok()) {
        return made.error();
    }
    return std::make_unique<Qp>(events_, engine_, *made.value(), domain);
}

Result<std::unique_ptr<UdQp>> Device::create_datagram_qp(Pd& pd, const QpCapacity& capacity, const QpQueues& queues) {
    const Status judged = judge_capacity(capacity, queues);
    if (!judged.ok()) {
        return judged.error();
    }
    const Result<roce::UdQueuePair*> made = engine_.create_ud(pd.id(), capacity, queues.of_engine());
    if (!made.ok()) {
        return made.error();
    }
    return std::make_unique<UdQp>(events_, engine_, *made.value(), pd, queues);
}

Status Device::judge_capacity(const QpCapacity& capacity, const QpQueues& queues) const {
    for (const Status& judged : {judge_limit("send slots", capacity.send_slots, 1, limits_.queue_slots),
                                 judge_limit("receive slots", capacity.receive_slots, 1, limits_.queue_slots),
                                 judge_limit("SGEs of a request", capacity.max_sges, 1, limits_.sges),
                                 judge_limit("inline bytes", capacity.inline_bytes, 0, limits_.inline_bytes)}) {
        if (!judged.ok()) {
            return judged;
        }
    }
    if (queues.shared_receives != nullptr && queues.shared_receives->is_xrc()) {
        return Error{"only XRC targets receive into a receive queue of XRC", "make a target in the queue's domain"};
    }
    return Nothing{};
}

Result<std::unique_ptr<Ah>> Device::create_ah(const net::IpAddress& remote, std::uint16_t udp_source_port,
                                              Instant now) {
    port::Port& port = worker_.port();
    port::Path* const path = port.open_path({port.local_address(), remote, udp_source_port, 0}, now);
    if (path == nullptr) {
        return Error{fmt::format("no way from {} to {}", port.local_address().text(), remote.text()),
                     "use addresses of one family, and not too many peers at a time"};
    }
    return std::make_unique<Ah>(*path);
}

Device::~Device() {
    PostNotice::leave(std::move(notice_));
}

bool Device::on_turn(Instant) noexcept {
    return (std::exchange(drained_, false) && posts_left_) || drain_posts();
}

bool Device::drain_posts() noexcept {
    posts_left_ = false;
    waits_for_room_ = false;
    for (RemotePosts* const posts : remotes_) {
        posts_left_ = posts->drain() || posts_left_;
        waits_for_room_ = posts->waits_for_room() || waits_for_room_;
    }
    return posts_left_;
}

void Device::on_sent() noexcept {
    if (waits_for_room_) {
        (void)drain_posts();
    }
    events_.signal();
    for (CompletionChannel* const channel : channels_) {
        channel->signal();
    }
}

// Posts that are left came after their notice was opened, so another notice is in the mail.
Instant Device::next_deadline() const noexcept {
    const bool at_once = events_.must_signal() ||
                         std::any_of(channels_.begin(), channels_.end(),
                                     [](const CompletionChannel* channel) noexcept { return channel->must_signal(); });
    return at_once ? Instant{} : Instant::never();
}

Qp::Qp(AsyncEvents& events, roce::Engine& engine, roce::Engine::RcQp& qp, Pd& pd, const QpQueues& queues) noexcept
    : AsyncSource(events), engine_(engine), qp_(qp), used_(std::in_place_type<HeldQueues>, pd, queues) {
    qp_.pair.set_event_sink(this);
}

Qp::Qp(AsyncEvents& events, roce::Engine& engine, roce::Engine::RcQp& qp, Xrcd& domain) noexcept
    : AsyncSource(events), engine_(engine), qp_(qp), used_(std::in_place_type<Hold<Xrcd>>, domain) {
    qp_.pair.set_event_sink(this);
}

Qp::~Qp() {
    engine_.destroy_rc(qp_);
}

}  // namespace cairn::verbs
