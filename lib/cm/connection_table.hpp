// The connections of a manager. They are found by our name, by the peer's name, and by the peer's queue pair.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lib/base/secret_numbers.hpp"
#include "lib/base/time.hpp"
#include "lib/cm/state.hpp"
#include "lib/cm/types.hpp"
#include "lib/net/shares.hpp"

namespace cairn::cm {

class User;

using ConnectionShares = net::Shares<ConnectionId>;

// A place in the backlog of a listener. No later listener of the same service has the same serial.
struct BacklogPlace {
    wire::ServiceId service{};
    net::IpAddress local{};
    std::uint32_t serial = 0;  // 0: none
    ConnectionShares::Ticket ticket = 0;
};

struct Connection {
    ConnectionId id{};
    State state = State::Ended;
    bool active = false;     // this end asked for the connection
    bool abandoned = false;  // the user wants no more events of it
    User* user = nullptr;
    bool has_alternate = false;
    wire::TransportService transport = wire::TransportService::Rc;
    Route route{};
    wire::CommId remote_id{};  // valid if has_remote
    bool has_remote = false;
    bool proven = false;         // the peer has shown that it receives our messages
    std::uint8_t allowance = 0;  // messages that may still be sent to a passive connection's peer that is not proven
    Qpn local_qpn{};
    Qpn remote_qpn{};
    Psn send_psn{};
    std::uint64_t transaction = 0;         // of the request and its answers
    std::uint64_t dreq_transaction = 0;    // of the peer's DREQ
    std::uint8_t responder_resources = 0;  // as the peer offered
    std::uint8_t initiator_depth = 0;
    Duration wait{};                // for an answer of the peer
    Duration service{};             // the longer wait that we asked the peer for
    wire::CmTimeout ack_timeout{};  // also the length of TIMEWAIT
    wire::CmRetries max_retries{};
    std::uint8_t retries_left = 0;
    Instant deadline = Instant::never();
    Instant replied_at{};                        // of a passive connection
    BacklogPlace place{};                        // set while the connection counts in the backlog
    ConnectionShares::Ticket stranger_ticket{};  // of a passive connection whose peer is not proven

    // The last message sent. It is sent again if no answer comes, and if the message that it answers comes again.
    wire::MadBytes message{};
    std::optional<Message> answers;  // the kind of message that `message` answers, if a copy may come
};

// Holds at most `capacity` connections, whose names cannot be guessed.
class ConnectionTable {
public:
    // Makes an empty table. `numbers` outlives it.
    ConnectionTable(std::uint32_t capacity, SecretNumbers& numbers, const NameShare& names);

    // Adds a connection, or returns nullptr if the table is full. The new connection is found by its id only.
    [[nodiscard]] Connection* try_add();
    void remove(Connection& connection);

    [[nodiscard]] Connection* find(ConnectionId id) noexcept;
    [[nodiscard]] Connection* find_remote(const net::IpAddress& peer, wire::CommId remote_id) noexcept;
    [[nodiscard]] Connection* find_remote_qpn(const net::IpAddress& peer, Qpn remote_qpn) noexcept;

    // Lets the connection be found by the peer's name for it.
    void add_remote(Connection& connection);
    // Lets the connection be found by the peer's queue pair, too. Returns the connection that was found by it before,
    // if any.
    Connection* add_remote_qpn(Connection& connection);
    void forget_remote(Connection& connection);

    [[nodiscard]] std::vector<ConnectionId> of_user(const User& user) const;
    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(connections_.size()); }

private:
    std::uint32_t capacity_;
    SecretNumbers& numbers_;
    NameShare names_;
    std::unordered_map<std::uint32_t, std::unique_ptr<Connection>> connections_;
    std::map<std::pair<net::IpAddress, wire::CommId>, ConnectionId> by_remote_id_;
    std::map<std::pair<net::IpAddress, Qpn>, ConnectionId> by_remote_qpn_;
};

}  // namespace cairn::cm
