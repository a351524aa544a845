// The calling half of an endpoint: calls from post to completion, and the WRITEs that carry them.
#pragma once

#include <cstdint>
#include <optional>

#include "rpc/common/call_table.hpp"
#include "rpc/scalerpc/endpoint_config.hpp"
#include "rpc/scalerpc/sessions.hpp"
#include "rpc/scalerpc/statistics.hpp"

namespace cairn::scalerpc {

class Client {
public:
    // All references outlive the object.
    Client(const EndpointConfig& config, Sessions& sessions, Statistics& statistics)
        : config_(config),
          sessions_(sessions),
          statistics_(statistics),
          calls_(config.calls_max, statistics.calls_failed) {}

    // Posts a call over a session that connects or is open. The call waits while the session has no block for it.
    Posted post(Session& session, const Call& call, Instant now) noexcept;
    bool cancel(CallId id, Instant now) noexcept;
    // Looks for answers and news of a session whose server has written. Returns the breach if the server broke a rule.
    // Sets `any` if there was an answer.
    [[nodiscard]] std::optional<Breach> poll(Session& session, Instant now, bool& any) noexcept;
    // Counts the time in which all sessions together stall, if that is watched.
    void watch_stalls(Instant now) noexcept;
    // Notes that a session is open. A client of several servers waits at one while it has its slice at another, unless
    // their slices are `in_step` (ScaleRPC 4.2). Counts each server after the first one whose slices are its own.
    void note_server(const net::IpAddress& remote, bool in_step) noexcept {
        several_ = several_ || (server_ && *server_ != remote);
        server_ = remote;
        statistics_.sessions_out_of_step += several_ && !in_step ? 1 : 0;
    }
    // Writes staged requests, or an entry about them.
    void flush(Session& session, Instant now) noexcept;
    // Ends all calls of the session. The session takes no more calls.
    void fail_calls(Session& session, CallStatus status, Instant now) noexcept;
    void end_overdue(Instant now) noexcept;
    void end_awaited(Instant now) noexcept;
    [[nodiscard]] rpc::CallTable& calls() noexcept { return calls_; }
    [[nodiscard]] const rpc::CallTable& calls() const noexcept { return calls_; }

private:
    void serve_backlog(Session& session, Instant now) noexcept;
    void on_answer(Session& session, Caller::Slot& slot, const Answer& answer, Instant now) noexcept;
    void finish(std::uint32_t call, CallStatus status, Instant now) noexcept;
    [[nodiscard]] bool write_entry(Session& session, const Entry& entry, Instant now) noexcept;
    [[nodiscard]] bool write_blocks(Session& session, Caller::Span run, Instant now) noexcept;
    [[nodiscard]] std::uint32_t run_end(const Caller& caller, Caller::Span staged) const noexcept;

    const EndpointConfig& config_;
    Sessions& sessions_;
    Statistics& statistics_;
    rpc::CallTable calls_;
    std::optional<net::IpAddress> server_{};  // of the session that opened last
    bool several_ = false;                    // there have been several servers
    Instant watched_{};                       // stalls were counted up to this time
    bool in_slice_ = false;                   // since then, as stalled_
    bool stalled_ = false;
};

}  // namespace cairn::scalerpc
