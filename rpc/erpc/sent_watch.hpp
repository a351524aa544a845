// Which sessions have requests on their way, and which of these requests count as lost.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "rpc/erpc/session_table.hpp"

namespace cairn::erpc {

// Sending a request costs a look at a flag, and an answer costs nothing. A scan finds losses by looking at the
// sessions.
class SentWatch {
public:
    explicit SentWatch(SessionTable& sessions) : sessions_(sessions) {
        watched_.reserve(sessions.capacity());
        overdue_.reserve(kResendsPerScan);
    }

    // Notes that something of the session was sent. `client`: the session's client part.
    void note_sent(const Session& session, ClientSession& client, Instant now) noexcept {
        if (!client.watched) [[unlikely]] {
            watch(session, client, now);
        }
    }
    // Forgets a session that ends.
    void forget(const Session& session) noexcept { std::erase(watched_, session.self); }

    // Calls resend(session, slot) for each slot whose request counts as lost. Requests of all sessions come in the
    // order of their age; among requests of the same age, sessions with fewer requests come first. So a request that a
    // server put off for want of memory asks again before busy sessions take that memory.
    template <class Resend>
    void scan(Instant now, Resend&& resend) noexcept {
        if (now < next_) {
            return;
        }
        find_overdue(now);
        for (const Overdue& lost : overdue_) {
            Session& session = sessions_[lost.session];
            ClientSlot& slot = session.client->slots[lost.slot];
            // Otherwise the slot was served when another one gave up its credit.
            if (slot.last_sent == lost.last_sent && slot.state != SlotState::Yielded) {
                resend(session, slot);
            }
        }
    }
    // Returns the time before which nothing counts as lost.
    [[nodiscard]] Instant next() const noexcept { return next_; }

private:
    struct Overdue {
        Instant last_sent;
        std::uint8_t free_slots;  // the session's
        SessionId session;
        std::uint8_t slot;

        [[nodiscard]] std::pair<std::int64_t, int> place() const noexcept { return {last_sent.ns, -free_slots}; }
    };

    void watch(const Session& session, ClientSession& client, Instant now) noexcept;
    void find_overdue(Instant now) noexcept;
    [[nodiscard]] Instant look_at(const Session& session, Instant now) noexcept;

    SessionTable& sessions_;
    std::vector<SessionId> watched_;  // all sessions with packets on their way, and some without
    std::vector<Overdue> overdue_;    // slots of the scan under way
    Instant next_ = Instant::never();
};

}  // namespace cairn::erpc
