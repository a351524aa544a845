#include "rpc/erpc/sent_watch.hpp"

namespace cairn::erpc {

void SentWatch::watch(const Session& session, ClientSession& client, Instant now) noexcept {
    client.watched = true;
    watched_.push_back(session.self);  // reserved for every session: never grows
    next_ = std::min(next_, now + kRtoMin);
}

void SentWatch::find_overdue(Instant now) noexcept {
    overdue_.clear();
    next_ = Instant::never();
    std::erase_if(watched_, [this, now](SessionId id) {
        const Instant next = look_at(sessions_[id], now);
        next_ = std::min(next_, next);
        sessions_[id].client->watched = next != Instant::never();
        return next == Instant::never();
    });
    std::sort(overdue_.begin(), overdue_.end(),
              [](const Overdue& one, const Overdue& other) { return one.place() < other.place(); });
}

// Notes the session's slots that count as lost. Returns when to look again, or Instant::never() if none of its packets
// is on its way.
Instant SentWatch::look_at(const Session& session, Instant now) noexcept {
    const ClientSession& client = *session.client;
    const auto free_slots = static_cast<std::uint8_t>(std::popcount(client.in(SlotState::Free)));
    // A request that the server may have put off gives up its credit after a first timeout if others wait for it. The
    // server holds memory for the others, and gives them up before a doubled timeout ends. A message that the server
    // has in part was not put off.
    const bool others_wait = client.stalled_under_way() != 0;
    Instant next = Instant::never();
    for (const ClientSlot& slot : client.slots) {
        if (!slot.may_be_known() || slot.state == SlotState::Yielded) {
            continue;
        }
        const bool gives_way = others_wait && !slot.is_under_way();
        const Instant due = slot.last_sent + client.rto(gives_way ? std::uint8_t{1} : slot.sends);
        if (due <= now && overdue_.size() < kResendsPerScan) {
            overdue_.push_back({slot.last_sent, free_slots, session.self, static_cast<std::uint8_t>(slot.index())});
        }
        // Round trips that are measured meanwhile may shorten the timeout.
        next = std::min({next, std::max(due, now + kScanInterval), now + kRtoMin});
    }
    return next;
}

}  // namespace cairn::erpc
