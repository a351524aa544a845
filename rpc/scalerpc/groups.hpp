// Decides which clients share a slice, and how long it is: connection grouping by priority (ScaleRPC 3.2). It reads no
// clock and does no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "lib/base/time.hpp"
#include "lib/base/types.hpp"

namespace cairn::scalerpc {

struct GroupConfig {
    std::uint32_t size = 40;  // of a group of usual priority; at least 2
    Duration slice = microseconds(100);
    bool by_priority = true;          // if false, clients stay in the groups of their arrival
    std::uint32_t regroup_every = 8;  // slices of each group
    std::uint32_t cohorts = 0;        // fixed groups; their members choose them. 0: groups form by priority

    // Return the least and the largest size of a group, if there are several.
    [[nodiscard]] constexpr std::uint32_t least() const noexcept { return size / 2; }
    [[nodiscard]] constexpr std::uint32_t most() const noexcept { return size + size / 2; }
};

// A member's priority is P = T / S: its requests per second of its slices, divided by their mean size. Classes are
// powers of two of P. Groups of higher classes are smaller, and their slices longer.
class Groups {
public:
    struct Group {
        std::vector<SessionId> members{};
        Duration slice{};
        std::uint64_t turn = 0;  // number of its last slice
    };
    // A member's work in a slice.
    struct Share {
        SessionId member{};
        std::uint32_t requests = 0;
        std::uint64_t bytes = 0;
    };

    explicit Groups(const GroupConfig& config) : config_(config) {
        groups_.resize(config.cohorts, {{}, config.slice, 0});
    }

    // Adds a member. With cohorts it joins cohort `cohort` modulo their number. Returns false if that has no room.
    bool add(SessionId member, std::uint32_t cohort = 0);
    // Removes a member. Does nothing for another session.
    void remove(SessionId member);
    // Begins a group's slice. The group comes last from now on.
    void begin_slice(std::size_t group) noexcept { groups_[group].turn = ++turns_; }
    // Ends a slice. Computes the priorities of the members that shared it anew, and the groups where needed. Skips
    // members that have left.
    void end_slice(std::span<const Share> shares, Duration length);
    // Returns the group that has waited longest among those with has_work(group), or size() if there is none.
    template <class HasWork>
    [[nodiscard]] std::size_t next(HasWork&& has_work) const {
        std::size_t found = groups_.size();
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            if ((found == groups_.size() || groups_[i].turn < groups_[found].turn) && has_work(groups_[i])) {
                found = i;
            }
        }
        return found;
    }

    [[nodiscard]] std::size_t size() const noexcept { return groups_.size(); }
    [[nodiscard]] const Group& operator[](std::size_t group) const noexcept { return groups_[group]; }
    // Returns the group of a member, which exists (asserted).
    [[nodiscard]] std::size_t group_of(SessionId member) const noexcept;
    // Returns a member's priority in its last slice; 0 if it had no requests.
    [[nodiscard]] double priority_of(SessionId member) const noexcept;
    [[nodiscard]] std::uint64_t splits() const noexcept { return splits_; }
    [[nodiscard]] std::uint64_t merges() const noexcept { return merges_; }
    [[nodiscard]] std::uint64_t regroupings() const noexcept { return regroupings_; }
    // Asserts that each member is in one group, and that sizes are in range.
    void check() const;

private:
    struct Member {
        std::uint32_t group = 0;
        double priority = 0;
        std::int32_t rank = 0;  // the group's class
    };

    void split(std::size_t group);
    void merge(std::size_t group);
    void drop(std::size_t group);
    void regroup();
    void name_members(std::size_t group);
    [[nodiscard]] std::int32_t usual_rank() const;
    [[nodiscard]] std::uint32_t size_for(std::int32_t rank, std::int32_t usual) const noexcept;
    [[nodiscard]] Duration slice_for(std::int32_t rank, std::int32_t usual) const noexcept;

    const GroupConfig config_;
    std::vector<Group> groups_;
    std::unordered_map<std::uint32_t, Member> members_;
    std::uint64_t turns_ = 0;
    std::uint32_t slices_ = 0;  // slices since the last regrouping
    std::uint64_t splits_ = 0;
    std::uint64_t merges_ = 0;
    std::uint64_t regroupings_ = 0;
};

// Returns a member's class: the power of two below its priority. If the priority is at most half a class outside the
// class `before`, the class stays.
[[nodiscard]] std::int32_t rank_of(double priority, std::int32_t before) noexcept;

}  // namespace cairn::scalerpc
