// The names of a directory, in the order of their hashes. So a reader's place is found again after any change.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "fs/rules/ids.hpp"
#include "fs/store/log.hpp"

namespace cairn::fs {

struct DentryState {
    FileId child{};
    std::uint32_t mode = 0;
    LogSpot spot{};
};

class NamedState {
public:
    explicit NamedState(std::string_view name) : name_(name.begin(), name.end()) {}
    [[nodiscard]] std::string_view name() const noexcept { return {name_.data(), name_.size()}; }

    DentryState state{};

private:
    absl::InlinedVector<char, 40> name_;  // memory of its own only for long names
};

// The tree holds only hashes and pointers, so it is flat: a look-up waits mainly for memory that lies far apart. Names
// with the same hash stand next to each other.
class Names {
public:
    using ByHash = absl::btree_multimap<std::uint64_t, std::unique_ptr<NamedState>>;
    using Place = ByHash::const_iterator;

    [[nodiscard]] DentryState* find(std::uint64_t hash, std::string_view name) const noexcept {
        const auto found = find_place(hash, name);
        return found == by_hash_.end() ? nullptr : &found->second->state;
    }
    // Returns the state of a name. Adds the name if it is new.
    DentryState& put(std::uint64_t hash, std::string_view name) {
        auto at = by_hash_.lower_bound(hash);
        for (; at != by_hash_.end() && at->first == hash; ++at) {
            if (at->second->name() == name) {
                return at->second->state;
            }
        }
        return by_hash_.emplace_hint(at, hash, std::make_unique<NamedState>(name))->second->state;
    }
    // Removes a name, which exists (asserted).
    void erase(std::uint64_t hash, std::string_view name) {
        const auto found = find_place(hash, name);
        CAIRN_ASSERT(found != by_hash_.end());
        by_hash_.erase(found);
    }
    [[nodiscard]] bool empty() const noexcept { return by_hash_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return by_hash_.size(); }
    // Iterates in order over pairs of a hash and a pointer to a NamedState.
    [[nodiscard]] Place begin() const noexcept { return by_hash_.begin(); }
    [[nodiscard]] Place end() const noexcept { return by_hash_.end(); }
    // Returns the first name with this hash or a higher one.
    [[nodiscard]] Place from(std::uint64_t hash) const noexcept { return by_hash_.lower_bound(hash); }

private:
    [[nodiscard]] Place find_place(std::uint64_t hash, std::string_view name) const noexcept {
        for (auto at = by_hash_.lower_bound(hash); at != by_hash_.end() && at->first == hash; ++at) {
            if (at->second->name() == name) {
                return at;
            }
        }
        return by_hash_.end();
    }

    ByHash by_hash_;
};

}  // namespace cairn::fs
