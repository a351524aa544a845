// One-sided operations: READs and WRITEs of memory that the other end of a session has opened to it.
//
//     const Place place = server.one_sided().open(session, memory, verbs::Right::RemoteRead).value();
//     // The place goes to the client as part of a message, with Place::raw(). There:
//     const CallResult read = co_await one_sided_read(client, session, place, into, now);
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/base/result.hpp"
#include "lib/verbs/device.hpp"
#include "rpc/common/result_awaiter.hpp"
#include "rpc/copyrpc/sessions.hpp"
#include "rpc/copyrpc/statistics.hpp"

namespace cairn::copyrpc {

// A peer that gets a place may use it while it is open. A peer that names another place, or a closed one, loses its
// connection.
class OneSided {
public:
    static constexpr std::uint32_t kMostPending = 1024;  // in one session
    static constexpr std::uint32_t kPiecesMost = 4;
    static constexpr std::size_t kMostBytes = 0xffffffffU;  // in one place

    // All references outlive the object. Operations take at most an eighth of a session's send queue, which `receives`
    // sizes.
    OneSided(verbs::Device& device, Sessions& sessions, std::uint32_t receives, Statistics& statistics) noexcept
        : device_(device),
          sessions_(sessions),
          statistics_(statistics),
          pieces_most_(std::clamp(receives / 4, 1U, kPiecesMost)) {}

    // Opens memory of ours to the session's peer, until it is closed or the session ends. Rights: RemoteRead,
    // RemoteWrite or both. Errors: no such session; other rights; no bytes, or 4 GiB and more; no room.
    [[nodiscard]] Result<Place> open(SessionId session, std::span<std::uint8_t> memory, verbs::Rights rights);
    // Closes a place at once. Returns false if there is no such place.
    bool close(SessionId session, const Place& place) noexcept;

    // Post an operation. Its completion never runs before they return. NoSuchSession: the session is not open. Full:
    // kMostPending operations are pending. TooLong: the place is shorter than the memory, or the memory is empty.
    [[nodiscard]] rpc::PostVerdict read(SessionId session, const OneSidedWork& work, Instant now) {
        return post(session, work, verbs::WorkOpcode::RdmaRead, now);
    }
    [[nodiscard]] rpc::PostVerdict write(SessionId session, const OneSidedWork& work, Instant now) {
        return post(session, work, verbs::WorkOpcode::RdmaWrite, now);
    }

    // Posts pieces of a session that has operations, or had some. Returns false if it must be called again in another
    // turn.
    [[nodiscard]] bool serve(Session& session) noexcept;
    // True if operations wait for a key: nothing wakes the worker when a key becomes free.
    [[nodiscard]] bool wants_polling() const noexcept { return wants_polling_; }
    void begin_turn() noexcept { wants_polling_ = false; }
    // Notes that the oldest piece is done. The completion may end the session.
    void on_done(Session& session, Instant now) noexcept;
    // Ends the operations of a session that ends. Returns true if it had memory open to its peer.
    bool fail(Session& session, rpc::CallStatus status, Instant now) noexcept;
    // Completes the operations with `ends_with_endpoint`. The endpoint ends, and takes no more operations.
    void end_awaited(Instant now) noexcept;
    // Looks at a session from time to time. Returns true if its peer holds an operation up.
    [[nodiscard]] static bool is_stuck(Session& session) noexcept;

private:
    [[nodiscard]] rpc::PostVerdict post(SessionId session, const OneSidedWork& work, verbs::WorkOpcode opcode,
                                        Instant now);
    [[nodiscard]] bool give_key(Session& session, SessionOneSided::Pending& work);

    verbs::Device& device_;
    Sessions& sessions_;
    Statistics& statistics_;
    const std::uint32_t pieces_most_;  // pieces of one session under way
    bool ended_ = false;
    bool wants_polling_ = false;
};

// The awaiter of one_sided_read() and one_sided_write().
template <class Endpoint>
class OneSidedAwaiter : public rpc::ResultAwaiter {
public:
    using Post = rpc::PostVerdict (OneSided::*)(SessionId, const OneSidedWork&, Instant);

    OneSidedAwaiter(Endpoint& endpoint, SessionId session, const OneSidedWork& work, const Instant& now,
                    Post post) noexcept
        : endpoint_(endpoint), session_(session), work_(work), now_(now), post_(post) {}

    // Posts the operation. Returns false if it was not posted; the coroutine then goes on at once.
    [[nodiscard]] bool await_suspend(std::coroutine_handle<> waiting) {
        expect(work_, waiting);
        const rpc::PostVerdict verdict = (endpoint_.one_sided().*post_)(session_, work_, now_);
        if (verdict != rpc::PostVerdict::Posted) {
            end_at_once(verdict, work_.tag);
            return false;
        }
        return true;
    }

private:
    Endpoint& endpoint_;
    SessionId session_;
    OneSidedWork work_;
    const Instant& now_;
    Post post_;
};

// Read or write when awaited, and yield a CallResult. An operation that is not posted ends at once with TableFull,
// RequestTooLong or Disconnected. `now` is read when the operation is posted.
template <class Endpoint>
[[nodiscard]] OneSidedAwaiter<Endpoint> one_sided_read(Endpoint& endpoint, SessionId session, const Place& place,
                                                       std::span<std::uint8_t> into, const Instant& now) noexcept {
    return {endpoint, session, OneSidedWork{place, into}, now, &OneSided::read};
}
template <class Endpoint>
[[nodiscard]] OneSidedAwaiter<Endpoint> one_sided_write(Endpoint& endpoint, SessionId session, const Place& place,
                                                        std::span<std::uint8_t> from, const Instant& now) noexcept {
    return {endpoint, session, OneSidedWork{place, from}, now, &OneSided::write};
}

}  // namespace cairn::copyrpc
