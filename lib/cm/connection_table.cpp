#include "lib/cm/connection_table.hpp"

#include <algorithm>

#include "lib/base/assert.hpp"

namespace cairn::cm {

namespace {

template <class Map, class Key>
void erase_if_of(Map& map, const Key& key, ConnectionId id) {
    const auto found = map.find(key);
    if (found != map.end() && found->second == id) {
        map.erase(found);
    }
}

}  // namespace

ConnectionTable::ConnectionTable(std::uint32_t capacity, SecretNumbers& numbers, const NameShare& names)
    : capacity_(capacity), numbers_(numbers), names_(names) {
    CAIRN_ASSERT(capacity > 0);
}

Connection* ConnectionTable::try_add() {
    if (connections_.size() >= capacity_) {
        return nullptr;
    }
    ConnectionId id{};  // zero is no name: a REJ that names no connection has it
    while (id == ConnectionId{} || connections_.count(id.value) != 0) {
        id = ConnectionId{names_.name(numbers_.next())};
    }
    auto made = std::make_unique<Connection>();
    made->id = id;
    return connections_.emplace(id.value, std::move(made)).first->second.get();
}

void ConnectionTable::remove(Connection& connection) {
    forget_remote(connection);
    const std::size_t removed = connections_.erase(connection.id.value);
    CAIRN_ASSERT(removed == 1);
}

std::vector<ConnectionId> ConnectionTable::of_user(const User& user) const {
    std::vector<ConnectionId> ids;
    for (const auto& [id, connection] : connections_) {
        if (connection->user == &user) {
            ids.push_back(connection->id);
        }
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

Connection* ConnectionTable::find(ConnectionId id) noexcept {
    const auto found = connections_.find(id.value);
    return found == connections_.end() ? nullptr : found->second.get();
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
    const bool is_new =
        by_remote_id_.emplace(std::pair(connection.route.remote, connection.remote_id), connection.id).second;
    CAIRN_ASSERT(is_new);
}

Connection* ConnectionTable::add_remote_qpn(Connection& connection) {
    Connection* const before = find_remote_qpn(connection.route.remote, connection.remote_qpn);
    by_remote_qpn_.insert_or_assign({connection.route.remote, connection.remote_qpn}, connection.id);
    return before;
}

void ConnectionTable::forget_remote(Connection& connection) {
    erase_if_of(by_remote_qpn_, std::pair(connection.route.remote, connection.remote_qpn), connection.id);
    erase_if_of(by_remote_id_, std::pair(connection.route.remote, connection.remote_id), connection.id);
}

}  // namespace cairn::cm
