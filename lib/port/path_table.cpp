#include "lib/port/path_table.hpp"

#include <bit>
#include <cstring>

#include "lib/base/assert.hpp"

namespace cairn::port {

namespace {

std::uint64_t mix(std::uint64_t value) noexcept {
    value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
    return value ^ (value >> 27U);
}

}  // namespace

PathTable::PathTable(std::uint32_t capacity, std::uint16_t own_source_port)
    : capacity_(capacity),
      own_source_port_(own_source_port),
      paths_(std::make_unique<Path[]>(capacity)),
      next_(capacity, 0),
      heads_(std::bit_ceil(std::size_t{capacity}), 0) {
    CAIRN_ASSERT(capacity > 0);
}

std::uint32_t PathTable::home(const PathKey& key) const noexcept {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    std::memcpy(&low, key.remote.octets().data() + 8, 8);
    std::memcpy(&high, key.remote.octets().data(), 8);
    return static_cast<std::uint32_t>(mix(low ^ mix(high + key.udp_source_port)) & (heads_.size() - 1));
}

Path* PathTable::find(const PathKey& key) noexcept {
    for (std::uint32_t at = heads_[home(key)]; at != 0; at = next_[at - 1]) {
        if (paths_[at - 1].key() == key) {
            return &paths_[at - 1];
        }
    }
    return nullptr;
}

Path* PathTable::intern(const PathKey& key) noexcept {
    if (Path* known = find(key); known != nullptr) {
        if (key.traffic_class != 0 && key.traffic_class != known->key().traffic_class) {
            known->set_traffic_class(key.traffic_class);
        }
        return known;
    }
    std::uint32_t index = used_;
    if (used_ < capacity_) {
        ++used_;
    } else {
        std::uint32_t tried = 0;
        while (paths_[victim_].pins() != 0 && tried < capacity_) {
            victim_ = (victim_ + 1) % capacity_;
            ++tried;
        }
        if (tried == capacity_) {
            return nullptr;
        }
        index = victim_;
        victim_ = (victim_ + 1) % capacity_;
        unlink(index);
    }
    paths_[index] = own_source_port_ == 0 ? Path(key) : Path(key, own_source_port_);
    if (key.traffic_class == 0) {
        paths_[index].set_traffic_class(traffic_class_);
    }
    std::uint32_t& head = heads_[home(key)];
    next_[index] = head;
    head = index + 1;
    return &paths_[index];
}

void PathTable::unlink(std::uint32_t index) noexcept {
    std::uint32_t* at = &heads_[home(paths_[index].key())];
    while (*at != index + 1) {
        CAIRN_ASSERT(*at != 0);
        at = &next_[*at - 1];
    }
    *at = next_[index];
}

}  // namespace cairn::port
