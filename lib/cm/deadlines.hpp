// Deadlines of many ids, earliest first.
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "lib/base/time.hpp"

namespace cairn::cm {

// An id has at most one deadline. Its owner keeps the deadline in `held`, which only this class changes.
template <class Id>
class Deadlines {
public:
    void set(Id id, Instant& held, Instant when) {
        if (held != Instant::never()) {
            due_.erase({held, id});
        }
        held = when;
        if (when != Instant::never()) {
            due_.emplace(when, id);
        }
    }
    [[nodiscard]] Instant earliest() const noexcept { return due_.empty() ? Instant::never() : due_.begin()->first; }
    // Returns the id with the earliest deadline.
    [[nodiscard]] std::optional<Id> first() const noexcept {
        return due_.empty() ? std::nullopt : std::optional(due_.begin()->second);
    }
    [[nodiscard]] std::optional<Id> find_due(Instant now) const noexcept {
        return earliest() <= now ? first() : std::nullopt;
    }

private:
    std::set<std::pair<Instant, Id>> due_;
};

}  // namespace cairn::cm
