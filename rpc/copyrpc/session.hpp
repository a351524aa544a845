// A session: one reliable connection with a ring for either direction.
#pragma once

#include <memory>
#include <optional>

#include "lib/verbs/connector.hpp"
#include "rpc/common/call_table.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/copyrpc/hello.hpp"
#include "rpc/copyrpc/ring_end.hpp"

namespace cairn::copyrpc {

enum class SessionState : std::uint8_t {
    Connecting,  // until both ends are ready; calls wait
    Open,
    Ending,  // no call is taken; the connection's last event is awaited
};

// The size of a call that was tried and found no room.
struct Wanted {
    std::uint32_t request_bytes = 0;
    std::uint32_t answer_bytes = 0;
    bool has_deadline = false;
};

struct Session {
    SessionId id{};
    SessionState state = SessionState::Connecting;
    bool ours = false;    // connect() began it
    bool listed = false;  // in the list of those that have something to send
    verbs::ConnectionId connection{};
    std::unique_ptr<verbs::Pd> pd;
    std::unique_ptr<verbs::Qp> qp;
    rpc::MsgBuffer own_memory{};
    rpc::MsgBuffer mirror_memory{};
    std::unique_ptr<verbs::Mr> own;
    std::unique_ptr<verbs::Mr> mirror;
    Hello peer{};
    Instant asked{};                   // when the peer's REQ came, if the peer began
    std::optional<RingEnd> rings{};    // once the connection is established
    std::optional<RingWrite> write{};  // composed, but the send queue was full
    rpc::Backlog backlog{};
    std::optional<Wanted> wanted{};
    bool heard = false;             // since the last look
    std::uint8_t silent_looks = 0;  // in a row, while a probe was under way
    bool probed = false;            // a probe is under way

    [[nodiscard]] bool is_open() const noexcept { return state == SessionState::Open; }
};

}  // namespace cairn::copyrpc
