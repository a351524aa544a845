#include "lib/ibverbs/async_events.hpp"

#include <bit>

namespace cairn::ibverbs {

bool AsyncEvents::add(AsyncSource& source, ibv_event_type type) noexcept {
    const std::uint32_t bit = 1U << static_cast<unsigned>(type);
    if ((source.waiting & bit) != 0) {
        return false;
    }
    if (source.waiting == 0) {
        append(source);
    }
    source.waiting |= bit;
    return true;
}

void AsyncEvents::append(AsyncSource& source) noexcept {
    AsyncSource** end = &first;
    while (*end != nullptr) {
        end = &(*end)->next;
    }
    *end = &source;
    source.next = nullptr;
}

void AsyncEvents::put_last(AsyncSource& source) noexcept {
    if (source.waiting != 0) {
        unlink(source);
        append(source);
    }
}

AsyncSource* AsyncEvents::take(ibv_async_event& event) noexcept {
    AsyncSource* const source = first;
    if (source == nullptr) {
        return nullptr;
    }
    const int type = std::countr_zero(source->waiting);
    source->waiting &= source->waiting - 1;
    ++source->given;
    event = source->describe(*source, static_cast<ibv_event_type>(type));
    if (source->waiting == 0) {
        unlink(*source);
    }
    return source;
}

void AsyncEvents::remove(AsyncSource& source) noexcept {
    for (; source.waiting != 0; source.waiting &= source.waiting - 1) {
        count.take_back();
    }
    unlink(source);
}

void AsyncEvents::unlink(AsyncSource& source) noexcept {
    for (AsyncSource** link = &first; *link != nullptr; link = &(*link)->next) {
        if (*link == &source) {
            *link = source.next;
            return;
        }
    }
}

}  // namespace cairn::ibverbs
