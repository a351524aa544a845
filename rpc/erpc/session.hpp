// A session: its peer, and its client's or server's part.
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

// Plain state. A session without calls costs little, since either part is made when the first call needs it.
struct Session {
    SessionState state = SessionState::Free;
    bool selective = false;  // both ends hold packets that arrive early
    std::uint16_t credits_max = 0;
    SessionId self{};
    std::uint16_t place = 0;  // among the open sessions
    roce::UdAddress peer{};
    wire::RawUd header{};                            // template of BTH and DETH of packets to the peer
    FirstWord first_word = FirstWord::of(0, 0, {});  // the first word of packets to the peer, without type and size
    std::uint64_t source_word = 0;                   // of datagrams from the peer (see roce::KnownStart)
    PacketLook known_look{};                         // of the peer's last packet on the short path
    std::unique_ptr<ClientSession> client;
    std::unique_ptr<ServerSlots> server;
    Instant last_heard{};  // when the peer last sent something new; copies do not count
    std::uint64_t token = 0;
    std::uint64_t cookie = 0;         // the challenge's cookie or 0; in an open session the newest Ping's number
    std::uint64_t first_request = 0;  // drawn by the server; slot i begins kSlotsPerSession + i after it
    Instant last_control{};           // when the last control packet left; a client repeats and pings by it
    Instant opened{};
    roce::DcqcnNotificationPoint notification{roce::kDcqcn.cnp_interval};  // counts marks on the peer's packets

    // Returns the peer's number of the session.
    [[nodiscard]] SessionId remote() const noexcept { return first_word.session(); }
    void set_remote(SessionId number) noexcept { first_word = FirstWord::of(0, 0, number); }
    // Ends the short path for the session's packets.
    void begin_to_disconnect() noexcept {
        state = SessionState::Disconnecting;
        known_look = {};
    }
    [[nodiscard]] bool is_client() const noexcept {
        return state != SessionState::Serving && state != SessionState::Free;
    }
    [[nodiscard]] bool is_with(const roce::UdAddress& other) const noexcept {
        return peer.path == other.path && peer.qpn == other.qpn;
    }
};

// The memory of a session without calls. It includes the session's places in the free list, the open list, the stall
// queue and the watch list. It also includes the server's entries by token and by host.
constexpr std::size_t kIdleSessionBytes = sizeof(Session) + 2 + 2 + 2 + 2 + 32 + 32;
static_assert(kIdleSessionBytes <= 300);

}  // namespace cairn::erpc
