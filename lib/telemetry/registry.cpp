#include "lib/telemetry/registry.hpp"

#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::telemetry {

Registration::Registration(Registration&& other) noexcept
    : registry_(std::exchange(other.registry_, nullptr)), group_(std::exchange(other.group_, nullptr)) {}

Registration& Registration::operator=(Registration&& other) noexcept {
    if (this != &other) {
        leave();
        registry_ = std::exchange(other.registry_, nullptr);
        group_ = std::exchange(other.group_, nullptr);
    }
    return *this;
}

void Registration::leave() noexcept {
    if (registry_ != nullptr) {
        std::exchange(registry_, nullptr)->remove(*group_);
    }
}

Registry::~Registry() {
    CAIRN_ASSERT(groups_.empty());
}

Registration Registry::add(CounterList group) {
    auto kept = std::make_unique<CounterList>(std::move(group));
    const CounterList& added = *kept;
    const std::lock_guard hold(lock_);
    groups_.push_back(std::move(kept));
    return {*this, added};
}

void Registry::remove(const CounterList& group) noexcept {
    const std::lock_guard hold(lock_);
    const std::size_t removed = std::erase_if(groups_, [&group](const auto& each) { return each.get() == &group; });
    CAIRN_ASSERT(removed == 1);
}

// The counters are read under the lock, since a group that leaves may end its counters at once.
CounterReading Registry::read() const {
    CounterList all;
    const std::lock_guard hold(lock_);
    for (const std::unique_ptr<CounterList>& group : groups_) {
        all.add(*group);
    }
    return all.read();
}

std::string Registry::text() const {
    const CounterReading now = read();
    return text_of(now.texts, now.values);
}

std::string Registry::json() const {
    const CounterReading now = read();
    return json_of(now.texts, now.values);
}

}  // namespace cairn::telemetry
