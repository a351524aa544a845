// Shares: the number of places of something scarce that each host holds, by source address. When all places are taken,
// the host that holds most gives way to a host that holds less. So a flood from one address, or from many invented
// ones, does not keep others out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "lib/base/assert.hpp"
#include "lib/net/address.hpp"

namespace cairn::net {

// An Id holds each place until it is removed. Each call takes time in the logarithm of the number of places held.
template <class Id>
class Shares {
public:
    using Ticket = std::uint64_t;  // names a place; 0 names none

    [[nodiscard]] Ticket add(const IpAddress& source, Id id) {
        const auto found = held_.try_emplace(source.share_holder()).first;
        unrank(*found);
        found->second.emplace(++last_ticket_, id);
        rank(*found);
        ++size_;
        return last_ticket_;
    }
    void remove(const IpAddress& source, Ticket ticket) {
        const auto found = held_.find(source.share_holder());
        CAIRN_ASSERT(found != held_.end());
        unrank(*found);
        const bool was_held = found->second.erase(ticket) != 0;
        CAIRN_ASSERT(was_held);
        --size_;
        if (found->second.empty()) {
            held_.erase(found);
        } else {
            rank(*found);
        }
    }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }

    // Writes the oldest places of the host into `out`, as many as fit. Returns how many.
    [[nodiscard]] std::size_t oldest_of(const IpAddress& source, std::span<Id> out) const {
        const auto found = held_.find(source.share_holder());
        std::size_t count = 0;
        if (found != held_.end()) {
            for (auto held = found->second.begin(); held != found->second.end() && count < out.size(); ++held) {
                out[count++] = held->second;
            }
        }
        return count;
    }

    // Returns the oldest place of the host that holds most. If several hosts hold equally many, it is the oldest of all
    // their places.
    [[nodiscard]] std::optional<Id> first_to_go() const {
        return ranks_.empty() ? std::nullopt : std::optional(oldest_of(greediest()));
    }
    // As first_to_go(), but returns nullopt if that host would then hold fewer places than `source`. A host that holds
    // nothing always gets a place.
    [[nodiscard]] std::optional<Id> who_gives_way_to(const IpAddress& source) const {
        const auto own = held_.find(source.share_holder());
        const std::size_t fair = own == held_.end() ? 1 : own->second.size() + 2;
        const bool gives = !ranks_.empty() && std::get<0>(*ranks_.rbegin()) >= fair;
        return gives ? first_to_go() : std::nullopt;
    }

private:
    using Held = std::map<Ticket, Id>;
    using Rank = std::tuple<std::size_t, Ticket, IpAddress>;  // number of places, inverted ticket of the oldest, host

    [[nodiscard]] static Rank rank_of(const std::pair<const IpAddress, Held>& host) noexcept {
        return {host.second.size(), ~host.second.begin()->first, host.first};
    }
    void rank(const std::pair<const IpAddress, Held>& host) { ranks_.insert(rank_of(host)); }
    void unrank(const std::pair<const IpAddress, Held>& host) {
        if (!host.second.empty()) {
            ranks_.erase(rank_of(host));
        }
    }
    [[nodiscard]] const Held& greediest() const { return held_.at(std::get<2>(*ranks_.rbegin())); }
    [[nodiscard]] static Id oldest_of(const Held& held) { return held.begin()->second; }

    std::map<IpAddress, Held> held_;
    std::set<Rank> ranks_;
    Ticket last_ticket_ = 0;
    std::size_t size_ = 0;
};

}  // namespace cairn::net
