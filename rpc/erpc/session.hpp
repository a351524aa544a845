// A session: who its peer is, and what its client's or server's part has.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/base/time.hpp"
#include "lib/roce/pace/dcqcn.hpp"
#include "lib/roce/ud/mux.hpp"
#include "rpc/erpc/client_session.hpp"
#include "rpc/erpc/limits.hpp"
#include "rpc/erpc/packet_look.hpp"
#include "rpc/erpc/slots.hpp"

namespace cairn::erpc {

enum class SessionState : std::uint8_t {
    Free,
    Connecting,     // client: Connect sent, waits for Accepted or Refused
    Connected,      // client: calls flow
    Disconnecting,  // client: Disconnect sent, waits for Disconnected
    Serving,        // server
};

// Plain state. A session that is only open costs little: either part is made when the first call needs it.
struct Session {
    SessionState state = SessionState::Free;
    bool selective = false;  // both ends hold packets that arrive early
    std::uint16_t credits_max = 0;
    SessionId self{};
    std::uint16_t place = 0;  // among the open sessions
    roce::UdAddress peer{};
    wire::RawUd header{};                            // ready-made BTH and DETH towards the peer
    FirstWord first_word = FirstWord::of(0, 0, {});  // ready-made: of packets to it, without type and size
    std::uint64_t source_word = 0;                   // of the peer's datagrams: roce::KnownStart
    PacketLook known_look{};                         // of its last packet on the short path
    std::unique_ptr<ClientSession> client;
    std::unique_ptr<ServerSlots> server;
    Instant last_heard{};  // of what is no copy of anything earlier
    std::uint64_t token = 0;
    std::uint64_t cookie = 0;         // from the server's challenge, 0: none came yet; then the newest Ping's number
    std::uint64_t first_request = 0;  // drawn by the server: where the numbers begin, before the slots' first requests
    Instant last_control{};           // client: last Connect, Disconnect or Ping sent
    Instant opened{};
    roce::DcqcnNotificationPoint notification{roce::kDcqcn.cnp_interval};  // of marks on the peer's packets

    // The peer's number of the session.
    [[nodiscard]] SessionId remote() const noexcept { return first_word.session(); }
    void set_remote(SessionId number) noexcept { first_word = FirstWord::of(0, 0, number); }
    [[nodiscard]] bool is_client() const noexcept {
        return state != SessionState::Serving && state != SessionState::Free;
    }
    [[nodiscard]] bool is_with(const roce::UdAddress& other) const noexcept {
        return peer.path == other.path && peer.qpn == other.qpn;
    }
};

// What a session costs that was opened and not called over: itself, its place in the tables (free and open lists, stall
// queue, watched sessions) and a server's entries by token and by source.
constexpr std::size_t kIdleSessionBytes = sizeof(Session) + 2 + 2 + 2 + 2 + 32 + 32;
static_assert(kIdleSessionBytes <= 300);

}  // namespace cairn::erpc
