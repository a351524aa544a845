// A session: one reliable connection with a ring for either direction.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "rpc/common/call_table.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/copyrpc/batch_hold.hpp"
#include "rpc/copyrpc/hello.hpp"
#include "rpc/copyrpc/one_sided_work.hpp"
#include "rpc/copyrpc/ring_end.hpp"
#include "rpc/copyrpc/transfers.hpp"
#include "rpc/linked/linked_session.hpp"

namespace cairn::copyrpc {

using SessionState = rpc::LinkState;

// The size of a call that was tried and found no room.
struct Wanted {
    std::uint32_t request_bytes = 0;  // in the ring
    std::uint32_t answer_bytes = 0;   // in the ring
    std::uint32_t extras = 0;         // of the request
};

// An answer that waits for room in the ring.
struct LateAnswer {
    rpc::MsgBuffer payload{};
    std::uint32_t call = 0;
    std::uint32_t written = 0;
    std::uint16_t charge = 0;
    Outcome outcome{};
};

struct Session : rpc::LinkedSession {
    rpc::MsgBuffer own_memory{};
    rpc::MsgBuffer mirror_memory{};
    std::unique_ptr<verbs::Mr> own;
    std::unique_ptr<verbs::Mr> mirror;
    rpc::MsgBuffer word_memory{};          // with Flow::Read:
    std::unique_ptr<verbs::Mr> word;       // our consumer word,
    std::unique_ptr<verbs::Mr> read_word;  // and room for the peer's
    bool asks_word = false;                // a READ of it is under way
    Hello peer{};
    std::optional<RingEnd> rings{};    // once the connection is established
    std::optional<RingWrite> write{};  // composed, but the send queue was full
    BatchHold hold{};
    rpc::Backlog backlog{};
    std::optional<Wanted> wanted{};
    std::unique_ptr<SessionTransfers> transfers;
    std::unique_ptr<std::deque<LateAnswer>> late;  // with Flow::Read
    std::unique_ptr<SessionOneSided> one_sided;    // once there is one

    [[nodiscard]] bool has_late() const noexcept { return late != nullptr && !late->empty(); }
};

}  // namespace cairn::copyrpc
