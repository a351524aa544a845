// With Flow::Read: answers that found the ring of their peer full, and the memory that they take.
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

// A request that waits until there is memory for its answer. It lies in the ring meanwhile.
struct HeldBack {
    RingEnd::Taken taken{};
    Instant came{};
};

struct SessionLateAnswers {
    std::deque<LateAnswer> answers;
    std::uint64_t bytes = 0;  // of their payloads
    std::deque<HeldBack> requests;
};

// Answers that wait take a quarter of the pool, and those of a session as much as they leave to others. So a peer that
// lets nobody write to its ring takes no memory that others need for their answers.
class LateAnswers {
public:
    // All references outlive the object.
    LateAnswers(rpc::MsgPool& pool, Statistics& statistics) noexcept : pool_(pool), statistics_(statistics) {}

    // Puts the answer to a request of this charge behind those that wait. One without memory is given up.
    void put_off(Session& session, const Message& answer, std::uint16_t charge) noexcept;
    // Puts answers that waited into the ring, in order. Returns false if some still wait.
    [[nodiscard]] bool serve(Session& session) noexcept;
    // True if a request of this charge is to wait until some of these answers have left. Where this end calls its peer,
    // too, none waits: either might wait for the other.
    [[nodiscard]] bool holds_back(const Session& session, std::uint16_t charge) const noexcept;
    // The session ends.
    void forget(Session& session) noexcept;

private:
    [[nodiscard]] bool has_share(const SessionLateAnswers& own, std::uint64_t bytes) const noexcept;
    void drop_oldest(SessionLateAnswers& own) noexcept;

    rpc::MsgPool& pool_;
    Statistics& statistics_;
    std::uint64_t bytes_ = 0;  // of all sessions
};

}  // namespace cairn::copyrpc
