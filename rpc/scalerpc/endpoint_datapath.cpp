// A turn of an endpoint.
#include <algorithm>
#include <array>

#include "rpc/scalerpc/endpoint.hpp"

namespace cairn::scalerpc {

namespace {

constexpr Duration kPollInterval = microseconds(50);

}  // namespace

// Looks only at sessions whose peers have written, however many there are.
bool Endpoint::on_turn(Instant now) noexcept {
    const auto inside = guard_.enter();
    server_.keep_time(now);
    bool worked = links_->poll_events(serves(), now);
    take_completions(now);
    sessions_.take_written([this, now, &worked](Session& session) {
        if (!session.is_open()) {
            return;
        }
        if (session.guest) {
            worked = slices_.look_at(session, now, broken_) || worked;
        } else if (const std::optional<Breach> breach = client_.poll(session, now, worked)) {
            broken_.emplace_back(&session, *breach);
        }
    });
    client_.watch_stalls(now);
    worked = slices_.on_turn(now, broken_) || worked;
    end_broken(now);
    server_.jobs().on_turn(now);
    next_poll_ = now + kPollInterval;
    client_.end_overdue(now);
    if (probes_.is_due(now)) {
        look_for_silent(now);
    }
    if (config_.watch != nullptr) [[unlikely]] {
        config_.watch->on_taken();
    }
    return flush(now) || worked;
}

void Endpoint::take_completions(Instant now) noexcept {
    std::size_t count = 0;
    while ((count = peers_.sends().poll(done_)) != 0) {
        for (const verbs::Completion& completion : std::span(done_).first(count)) {
            take(completion, now);
        }
    }
}

// Takes a completion. Most requests complete without one. Reported are READs, long answers, probes and failures.
void Endpoint::take(const verbs::Completion& completion, Instant now) noexcept {
    Session* const session = sessions_.of_qp(completion.qpn);
    if (session == nullptr || session->state == rpc::LinkState::Ending) {
        return;
    }
    if (completion.status != verbs::CompletionStatus::Success) {
        links_->lose(*session, now);
        return;
    }
    session->heard = true;
    const auto kind = completion.wr_id >> 56U;
    if (completion.wr_id == rpc::Probes::kProbe) {
        rpc::Probes::on_answer(*session);
    } else if (kind == static_cast<std::uint8_t>(Work::LongAnswer)) {
        server_.answers().on_written(completion.wr_id & ~(std::uint64_t{0xff} << 56U));
    } else if (kind == static_cast<std::uint8_t>(Work::Fetch) && session->guest) {
        slices_.on_fetched(*session, now, broken_);
    }
}

void Endpoint::end_broken(Instant now) noexcept {
    for (const auto& [session, breach] : broken_) {
        if (session->state != rpc::LinkState::Ending) {
            statistics_.breaches.count(breach);
            links_->lose(*session, now);
        }
    }
    broken_.clear();
}

// Probes silent sessions. A WRITE of no bytes needs no key, so it also finds a server that died before its welcome.
void Endpoint::look_for_silent(Instant now) noexcept {
    sessions_.for_each([this, now](Session& session) {
        const bool welcome = session.caller && session.caller->is_welcome();
        const Grant at = session.guest ? session.peer.answers : welcome ? session.caller->entry_at() : Grant{};
        if (rpc::Probes::is_lost(session, at.rkey, at.address) || (session.guest && session.guest->is_stuck())) {
            links_->lose(session, now);
        }
    });
}

bool Endpoint::flush(Instant now) noexcept {
    const bool any = sessions_.any_listed();
    sessions_.relist_stalled();
    sessions_.take_listed([this, now](Session& session) {
        if (!session.is_open()) {
            return;
        }
        if (session.caller) {
            client_.flush(session, now);
        } else {
            server_.answers().flush(session, now);
        }
    });
    return any;
}

Instant Endpoint::next_deadline() const noexcept {
    if (sessions_.any_listed()) {
        return Instant{};
    }
    const Instant due = server_.wants_polling() ? next_poll_ : client_.calls().next_deadline();
    const Instant slice = std::min(due, slices_.next_deadline());
    return sessions_.count() == 0 ? slice : std::min(slice, probes_.next_look());
}

}  // namespace cairn::scalerpc
