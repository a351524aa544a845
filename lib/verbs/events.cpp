#include "lib/verbs/events.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "lib/verbs/qp.hpp"
#include "lib/verbs/ud_qp.hpp"

namespace cairn::verbs {

namespace {

// The kind of event for each of a queue pair's own events.
constexpr std::array<AsyncKind, static_cast<std::size_t>(QpEvent::Count)> kKinds{
    AsyncKind::CommunicationEstablished,
    AsyncKind::SendQueueDrained,
    AsyncKind::QpFatal,
    AsyncKind::QpRequestError,
    AsyncKind::QpAccessError,
    AsyncKind::QpFatal,  // its completion queue overran
    AsyncKind::LastWqeReached};

AsyncKind kind_of(QpEvent event) noexcept {
    return kKinds[static_cast<std::size_t>(event)];
}

}  // namespace

Result<std::unique_ptr<EventDescriptor>> EventDescriptor::create() {
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) {
        return Error{std::string("cannot make an event descriptor: ") + std::strerror(errno),
                     "raise the limit of open files (ulimit -n)"};
    }
    return std::unique_ptr<EventDescriptor>(new EventDescriptor(fd));
}

EventDescriptor::~EventDescriptor() {
    close(fd_);
}

void EventDescriptor::signal() noexcept {
    if (state_ != State::Readable && eventfd_write(fd_, 1) == 0) {
        state_ = State::Readable;
    }
}

void EventDescriptor::clear() noexcept {
    eventfd_t count = 0;
    if (state_ != State::Clear) {
        (void)eventfd_read(fd_, &count);  // a sleeper may have read it already
        state_ = State::Clear;
    }
}

AsyncSource::~AsyncSource() {
    events_.remove(*this);
}

void AsyncSource::on_event() noexcept {
    events_.add(*this);
}

std::optional<AsyncEvent> AsyncEvents::poll() noexcept {
    while (waiting_.size() != 0) {
        AsyncSource& source = waiting_.pop();
        if (const std::optional<AsyncEvent> event = source.take_async()) {
            waiting_.push(source);  // the source may have more
            if (descriptor_ != nullptr) {
                descriptor_->on_taken();
            }
            return event;
        }
    }
    if (descriptor_ != nullptr) {
        descriptor_->clear();
    }
    return std::nullopt;
}

Result<int> AsyncEvents::descriptor() {
    if (descriptor_ == nullptr) {
        auto made = EventDescriptor::create();
        if (!made.ok()) {
            return made.error();
        }
        descriptor_ = std::move(made).value();
        signal();
    }
    return descriptor_->fd();
}

void AsyncEvents::signal() noexcept {
    if (must_signal()) {
        descriptor_->signal();
    }
}

Cq* CompletionChannel::get_event() noexcept {
    while (fired_.size() != 0) {
        Cq* const cq = fired_.pop().cq;
        if (cq->take_event()) {
            descriptor_->on_taken();
            return cq;
        }
    }
    descriptor_->clear();
    return nullptr;
}

Cq::Cq(AsyncEvents& events, std::uint32_t slots, CompletionChannel* channel)
    : AsyncSource(events), queue_(slots), channel_(channel) {
    entry_.cq = this;
    queue_.set_sink(this);
    if (channel_ != nullptr) {
        channel_->hold();
    }
}

Cq::~Cq() {
    if (channel_ != nullptr) {
        channel_->remove(entry_);
        channel_->release();
    }
}

void Cq::on_event() noexcept {
    if (channel_ != nullptr && queue_.has_event()) {
        channel_->add(entry_);
    }
    if (queue_.overrun() && !overrun_told_) {
        AsyncSource::on_event();
    }
}

std::optional<AsyncEvent> Cq::take_async() noexcept {
    if (overrun_told_ || !queue_.overrun()) {
        return std::nullopt;
    }
    overrun_told_ = true;
    return AsyncEvent{AsyncKind::CqError, this};
}

std::optional<AsyncEvent> Srq::take_async() noexcept {
    if (!queue_.take_limit_event()) {
        return std::nullopt;
    }
    return AsyncEvent{AsyncKind::SrqLimitReached, this};
}

std::optional<AsyncEvent> Qp::take_async() noexcept {
    const std::optional<QpEvent> event = poll_event();
    return event ? std::optional(AsyncEvent{kind_of(*event), this}) : std::nullopt;
}

std::optional<AsyncEvent> UdQp::take_async() noexcept {
    const std::optional<QpEvent> event = poll_event();
    return event ? std::optional(AsyncEvent{kind_of(*event), this}) : std::nullopt;
}

}  // namespace cairn::verbs
