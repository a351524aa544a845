// Connections by our name for them, by the peer's, and by the peer's queue pair.
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

// A place in the backlog of a listener, whose serial no later one of the same service has.
struct BacklogPlace {
    wire::ServiceId service{};
    net::IpAddress local{};
    std::uint32_t serial = 0;  // 0: none
    ConnectionShares::Ticket ticket = 0;
};

struct Connection {
    ConnectionId id{};
    State state = State::Ended;
    bool active = false;     // we asked for it
    bool abandoned = false;  // the user wants to hear no more of it
    User* user = nullptr;
    bool has_alternate = false;
    wire::TransportService transport = wire::TransportService::Rc;
    Route route{};
    wire::CommId remote_id{};  // means something once has_remote
    bool has_remote = false;
    bool proven = false;         // the peer has shown that it gets what we send it
    std::uint8_t allowance = 0;  // messages that may be sent to a passive one's peer that has not
    Qpn local_qpn{};
    Qpn remote_qpn{};
    Psn send_psn{};
    std::uint64_t transaction = 0;         // of the request and what answers it
    std::uint64_t dreq_transaction = 0;    // of the peer's DREQ
    std::uint8_t responder_resources = 0;  // that the peer offered
    std::uint8_t initiator_depth = 0;
    Duration wait{};                // for an answer of the peer
    Duration service{};             // that we asked the peer to wait longer for ours
    wire::CmTimeout ack_timeout{};  // as long lasts TIMEWAIT
    wire::CmRetries max_retries{};
    std::uint8_t retries_left = 0;
    Instant deadline = Instant::never();
    Instant replied_at{};                        // a passive one
    BacklogPlace place{};                        // while it counts as waiting there
    ConnectionShares::Ticket stranger_ticket{};  // of a passive one, while its peer is not proven

    // What we sent last: again when no answer comes, or when what it answers comes again.
    wire::MadBytes message{};
    std::optional<Message> answers;  // that could come again
};

// At most `capacity` of them, with names that nobody guesses.
class ConnectionTable {
public:
    // `numbers` outlives it.
    ConnectionTable(std::uint32_t capacity, SecretNumbers& numbers, const NameShare& names);

    // nullptr: full. It is found by its id only.
    [[nodiscard]] Connection* try_add();
    void remove(Connection& connection);

    [[nodiscard]] Connection* find(ConnectionId id) noexcept;
    [[nodiscard]] Connection* find_remote(const net::IpAddress& peer, wire::CommId remote_id) noexcept;
    [[nodiscard]] Connection* find_remote_qpn(const net::IpAddress& peer, Qpn remote_qpn) noexcept;

    // From now on it is found by what the peer calls it.
    void add_remote(Connection& connection);
    // And by the peer's queue pair, instead of the one that was found so before, which is returned.
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
