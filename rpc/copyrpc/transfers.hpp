// Long messages at their server: requests that are READ in their callers' memory, answers that are WRITTEN there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>

#include "lib/verbs/device.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/common/request_jobs.hpp"
#include "rpc/copyrpc/message.hpp"
#include "rpc/copyrpc/pieces.hpp"
#include "rpc/copyrpc/statistics.hpp"

namespace cairn::copyrpc {

class Server;
struct Session;

constexpr std::uint64_t kReadWork = 1;  // numbers of work requests; requests of one kind are done in their order
constexpr std::uint64_t kWriteWork = 2;
constexpr std::uint64_t kWordWork = 3;  // a READ of the peer's consumer word
constexpr std::uint64_t kOneSidedWork = 4;

// A message on its way.
struct Transfer : Pieces {
    rpc::MsgBuffer memory{};
};

// A request that is READ, or, without a place, one that waits until there may be a long answer.
struct Fetch : Transfer {
    rpc::JobRequest work{};
};

// An answer that is WRITTEN. Its message follows in a batch.
struct Writing : Transfer {
    std::uint32_t call = 0;
    std::uint16_t charge = 0;
};

// The transfers of a session, oldest first. Made when the first one comes.
struct SessionTransfers {
    std::deque<Fetch> fetches;
    std::deque<Writing> writings;
    std::uint32_t reads = 0;  // pieces under way
    std::uint32_t writes = 0;
    std::uint64_t taken_bytes = 0;  // memory of requests that are not done with, and of answers
    PiecesUnderWay under_way{};
};

// True if so many bytes more are within the part of the pool that one direction may take, or are all that it takes; and
// if they are within the half of it that a session may take, or all that the session takes.
[[nodiscard]] bool has_share(const rpc::MsgPool& pool, std::uint64_t taken_bytes, std::uint64_t of_session,
                             std::uint64_t bytes) noexcept;

// Requests wait, in order, while requests before them and their answers take all the memory that they may take. A
// session may take half of it.
class Transfers {
public:
    // All references outlive the object. `receives` of a session: READs and WRITEs take half of its send queue.
    Transfers(Server& server, verbs::Device& device, rpc::MsgPool& pool, std::uint32_t receives,
              Statistics& statistics) noexcept
        : server_(server),
          device_(device),
          pool_(pool),
          statistics_(statistics),
          pieces_most_(std::min(receives / 2, kPiecesMost)) {}

    void fetch(Session& session, Fetch fetch);
    // A request that may have a long answer is to wait.
    [[nodiscard]] bool puts_off(const Session& session) const noexcept;
    // Takes the answer's memory.
    void write(Session& session, Writing writing);
    // Posts what can be posted. Returns false if it is to be tried again in another turn. Handlers may run, and may end
    // the session.
    [[nodiscard]] bool serve(Session& session, Instant now) noexcept;
    // The oldest READ or WRITE of the session is done. A handler may run, and may end the session.
    void on_read(Session& session, Instant now) noexcept;
    void on_written(Session& session) noexcept;
    // A request that was READ is done with.
    void release(Session& session, rpc::MsgBuffer& fetched) noexcept;
    // The session ends: nothing of it is read or written any more.
    void forget(Session& session) noexcept;
    // Looks at the session from time to time. Returns true if its peer holds a transfer up.
    [[nodiscard]] static bool is_stuck(Session& session) noexcept;
    // Requests wait for memory; nothing wakes the worker when there is some.
    [[nodiscard]] bool wants_polling() const noexcept { return wants_polling_; }
    void begin_turn() noexcept { wants_polling_ = false; }

private:
    static constexpr std::uint32_t kPiecesMost = 8;

    [[nodiscard]] bool begin(Session& session, Fetch& fetch) noexcept;
    [[nodiscard]] bool post_reads(Session& session) noexcept;
    [[nodiscard]] bool has_room(const SessionTransfers& own, std::uint64_t bytes) const noexcept;
    [[nodiscard]] bool serve_oldest(Session& session, Instant now) noexcept;
    [[nodiscard]] bool post_writes(Session& session) noexcept;
    [[nodiscard]] bool give_key(Session& session, Transfer& transfer, verbs::Rights rights) noexcept;
    void end(SessionTransfers& own, Transfer& transfer) noexcept;

    Server& server_;
    verbs::Device& device_;
    rpc::MsgPool& pool_;
    Statistics& statistics_;
    const std::uint32_t pieces_most_;  // of a session, READs and WRITEs each
    std::uint64_t taken_bytes_ = 0;    // of all sessions
    bool wants_polling_ = false;
};

}  // namespace cairn::copyrpc
