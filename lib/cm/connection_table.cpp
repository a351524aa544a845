#include "lib/cm/connection_table.hpp"

#include <bit>

#include "lib/base/assert.hpp"

namespace cairn::cm {

namespace {

constexpr std::uint32_t kMostIndexBits = 20;  // leaves each place 4,096 names in turn

template <class Map, class Key>
void erase_if_of(Map& map, const Key& key, ConnectionId id) {
    const auto found = map.find(key);
    if (found != map.end() && found->second == id) {
        map.erase(found);
    }
}

}  // namespace

ConnectionTable::ConnectionTable(std::uint32_t capacity, std::uint32_t seed)
    : capacity_(capacity), index_bits_(static_cast<std::uint32_t>(std::bit_width(capacity - 1))), seed_(seed) {
    CAIRN_ASSERT(capacity > 0 && index_bits_ <= kMostIndexBits);
}

ConnectionId ConnectionTable::id_of(std::uint32_t index) const noexcept {
    return ConnectionId{((slots_[index].generation << index_bits_) | index) ^ seed_};
}

Connection* ConnectionTable::try_add() {
    if (size_ == capacity_) {
        return nullptr;
    }
    if (slots_.size() < capacity_) {  // first use every place once
        free_.push_front(static_cast<std::uint32_t>(slots_.size()));
        slots_.emplace_back();
    }
    const std::uint32_t index = free_.front();
    free_.pop_front();
    Slot& slot = slots_[index];
    ++slot.generation;
    if (id_of(index) == ConnectionId{}) {  // a REJ that names no connection has a zero there
        ++slot.generation;
    }
    slot.connection = std::make_unique<Connection>();
    slot.connection->id = id_of(index);
    ++size_;
    return slot.connection.get();
}

void ConnectionTable::remove(Connection& connection) {
    forget_remote(connection);
    const std::uint32_t index = (connection.id.value ^ seed_) & ((1U << index_bits_) - 1);
    CAIRN_ASSERT(slots_[index].connection.get() == &connection);
    slots_[index].connection.reset();
    free_.push_back(index);
    --size_;
}

Connection* ConnectionTable::find(ConnectionId id) noexcept {
    const std::uint32_t index = (id.value ^ seed_) & ((1U << index_bits_) - 1);
    if (index >= slots_.size() || slots_[index].connection == nullptr || slots_[index].connection->id != id) {
        return nullptr;
    }
    return slots_[index].connection.get();
}

Connection* ConnectionTable::find_remote(const net::IpAddress& peer, wire::CommId remote_id) noexcept {
    const auto found = by_remote_id_.find({peer, remote_id});
    return found == by_remote_id_.end() ? nullptr : find(found->second);
}

Connection* ConnectionTable::find_remote_qpn(const net::IpAddress& peer, Qpn remote_qpn) noexcept {
    const auto found = by_remote_qpn_.find({peer, remote_qpn});
    return found == by_remote_qpn_.end() ? nullptr : find(found->second);
}

void ConnectionTable::add_remote(Connection& connection) {
    CAIRN_ASSERT(connection.has_remote);
    const net::IpAddress& peer = connection.route.remote;
    const bool new_id = by_remote_id_.emplace(std::pair(peer, connection.remote_id), connection.id).second;
    const bool new_qpn = by_remote_qpn_.emplace(std::pair(peer, connection.remote_qpn), connection.id).second;
    CAIRN_ASSERT(new_id && new_qpn);
}

void ConnectionTable::forget_remote_qpn(Connection& connection) {
    erase_if_of(by_remote_qpn_, std::pair(connection.route.remote, connection.remote_qpn), connection.id);
}

void ConnectionTable::forget_remote(Connection& connection) {
    forget_remote_qpn(connection);
    erase_if_of(by_remote_id_, std::pair(connection.route.remote, connection.remote_id), connection.id);
}

}  // namespace cairn::cm
