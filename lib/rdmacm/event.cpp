#include "lib/rdmacm/event.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "lib/rdmacm/endpoint.hpp"
#include "lib/rdmacm/id.hpp"

namespace cairn::rdmacm {

namespace {

// Removes events from the channel of an endpoint. Many endpoints have no event there when they end, while others have
// many.
template <class Which>
std::vector<std::unique_ptr<Event>> take_back(const Endpoint& endpoint, const Which& which) {
    std::vector<std::unique_ptr<Event>> taken;
    if (endpoint.events.waiting == 0) {
        return taken;
    }
    Channel& channel = *endpoint.channel;
    std::deque<std::unique_ptr<Event>> left;
    for (std::unique_ptr<Event>& each : channel.waiting) {
        if (which(*each)) {
            --each->to->events.waiting;
            taken.push_back(std::move(each));
            channel.count.take_back();
        } else {
            left.push_back(std::move(each));
        }
    }
    channel.waiting = std::move(left);
    return taken;
}

void add(Channel& channel, std::unique_ptr<Event> event) {
    ++event->to->events.waiting;
    channel.waiting.push_back(std::move(event));
    channel.count.show_one();
}

// Takes the first event of a channel that has one.
std::unique_ptr<Event> pop_first(Channel& channel) noexcept {
    std::unique_ptr<Event> event = std::move(channel.waiting.front());
    channel.waiting.pop_front();
    --event->to->events.waiting;
    return event;
}

// True while this thread has the lock, or is about to have it. A signal handler on it looks at this.
[[gnu::tls_model("initial-exec")]] constinit thread_local std::atomic<bool> has_event_lock{false};

}  // namespace

pthread_mutex_t EventLock::mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t EventLock::acknowledged = PTHREAD_COND_INITIALIZER;

EventLock::EventLock() noexcept : is_again_(has_event_lock.load(std::memory_order_relaxed)) {
    if (!is_again_) {
        has_event_lock.store(true, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        pthread_mutex_lock(&mutex);
    }
}

EventLock::~EventLock() {
    if (!is_again_) {
        pthread_mutex_unlock(&mutex);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        has_event_lock.store(false, std::memory_order_relaxed);
    }
}

void EventLock::renew() noexcept {
    has_event_lock.store(false, std::memory_order_relaxed);
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&acknowledged, nullptr);
}

void Event::set_private_data(std::span<const std::uint8_t> bytes) noexcept {
    const std::size_t size = std::min(bytes.size(), data.size());
    std::copy_n(bytes.begin(), size, data.begin());
    param.conn.private_data = size == 0 ? nullptr : data.data();  // at the same place as that of datagrams
    param.conn.private_data_len = static_cast<std::uint8_t>(size);
}

void limit_requests(Endpoint& listener, std::uint32_t most) {
    const EventLock hold;
    listener.events.most_waiting = most;
}

Channel* find_room(Endpoint& listener) {
    const EventLock hold;
    return listener.events.waiting < listener.events.most_waiting ? listener.channel : nullptr;
}

void tell(std::unique_ptr<Event> event) {
    const EventLock hold;
    if (!hold.is_again()) {
        Channel& channel = *event->to->channel;
        if (event->asked != nullptr) {
            event->asked->channel = &channel;  // the listener may have moved since the request was made
        }
        add(channel, std::move(event));
    }
}

std::unique_ptr<Event> take(Channel& channel) {
    const EventLock hold;
    if (channel.waiting.empty()) {
        return nullptr;
    }
    Event& first = *channel.waiting.front();
    first.id = first.to->id;
    if (first.asked != nullptr) {
        first.listen_id = first.to->id;
        first.id = adopt(std::move(first.asked), *first.to->id);
    }
    std::unique_ptr<Event> event = pop_first(channel);
    ++event->to->events.given;
    if (event->group != nullptr) {
        ++event->group->given;
    }
    return event;
}

std::unique_ptr<Event> take_unseen(Channel& channel) {
    const EventLock hold;
    return channel.waiting.empty() ? nullptr : pop_first(channel);
}

void acknowledge(std::unique_ptr<Event> event) noexcept {
    EventLock hold;
    ++event->to->events.acknowledged;
    if (event->group != nullptr) {
        ++event->group->acknowledged;
    }
    hold.tell_acknowledged();
}

std::vector<std::unique_ptr<Event>> forget_events(Endpoint& endpoint) {
    const EventLock hold;
    return take_back(endpoint, [&endpoint](const Event& each) { return each.to == &endpoint; });
}

std::vector<std::unique_ptr<Event>> forget_events(Group& group) {
    const EventLock hold;
    return take_back(*group.endpoint, [&group](const Event& each) { return each.group == &group; });
}

void migrate(Endpoint& endpoint, Channel& to) {
    const EventLock hold;
    for (const std::unique_ptr<Event>& each : endpoint.channel->waiting) {
        if (each->to == &endpoint && each->asked != nullptr) {
            each->asked->channel = &to;
        }
    }
    std::vector<std::unique_ptr<Event>> moved =
        take_back(endpoint, [&](const Event& each) { return each.to == &endpoint || each.to->channel == &to; });
    endpoint.channel = &to;
    for (std::unique_ptr<Event>& each : moved) {
        add(to, std::move(each));
    }
}

}  // namespace cairn::rdmacm
