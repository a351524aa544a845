#include "lib/net/neighbours.hpp"

#include <algorithm>

namespace cairn::net {

namespace {

// 100, 200, 400 ms ... the longest.
Duration wait_after(std::uint8_t tries) noexcept {
    Duration wait = kAskFirst;
    for (std::uint8_t i = 1; i < tries && wait < kAskLongest; ++i) {
        wait = wait * 2;
    }
    return std::min(wait, kAskLongest);
}

}  // namespace

NeighbourTable::Entry* NeighbourTable::find(const IpAddress& address) noexcept {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&address](const Entry& entry) { return entry.address == address; });
    return found == entries_.end() ? nullptr : &*found;
}

NeighbourTable::Entry& NeighbourTable::make(const IpAddress& address) noexcept {
    if (entries_.size() < capacity_) {
        entries_.emplace_back();
    } else {
        auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                       [](const Entry& a, const Entry& b) { return a.confirmed < b.confirmed; });
        std::swap(*oldest, entries_.back());
        entries_.back() = {};
    }
    entries_.back().address = address;
    return entries_.back();
}

void NeighbourTable::ask_anew(Entry& entry, Instant now) noexcept {
    entry.state = State::Asking;
    entry.tries = 0;
    entry.due = now;
}

std::optional<MacAddress> NeighbourTable::resolve(const IpAddress& address, Instant now) noexcept {
    Entry* entry = find(address);
    if (entry == nullptr) {
        entry = &make(address);
        entry->confirmed = now;
        ask_anew(*entry, now);
    } else if (entry->state == State::Failed) {
        ask_anew(*entry, now);
    }
    const bool known = entry->state == State::Fresh || entry->state == State::Confirming;
    return known ? std::optional(entry->mac) : std::nullopt;
}

NeighbourTable::Learnt NeighbourTable::learn(const IpAddress& address, const MacAddress& mac, Instant now) noexcept {
    Entry* entry = find(address);
    if (entry == nullptr) {
        return Learnt::NotWanted;
    }
    const bool had_one = entry->state == State::Fresh || entry->state == State::Confirming;
    const bool other = !had_one || entry->mac != mac;
    if (had_one && other && now - entry->mac_since < kChangeLeast) {
        return Learnt::TooFrequent;
    }
    entry->state = State::Fresh;
    entry->mac = mac;
    entry->tries = 0;
    entry->confirmed = now;
    entry->due = now + kNeighbourFresh;
    if (!other) {
        return Learnt::Confirmed;
    }
    entry->mac_since = now;
    entry->changed = true;
    return Learnt::Changed;
}

std::optional<NeighbourTable::Question> NeighbourTable::poll_question(Instant now) noexcept {
    for (Entry& entry : entries_) {
        while (entry.state != State::Failed && entry.due <= now) {
            if (const std::optional<Question> question = ask(entry, now)) {
                return question;
            }
        }
    }
    return std::nullopt;
}

// One step of an entry that is due: a question, or a change of state.
std::optional<NeighbourTable::Question> NeighbourTable::ask(Entry& entry, Instant now) noexcept {
    switch (entry.state) {
        case State::Fresh:
            entry.state = State::Confirming;
            entry.tries = 0;
            return std::nullopt;
        case State::Confirming:
            if (entry.tries == kConfirmTries) {
                entry.changed = true;  // its MAC holds no longer
                ask_anew(entry, now);
                return std::nullopt;
            }
            entry.due = now + wait_after(++entry.tries);
            return Question{entry.address, entry.mac};
        case State::Asking:
            if (entry.tries == kAskTries) {
                entry.state = State::Failed;
                return std::nullopt;
            }
            entry.due = now + wait_after(++entry.tries);
            return Question{entry.address, std::nullopt};
        case State::Failed:
            break;
    }
    return std::nullopt;
}

Instant NeighbourTable::next_deadline() const noexcept {
    Instant first = Instant::never();
    for (const Entry& entry : entries_) {
        first = entry.state == State::Failed ? first : std::min(first, entry.due);
    }
    return first;
}

std::optional<NeighbourTable::Change> NeighbourTable::poll_change() noexcept {
    for (Entry& entry : entries_) {
        if (entry.changed) {
            entry.changed = false;
            const bool known = entry.state == State::Fresh || entry.state == State::Confirming;
            return Change{entry.address, known ? std::optional(entry.mac) : std::nullopt};
        }
    }
    return std::nullopt;
}

}  // namespace cairn::net
