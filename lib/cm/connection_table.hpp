// Connections by our name for them, by the peer's, and by the peer's queue pair.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/time.hpp"
#include "lib/cm/state.hpp"
#include "lib/cm/types.hpp"

namespace cairn::cm {

// Which listener a request was for; a number that no later one of the same service has.
struct ListenerId {
    wire::ServiceId service{};
    net::IpAddress local{};
    std::uint32_t serial = 0;  // 0: none
};

struct Connection {
    ConnectionId id{};
    State state = State::Ended;
    bool active = false;     // we asked for it
    bool abandoned = false;  // the user wants to hear no more of it
    bool has_alternate = false;
    wire::TransportService transport = wire::TransportService::Rc;
    Route route{};
    wire::CommId remote_id{};  // means something once has_remote
    bool has_remote = false;
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
    ListenerId listener{};  // while it counts as waiting there

    // What we sent last: again when no answer comes, or when what it answers comes again.
    wire::MadBytes message{};
    Message answers = Message::Count;  // Count: it answers nothing that could come again
};

// At most `capacity` of them; names follow from `seed` and are not used again for as long as possible.
class ConnectionTable {
public:
    ConnectionTable(std::uint32_t capacity, std::uint32_t seed);

    // nullptr: full. It is found by its id only.
    [[nodiscard]] Connection* try_add();
    void remove(Connection& connection);

    [[nodiscard]] Connection* find(ConnectionId id) noexcept;
    [[nodiscard]] Connection* find_remote(const net::IpAddress& peer, wire::CommId remote_id) noexcept;
    [[nodiscard]] Connection* find_remote_qpn(const net::IpAddress& peer, Qpn remote_qpn) noexcept;

    // From now on it is found by what the peer calls it and by the peer's queue pair.
    void add_remote(Connection& connection);
    void forget_remote_qpn(Connection& connection);
    void forget_remote(Connection& connection);

    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

private:
    struct Slot {
        std::unique_ptr<Connection> connection;
        std::uint32_t generation = 0;
    };
    [[nodiscard]] ConnectionId id_of(std::uint32_t index) const noexcept;

    std::uint32_t capacity_;
    std::uint32_t index_bits_;
    std::uint32_t seed_;
    std::uint32_t size_ = 0;
    std::vector<Slot> slots_;         // grows as long as it must
    std::deque<std::uint32_t> free_;  // longest free first
    std::map<std::pair<net::IpAddress, wire::CommId>, ConnectionId> by_remote_id_;
    std::map<std::pair<net::IpAddress, Qpn>, ConnectionId> by_remote_qpn_;
};

}  // namespace cairn::cm
