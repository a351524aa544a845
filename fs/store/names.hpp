// The names of a directory, in the order of their hashes: where a reader stopped is found again whatever has changed.
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
    absl::InlinedVector<char, 40> name_;  // most names need no memory of their own
};

// The tree has hashes and pointers alone, so that it is flat: what lies far apart in memory is what a look-up waits
// for. Names with the same hash stand beside each other.
class Names {
public:
    using ByHash = absl::btree_multimap<std::uint64_t, std::unique_ptr<NamedState>>;
    using Place = ByHash::const_iterator;

    [[nodiscard]] DentryState* find(std::uint64_t hash, std::string_view name) const noexcept {
        const auto found = find_place(hash, name);
        return found == by_hash_.end() ? nullptr : &found->second->state;
    }
    // The name is there, new or not.
    DentryState& put(std::uint64_t hash, std::string_view name) {
        auto at = by_hash_.lower_bound(hash);
        for (; at != by_hash_.end() && at->first == hash; ++at) {
            if (at->second->name() == name) {
                return at->second->state;
            }
        }
        return by_hash_.emplace_hint(at, hash, std::make_unique<NamedState>(name))->second->state;
    }
    // The name is there (asserted).
    void erase(std::uint64_t hash, std::string_view name) {
        const auto found = find_place(hash, name);
        CAIRN_ASSERT(found != by_hash_.end());
        by_hash_.erase(found);
    }
    [[nodiscard]] bool empty() const noexcept { return by_hash_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return by_hash_.size(); }
    // In order: pairs of a hash and a pointer to a NamedState.
    [[nodiscard]] Place begin() const noexcept { return by_hash_.begin(); }
    [[nodiscard]] Place end() const noexcept { return by_hash_.end(); }
    // The first name whose hash is not below.
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
