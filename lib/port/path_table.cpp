#include "lib/port/path_table.hpp"

#include <algorithm>
#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::port {

PathTable::PathTable(std::uint32_t capacity, std::uint16_t own_source_port, const SipKey& secret)
    : capacity_(capacity),
      few_(std::max(capacity / 256, std::uint32_t{4})),
      surplus_most_(capacity - capacity / 8 * 3),
      strangers_most_(capacity - capacity / 8),
      own_source_port_(own_source_port),
      paths_(std::make_unique<Path[]>(capacity)),
      idle_(std::make_unique<std::uint8_t[]>(capacity)),
      links_(capacity),
      by_key_(capacity),
      stations_(capacity),
      by_address_(capacity) {
    CAIRN_ASSERT(capacity > 0);
    for (std::size_t i = 0; i < factors_.size(); ++i) {
        factors_[i] = sip_hash(secret, i);
    }
    spare_stations_.reserve(capacity);
    for (std::uint32_t i = capacity; i > 0; --i) {
        spare_stations_.push_back(i - 1);
    }
}

// Hashes multilinearly. Any two keys share all 32 bits for one choice of factors in 2^32. See Lemire and Kaser 2014,
// "Strongly universal string hashing is fast".
std::uint32_t PathTable::hash_of(const net::IpAddress& remote, std::uint16_t port) const noexcept {
    std::array<std::uint32_t, kWords> words{};
    std::memcpy(words.data(), remote.octets().data(), remote.octets().size());
    words.back() = port;
    std::uint64_t sum = factors_.back();
    for (std::size_t i = 0; i < kWords; ++i) {
        sum += factors_[i] * words[i];
    }
    return static_cast<std::uint32_t>(sum >> 32U);
}

Path* PathTable::find(const PathKey& key) noexcept {
    std::uint32_t at = by_key_.first(hash_of(key.remote, key.udp_source_port));
    while (at != HashChains::kEnd && !(paths_[at].key() == key)) {
        at = by_key_.next(at);
    }
    return at == HashChains::kEnd ? nullptr : &paths_[at];
}

PathTable::Station* PathTable::station(const net::IpAddress& remote) noexcept {
    std::uint32_t at = by_address_.first(hash_of(remote, 0));
    while (at != HashChains::kEnd && stations_[at].address != remote) {
        at = by_address_.next(at);
    }
    return at == HashChains::kEnd ? nullptr : &stations_[at];
}

Path* PathTable::intern(const PathKey& key) noexcept {
    Path* const known = find(key);
    if (known == nullptr) {
        return make(key, Whose::Own);
    }
    if (key.traffic_class != 0 && key.traffic_class != known->key().traffic_class) {
        known->set_traffic_class(key.traffic_class);
    }
    return known;
}

Path* PathTable::make(const PathKey& key, Whose whose) noexcept {
    const bool one_family = key.local.is_v4() == key.remote.is_v4();
    const std::uint32_t index = one_family ? place_for(station(key.remote), whose) : HashChains::kEnd;
    if (index == HashChains::kEnd) {
        return nullptr;
    }
    if (index == used_) {
        ++used_;
    } else {
        leave(index);
    }
    Path& path = paths_[index];
    path = own_source_port_ == 0 ? Path(key) : Path(key, own_source_port_);
    path.note_pins_at(idle_[index]);
    if (key.traffic_class == 0) {
        path.set_traffic_class(traffic_class_);
    }
    enter(index, whose);
    return &path;
}

// Returns the place of a new path to the station, or kEnd if it gets none.
std::uint32_t PathTable::place_for(const Station* station, Whose whose) noexcept {
    if (whose == Whose::Stranger) {
        const bool many = station != nullptr && station->strangers >= few_;
        if (many && surplus_ >= surplus_most_) {
            return idle_place([this, station](const Link& link) {
                const Station& other = stations_[link.station];
                return link.whose == Whose::Stranger && (&other == station || other.strangers > few_);
            });
        }
        if (strangers_ >= strangers_most_) {
            return idle_place([](const Link& link) { return link.whose == Whose::Stranger; });
        }
    }
    return used_ < capacity_ ? used_ : idle_place([](const Link&) { return true; });
}

// Returns the next place, from the hand on, whose path is not pinned and may be taken.
template <class May>
std::uint32_t PathTable::idle_place(May&& may) noexcept {
    constexpr int kTries = 256;  // the most that an unknown peer's packet costs
    for (int tries = 0; tries < kTries; ++tries) {
        const std::uint8_t* const from = idle_.get();
        const void* found = std::memchr(from + hand_, 1, used_ - hand_);
        if (found == nullptr) {
            found = std::memchr(from, 1, hand_);
        }
        if (found == nullptr) {
            break;
        }
        const auto index = static_cast<std::uint32_t>(static_cast<const std::uint8_t*>(found) - from);
        hand_ = (index + 1) % used_;
        if (paths_[index].burst() != burst_ && may(links_[index])) {
            return index;
        }
    }
    return HashChains::kEnd;
}

void PathTable::enter(std::uint32_t index, Whose whose) noexcept {
    const PathKey& key = paths_[index].key();
    by_key_.link(hash_of(key.remote, key.udp_source_port), index);
    Station* to = station(key.remote);
    if (to == nullptr) {
        to = &stations_[spare_stations_.back()];
        spare_stations_.pop_back();
        *to = Station{};
        to->address = key.remote;
        by_address_.link(hash_of(key.remote, 0), static_cast<std::uint32_t>(to - stations_.data()));
    }
    links_[index] = {static_cast<std::uint32_t>(to - stations_.data()), to->first, HashChains::kEnd, whose};
    if (to->first != HashChains::kEnd) {
        links_[to->first].previous = index;
    }
    to->first = index;
    ++to->paths;
    if (whose == Whose::Stranger) {
        ++strangers_;
        surplus_ += ++to->strangers > few_ ? 1U : 0U;
    }
}

void PathTable::leave(std::uint32_t index) noexcept {
    const PathKey& key = paths_[index].key();
    by_key_.unlink(hash_of(key.remote, key.udp_source_port), index);
    const Link link = links_[index];
    Station& to = stations_[link.station];
    if (link.whose == Whose::Stranger) {
        --strangers_;
        surplus_ -= to.strangers-- > few_ ? 1U : 0U;
    }
    (link.previous == HashChains::kEnd ? to.first : links_[link.previous].next) = link.next;
    if (link.next != HashChains::kEnd) {
        links_[link.next].previous = link.previous;
    }
    if (--to.paths == 0) {
        by_address_.unlink(hash_of(to.address, 0), link.station);
        spare_stations_.push_back(link.station);
    }
}

}  // namespace cairn::port
