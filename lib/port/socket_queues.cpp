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
    for (std::uint32_t worker = 0; config.workers > 1 && worker < config.workers; ++worker) {
        auto wakeup = Wakeup::create();
        if (!wakeup.ok()) {
            return wakeup.error();
        }
        made->inboxes_.push_back(std::make_unique<Inbox>());
        made->inboxes_.back()->wakeup = std::move(wakeup).value();
    }
    if (!config.pcap.empty()) {
        auto capture = DatagramCapture::open(config.pcap, config.workers);
        if (!capture.ok()) {
            return capture.error();
        }
        made->capture_ = std::move(capture).value();
    }
    return made;
}

SocketQueue::SocketQueue(std::shared_ptr<SocketQueues> all, std::uint32_t worker)
    : all_(std::move(all)),
      worker_(worker),
      socket_(all_->sockets_.at(worker)),
      inbox_(all_->inboxes_.empty() ? nullptr : all_->inboxes_[worker].get()),
      to_wake_(all_->owners_.workers()) {}

// mutants: port-socket-queue-capture
DatagramCapture::Lane* SocketQueue::capture() noexcept {
    return all_->capture_ == nullptr ? nullptr : &all_->capture_->lane(worker_);
}

std::string SocketQueue::describe() const {
    return is_alone() ? std::string() : fmt::format("socket {} of {}", worker_ + 1, all_->owners_.workers());
}

void SocketQueue::wake_each() noexcept {
    any_to_wake_ = 0;
    for (std::size_t worker = 0; worker < to_wake_.size(); ++worker) {
        if (std::exchange(to_wake_[worker], std::uint8_t{0}) != 0) {
            all_->inboxes_[worker]->wakeup->wake();
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
