// Long messages at their server: requests that are READ in their callers' memory, and answers that are WRITTEN there.
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

// A message that is being transferred.
struct Transfer : Pieces {
    rpc::MsgBuffer memory{};
};

// A request that is READ. Without a place: a request that waits until a long answer is possible.
struct Fetch : Transfer {
    rpc::JobRequest work{};
};

// An answer that is WRITTEN. A message about it follows in a batch.
struct Writing : Transfer {
    std::uint32_t call = 0;
    std::uint16_t charge = 0;
};

// The transfers of a session, oldest first. Made for its first transfer.
struct SessionTransfers {
    std::deque<Fetch> fetches;
    std::deque<Writing> writings;
    std::uint32_t reads = 0;  // pieces under way
    std::uint32_t writes = 0;
    std::uint64_t taken_bytes = 0;  // memory of unfinished requests and of answers
    PiecesUnderWay under_way{};
};

// True if `bytes` more fit into the shares of the pool. A direction may have a quarter of the pool, a session half of
// that. A direction or a session that has taken nothing may have any size.
[[nodiscard]] bool has_share(const rpc::MsgPool& pool, std::uint64_t taken_bytes, std::uint64_t of_session,
                             std::uint64_t bytes) noexcept;

// READs and WRITEs long messages. Requests wait, in order, while earlier requests and their answers take all the
// allowed memory. A session may take half of that memory.
class Transfers {
public:
    // All references outlive the object. READs and WRITEs take half of a session's send queue, which `receives` sizes.
    Transfers(Server& server, verbs::Device& device, rpc::MsgPool& pool, std::uint32_t receives,
              Statistics& statistics) noexcept
        : server_(server),
          device_(device),
          pool_(pool),
          statistics_(statistics),
          pieces_most_(std::min(receives / 2, kPiecesMost)) {}

    void fetch(Session& session, Fetch fetch);
    // True if a request that may have a long answer must wait.
    [[nodiscard]] bool puts_off(const Session& session) const noexcept;
    // Writes an answer, and takes its memory.
    void write(Session& session, Writing writing);
    // Posts as many pieces as possible. Returns false if it must be called again in another turn. Handlers may run, and
    // may end the session.
    [[nodiscard]] bool serve(Session& session, Instant now) noexcept;
    // Notes that the oldest READ or WRITE of the session is done. A handler may run, and may end the session.
    void on_read(Session& session, Instant now) noexcept;
    void on_written(Session& session) noexcept;
    // Releases a request that was READ.
    void release(Session& session, rpc::MsgBuffer& fetched) noexcept;
    // Forgets a session that ends: it reads and writes no more.
    void forget(Session& session) noexcept;
    // Looks at the session from time to time. Returns true if its peer holds a transfer up.
    [[nodiscard]] static bool is_stuck(Session& session) noexcept;
    // True if requests wait for memory: nothing wakes the worker when memory becomes free.
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
    const std::uint32_t pieces_most_;  // for one session, READs and WRITEs each
    std::uint64_t taken_bytes_ = 0;    // of all sessions together
    bool wants_polling_ = false;
};

}  // namespace cairn::copyrpc
