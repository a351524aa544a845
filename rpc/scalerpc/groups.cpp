#include "rpc/scalerpc/groups.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::scalerpc {

namespace {

constexpr std::int32_t kIdleRank = -64;   // for members without requests
constexpr std::int32_t kMostSteps = 2;    // largest difference in classes that changes sizes and slices
constexpr std::int32_t kStepsOfSize = 8;  // a step is an eighth of the size
constexpr std::int32_t kStepsOfSlice = 4;

}  // namespace

std::int32_t rank_of(double priority, std::int32_t before) noexcept {
    if (priority <= 0) {
        return kIdleRank;
    }
    const double exact = std::log2(priority);
    const bool stays = exact >= before - 0.5 && exact < before + 1.5;
    return stays ? before : static_cast<std::int32_t>(std::floor(exact));
}

// Adds a member to the smallest group. A group that becomes too large is split.
bool Groups::add(SessionId member, std::uint32_t cohort) {
    if (config_.cohorts != 0) {
        cohort %= config_.cohorts;
        if (groups_[cohort].members.size() >= config_.most()) {
            return false;
        }
        groups_[cohort].members.push_back(member);
        members_[member.value] = Member{.group = cohort, .rank = kIdleRank};
        return true;
    }
    if (groups_.empty()) {
        groups_.push_back({{}, config_.slice, 0});
    }
    const auto smallest = std::min_element(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
        return a.members.size() < b.members.size();
    });
    const auto group = static_cast<std::size_t>(smallest - groups_.begin());
    smallest->members.push_back(member);
    members_[member.value] = Member{.group = static_cast<std::uint32_t>(group), .rank = kIdleRank};
    if (smallest->members.size() > config_.most()) {
        split(group);
    }
    return true;
}

void Groups::remove(SessionId member) {
    const auto found = members_.find(member.value);
    if (found == members_.end()) {
        return;
    }
    const std::size_t group = found->second.group;
    std::erase(groups_[group].members, member);
    members_.erase(found);
    if (config_.cohorts == 0 && groups_[group].members.size() < config_.least()) {
        merge(group);
    }
}

void Groups::name_members(std::size_t group) {
    for (const SessionId member : groups_[group].members) {
        members_[member.value].group = static_cast<std::uint32_t>(group);
    }
}

void Groups::split(std::size_t group) {
    ++splits_;
    std::vector<SessionId>& members = groups_[group].members;
    const auto half = members.begin() + static_cast<std::ptrdiff_t>(members.size() / 2);
    Group other{{half, members.end()}, groups_[group].slice, groups_[group].turn};
    members.erase(half, members.end());
    groups_.push_back(std::move(other));
    name_members(groups_.size() - 1);
}

// Joins a group that is too small to the smallest other one. If they are too large together, both become equally large.
void Groups::merge(std::size_t group) {
    if (groups_.size() == 1) {
        if (groups_[0].members.empty()) {
            groups_.clear();
        }
        return;
    }
    ++merges_;
    std::size_t other = group == 0 ? 1 : 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        if (i != group && groups_[i].members.size() < groups_[other].members.size()) {
            other = i;
        }
    }
    std::vector<SessionId>& taker = groups_[other].members;
    taker.insert(taker.end(), groups_[group].members.begin(), groups_[group].members.end());
    groups_[group].members.clear();
    name_members(other);
    drop(group);
    const std::size_t merged = other < group ? other : other - 1;
    if (groups_[merged].members.size() > config_.most()) {
        split(merged);
    }
}

void Groups::drop(std::size_t group) {
    groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(group));
    for (std::size_t i = group; i < groups_.size(); ++i) {
        name_members(i);
    }
}

// An empty request counts as one byte, so that the quotient exists.
void Groups::end_slice(std::span<const Share> shares, Duration length) {
    const double seconds = static_cast<double>(std::max<std::int64_t>(length.ns, 1)) / 1e9;
    for (const Share& share : shares) {
        const auto found = members_.find(share.member.value);
        if (found == members_.end()) {
            continue;
        }
        Member& member = found->second;
        const auto requests = static_cast<double>(share.requests);
        member.priority =
            share.requests == 0 ? 0 : requests / seconds / ((static_cast<double>(share.bytes) + requests) / requests);
        member.rank = rank_of(member.priority, member.rank);
    }
    ++slices_;
    if (config_.by_priority && config_.cohorts == 0 && groups_.size() > 1 &&
        slices_ >= config_.regroup_every * groups_.size()) {
        slices_ = 0;
        regroup();
    }
}

// Returns the class of the member in the middle.
std::int32_t Groups::usual_rank() const {
    std::vector<std::int32_t> ranks;
    for (const auto& [id, member] : members_) {
        ranks.push_back(member.rank);
    }
    const auto middle = ranks.begin() + static_cast<std::ptrdiff_t>(ranks.size() / 2);
    std::nth_element(ranks.begin(), middle, ranks.end());
    return *middle;
}

std::uint32_t Groups::size_for(std::int32_t rank, std::int32_t usual) const noexcept {
    const std::int32_t above = std::clamp(rank - usual, -kMostSteps, kMostSteps);
    return config_.size - static_cast<std::uint32_t>(above * static_cast<std::int32_t>(config_.size) / kStepsOfSize);
}

Duration Groups::slice_for(std::int32_t rank, std::int32_t usual) const noexcept {
    const std::int32_t above = std::clamp(rank - usual, -kMostSteps, kMostSteps);
    return {config_.slice.ns + above * config_.slice.ns / kStepsOfSlice};
}

// Groups members of similar priority, the highest first. If the rest is too small for a group, it joins the last group.
void Groups::regroup() {
    ++regroupings_;
    std::vector<SessionId> all;
    for (const Group& group : groups_) {
        all.insert(all.end(), group.members.begin(), group.members.end());
    }
    std::stable_sort(all.begin(), all.end(), [this](SessionId a, SessionId b) {
        return members_.at(a.value).rank > members_.at(b.value).rank;
    });
    const std::int32_t usual = usual_rank();
    groups_.clear();
    for (const SessionId id : all) {
        const std::int32_t rank = members_.at(id.value).rank;
        const std::int32_t first = groups_.empty() ? rank : members_.at(groups_.back().members.front().value).rank;
        const std::size_t target = size_for(first, usual);
        const bool other_class = rank != first && groups_.back().members.size() >= config_.least();
        if (groups_.empty() || groups_.back().members.size() >= target || other_class) {
            groups_.push_back({{}, slice_for(rank, usual), 0});
        }
        groups_.back().members.push_back(id);
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        name_members(i);
    }
    if (groups_.back().members.size() < config_.least()) {
        merge(groups_.size() - 1);
    }
}

std::size_t Groups::group_of(SessionId member) const noexcept {
    const auto found = members_.find(member.value);
    CAIRN_ASSERT(found != members_.end());
    return found->second.group;
}

double Groups::priority_of(SessionId member) const noexcept {
    const auto found = members_.find(member.value);
    return found == members_.end() ? 0 : found->second.priority;
}

void Groups::check() const {
    std::size_t counted = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        const std::size_t size = groups_[i].members.size();
        CAIRN_ASSERT(size <= config_.most());
        CAIRN_ASSERT(groups_.size() == 1 || config_.cohorts != 0 || size >= config_.least());
        for (const SessionId member : groups_[i].members) {
            CAIRN_ASSERT(group_of(member) == i);
        }
        counted += size;
    }
    CAIRN_ASSERT(counted == members_.size());
}

}  // namespace cairn::scalerpc
