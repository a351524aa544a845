// A server's answers and news, on their way from the handlers to the clients.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "rpc/scalerpc/long_answers.hpp"
#include "rpc/scalerpc/sessions.hpp"
#include "rpc/scalerpc/short_answers.hpp"
#include "rpc/scalerpc/statistics.hpp"

namespace cairn::scalerpc {

// The kinds of signalled work requests, in the highest byte of their numbers.
enum class Work : std::uint8_t { LongAnswer = 1, Fetch = 2 };
[[nodiscard]] constexpr std::uint64_t work_id(Work kind, std::uint64_t number) noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 56U | number;
}

// Sends answers in the order in which they were put, at the end of a turn. If a client acknowledges nothing, an answer
// for each of its blocks waits. Twice that number of buffers for long answers may wait, too. The client uses its own
// share only.
class Answers {
public:
    // All references outlive the object.
    Answers(const EndpointConfig& config, Sessions& sessions, rpc::MsgPool& pool, Statistics& statistics)
        : config_(config),
          sessions_(sessions),
          pool_(pool),
          statistics_(statistics),
          short_(config.shape),
          long_(config.shape, pool) {}
    // Takes memory for answers. Errors: no memory; the device has no room.
    Status open(verbs::Device& device, verbs::Pd& pd) {
        const Status opened = short_.open(device, pd, config_.sessions_max);
        return opened.ok()
                   ? long_.open(device, pd, long_answers_of(config_), config_.sessions_max, 2 * config_.shape.blocks)
                   : opened;
    }
    void close() noexcept {
        short_.close();
        long_.close();
    }
    // Returns the memory for the short answers of a new client.
    [[nodiscard]] std::span<std::uint8_t> rooms_of(SessionId session) noexcept { return short_.give(session); }

    // Puts the answer to the request with this sequence number.
    void put(Session& session, const Answer& wanted) noexcept;
    // Writes a control word that tells a client in its slice where to write. Does so only if no answer has done that,
    // and either no requests were READ or the entry names more than those.
    void tell_of_slice(Session& session, const Entry& entry) noexcept;
    // Adds news to the last answer of the turn, or to the control word.
    void tell(Session& session, const News& news) noexcept;
    // Sends the answers and the control word of a session. Answers without room wait for another turn. Once all of that
    // is posted, the client's time to leave its slice begins.
    void flush(Session& session, Instant now) noexcept;
    // Notes that a signalled WRITE is complete.
    void on_written(std::uint64_t number) noexcept { long_.on_written(number); }
    // Forgets the answers of a session that ends. If it lends(), its queue pair has stopped.
    void forget(Session& session) noexcept;
    // Returns true if long answers of the session are not acknowledged. Its queue pair may send them again.
    [[nodiscard]] bool lends(SessionId session) const noexcept { return long_.lends(session); }

private:
    [[nodiscard]] std::span<std::uint8_t> room_of(Guest& guest, const Outbox::Entry& answer) const noexcept;
    void find_room(SessionId session, std::size_t bytes, Outbox::Entry& answer) noexcept;
    [[nodiscard]] bool lend(SessionId session, Outbox::Entry& answer) noexcept;
    [[nodiscard]] bool send_run(Session& session, std::size_t count) noexcept;
    [[nodiscard]] std::size_t run_of(Session& session) const noexcept;
    [[nodiscard]] static bool send_control(Session& session, std::optional<Control>& control) noexcept;

    const EndpointConfig& config_;
    Sessions& sessions_;
    rpc::MsgPool& pool_;
    Statistics& statistics_;
    ShortAnswers short_;
    LongAnswers long_;
    std::size_t waiting_ = 0;  // of all sessions together
};

}  // namespace cairn::scalerpc
