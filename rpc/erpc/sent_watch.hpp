// Which sessions have requests on their way, and which of these count as lost.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "rpc/erpc/session_table.hpp"

namespace cairn::erpc {

// A request that leaves costs a look at a flag, an answer nothing; losses are found by looking at the sessions.
class SentWatch {
public:
    explicit SentWatch(SessionTable& sessions) : sessions_(sessions) {
        watched_.reserve(sessions.capacity());
        overdue_.reserve(kResendsPerScan);
    }

    // Something of the session was sent. `client`: its part.
    void note_sent(const Session& session, ClientSession& client, Instant now) noexcept {
        if (!client.watched) [[unlikely]] {
            watch(session, client, now);
        }
    }
    // The session ends.
    void forget(const Session& session) noexcept { std::erase(watched_, session.self); }

    // Tells resend(session, slot) of each slot that counts as lost: oldest first, whosever they are, then those of
    // sessions with few requests. So a request that a server put off for want of memory asks for it again before busy
    // sessions take it.
    template <class Resend>
    void scan(Instant now, Resend&& resend) noexcept {
        if (now < next_) {
            return;
        }
        find_overdue(now);
        for (const Overdue& lost : overdue_) {
            Session& session = sessions_[lost.session];
            ClientSlot& slot = session.client->slots[lost.slot];
            // Else it was sent again when another one gave its credit up.
            if (slot.last_sent == lost.last_sent && slot.state != SlotState::Yielded) {
                resend(session, slot);
            }
        }
    }
    // Nothing counts as lost before.
    [[nodiscard]] Instant next() const noexcept { return next_; }

private:
    struct Overdue {
        Instant last_sent;
        std::uint8_t free_slots;  // of its session
        SessionId session;
        std::uint8_t slot;

        [[nodiscard]] std::pair<std::int64_t, int> place() const noexcept { return {last_sent.ns, -free_slots}; }
    };

    void watch(const Session& session, ClientSession& client, Instant now) noexcept;
    void find_overdue(Instant now) noexcept;
    [[nodiscard]] Instant look_at(const Session& session, Instant now) noexcept;

    SessionTable& sessions_;
    std::vector<SessionId> watched_;  // those with something on its way, and some without
    std::vector<Overdue> overdue_;    // of the scan under way
    Instant next_ = Instant::never();
};

}  // namespace cairn::erpc
