// A session: one reliable connection with a ring for either direction.
#pragma once

#include <memory>
#include <optional>

#include "rpc/common/call_table.hpp"
#include "rpc/common/index_list.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/copyrpc/batch_hold.hpp"
#include "rpc/copyrpc/hello.hpp"
#include "rpc/copyrpc/late_answers.hpp"
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
    std::uint32_t extras = 0;         // in the request
};

// Resources that ended calls still hold, since their answers have not come.
struct GivenUp {
    std::uint64_t tickets = 0;
    std::uint64_t bytes = 0;  // bytes that they lent

    void add(std::uint64_t lent) noexcept {
        ++tickets;
        bytes += lent;
    }
    void remove(std::uint64_t lent) noexcept {
        --tickets;
        bytes -= lent;
    }
};

// Resources that the session's calls hold until their answers come.
struct Outstanding {
    rpc::IndexList tickets{};
    std::uint64_t lent_bytes = 0;
    GivenUp given_up{};
    std::uint8_t still_looks = 0;  // looks in a row with other calls waiting for ended ones, none of which was answered
};

struct Session : rpc::LinkedSession {
    rpc::MsgBuffer own_memory{};
    rpc::MsgBuffer mirror_memory{};
    std::unique_ptr<verbs::Mr> own;
    std::unique_ptr<verbs::Mr> mirror;
    rpc::MsgBuffer word_memory{};          // with Flow::Read, as the next three
    std::unique_ptr<verbs::Mr> word;       // our consumer word
    std::unique_ptr<verbs::Mr> read_word;  // room for the peer's word
    bool asks_word = false;                // a READ of the peer's word is under way
    Hello peer{};
    std::optional<RingEnd> rings{};    // set once the connection is established
    std::optional<RingWrite> write{};  // composed while the send queue was full
    BatchHold hold{};
    Outstanding outstanding{};
    rpc::IndexList kept{};  // requests that are not answered
    rpc::Backlog backlog{};
    rpc::Backlog lacking{};  // earlier calls that wait for memory; other calls pass them
    std::optional<Wanted> wanted{};
    std::unique_ptr<SessionTransfers> transfers;
    std::unique_ptr<SessionLateAnswers> late;    // with Flow::Read
    std::unique_ptr<SessionOneSided> one_sided;  // set once there is an operation

    [[nodiscard]] bool has_waiting() const noexcept { return !backlog.empty() || !lacking.empty(); }
    [[nodiscard]] bool has_late() const noexcept { return late != nullptr && !late->answers.empty(); }
};

}  // namespace cairn::copyrpc
