// With Flow::Read: answers that found their peer's ring full, and the memory that they take.
#pragma once

#include <deque>

#include "rpc/common/msg_buffer.hpp"
#include "rpc/copyrpc/ring_end.hpp"
#include "rpc/copyrpc/statistics.hpp"

namespace cairn::copyrpc {

struct Session;

// An answer that waits for room in the ring.
struct LateAnswer {
    rpc::MsgBuffer payload{};
    std::uint32_t call = 0;
    std::uint32_t written = 0;
    std::uint16_t charge = 0;
    Outcome outcome{};
};

// A request that waits until there is memory for its answer. Meanwhile it lies in the ring.
struct HeldBack {
    RingEnd::Taken taken{};
    Instant came{};
};

struct SessionLateAnswers {
    std::deque<LateAnswer> answers;
    std::uint64_t bytes = 0;  // bytes of their payloads
    std::deque<HeldBack> requests;
};

// Answers that wait take at most a quarter of the pool. The answers of one session take at most as much as they leave
// to others. So a peer that keeps its ring full takes no memory that others need for their answers.
class LateAnswers {
public:
    // All references outlive the object.
    LateAnswers(rpc::MsgPool& pool, Statistics& statistics) noexcept : pool_(pool), statistics_(statistics) {}

    // Lets an answer to a request of this charge wait, after the others. Without memory the answer is given up.
    void put_off(Session& session, const Message& answer, std::uint16_t charge) noexcept;
    // Puts waiting answers into the ring, in order. Returns false if some still wait.
    [[nodiscard]] bool serve(Session& session) noexcept;
    // True if a request of this charge must wait until some of these answers have left. If this end also calls its
    // peer, no request waits: each end might wait for the other.
    [[nodiscard]] bool holds_back(const Session& session, std::uint16_t charge) const noexcept;
    // Drops the answers of a session that ends.
    void forget(Session& session) noexcept;

private:
    [[nodiscard]] bool has_share(const SessionLateAnswers& own, std::uint64_t bytes) const noexcept;
    void drop_oldest(SessionLateAnswers& own) noexcept;

    rpc::MsgPool& pool_;
    Statistics& statistics_;
    std::uint64_t bytes_ = 0;  // of all sessions together
};

}  // namespace cairn::copyrpc
