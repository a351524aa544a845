#include "lib/port/socket_queues.hpp"

#include <fmt/format.h>

#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::port {

Result<std::shared_ptr<SocketQueues>> SocketQueues::open(const SocketQueuesConfig& config) {
    if (config.workers > QpnOwners::kMostWorkers) {
        return Error{fmt::format("{} workers are too many for {}", config.workers, config.local.text()),
                     fmt::format("give {} lcores at most", QpnOwners::kMostWorkers)};
    }
    Result<std::vector<UdpSocket>> sockets =
        UdpSocket::open_all({config.local, config.udp_port}, QpnOwners(config.workers));
    if (!sockets.ok()) {
        return sockets.error();
    }
    std::shared_ptr<SocketQueues> made(new SocketQueues(config, std::move(sockets).value()));
    Status opened = config.workers > 1 ? made->make_inboxes(config.workers, kRingSlots) : Nothing{};
    opened = opened.ok() ? made->open_capture(config.workers) : opened;
    if (!opened.ok()) {
        return opened.error();
    }
    return made;
}

Result<std::shared_ptr<SocketQueues>> SocketQueues::lend(const SocketQueuesConfig& config, UdpSocket socket,
                                                         std::uint32_t slot) {
    CAIRN_ASSERT(slot < QpnOwners::kMostWorkers);
    SocketQueuesConfig all = config;
    all.workers = QpnOwners::kMostWorkers;
    std::vector<UdpSocket> sockets;
    sockets.push_back(std::move(socket));
    std::shared_ptr<SocketQueues> made(new SocketQueues(all, std::move(sockets)));
    made->lent_ = true;
    made->slot_ = slot;
    Status opened = made->make_inboxes(2, kLentSlots);
    opened = opened.ok() ? made->open_capture(1) : opened;
    if (!opened.ok()) {
        return opened.error();
    }
    return made;
}

Status SocketQueues::make_inboxes(std::uint32_t count, std::uint32_t slots) {
    while (inboxes_.size() < count) {
        auto wakeup = Wakeup::create();
        if (!wakeup.ok()) {
            return wakeup.error();
        }
        inboxes_.push_back(std::make_unique<Inbox>(slots));
        inboxes_.back()->wakeup = std::move(wakeup).value();
    }
    return Nothing{};
}

Status SocketQueues::open_capture(std::uint32_t lanes) {
    if (config_.pcap.empty()) {
        return Nothing{};
    }
    auto capture = DatagramCapture::open(config_.pcap, lanes);
    if (!capture.ok()) {
        return capture.error();
    }
    capture_ = std::move(capture).value();
    return Nothing{};
}

SocketQueue::SocketQueue(std::shared_ptr<SocketQueues> all, std::uint32_t worker)
    : all_(std::move(all)),
      worker_(worker),
      socket_(all_->sockets_.at(all_->place_of(worker))),
      inbox_(all_->inboxes_.empty() ? nullptr : all_->inboxes_[all_->place_of(worker)].get()),
      to_wake_(all_->inboxes_.size()) {}

DatagramCapture::Lane* SocketQueue::capture() noexcept {
    return all_->capture_ == nullptr ? nullptr : &all_->capture_->lane(all_->place_of(worker_));
}

std::string SocketQueue::describe() const {
    return is_alone() ? std::string() : fmt::format("socket {} of {}", worker_ + 1, all_->owners_.workers());
}

void SocketQueue::wake_each() noexcept {
    any_to_wake_ = 0;
    for (std::size_t place = 0; place < to_wake_.size(); ++place) {
        if (std::exchange(to_wake_[place], std::uint8_t{0}) != 0) {
            all_->inboxes_[place]->wakeup->wake();
        }
    }
}

void SocketQueue::begin_sleep() noexcept {
    if (!is_alone()) {
        sleeps_ = true;
        inbox_->wakeup->begin_sleep();
    }
}

}  // namespace cairn::port
