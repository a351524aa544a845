#include "lib/net/neighbours.hpp"

#include <algorithm>

#include "lib/base/assert.hpp"

namespace cairn::net {

namespace {

// Returns 100, 200, 400 ms ... up to the longest wait.
Duration wait_after(std::uint8_t tries) noexcept {
    Duration wait = kAskFirst;
    for (std::uint8_t i = 1; i < tries && wait < kAskLongest; ++i) {
        wait = wait * 2;
    }
    return std::min(wait, kAskLongest);
}

}  // namespace

std::vector<NeighbourTable::Entry>::iterator NeighbourTable::place_of(const IpAddress& address) noexcept {
    return std::lower_bound(entries_.begin(), entries_.end(), address,
                            [](const Entry& entry, const IpAddress& wanted) { return entry.address < wanted; });
}

NeighbourTable::Entry* NeighbourTable::find(const IpAddress& address) noexcept {
    const auto place = place_of(address);
    return place == entries_.end() || place->address != address ? nullptr : &*place;
}

std::optional<MacAddress> NeighbourTable::known(const IpAddress& address) const noexcept {
    const Entry* const entry = const_cast<NeighbourTable*>(this)->find(address);
    return entry != nullptr && entry->has_mac() ? std::optional(entry->mac) : std::nullopt;
}

bool NeighbourTable::is_nobody(const IpAddress& address) const noexcept {
    const Entry* const entry = const_cast<NeighbourTable*>(this)->find(address);
    return entry != nullptr && entry->state == State::Failed;
}

// Returns nullptr if there is no room.
NeighbourTable::Entry* NeighbourTable::make(const IpAddress& address, Instant now) noexcept {
    if (entries_.size() == capacity_ && !make_room()) {
        return nullptr;
    }
    Entry entry;
    entry.address = address;
    entry.confirmed = now;
    ask_anew(entry, now);
    return &*entries_.insert(place_of(address), entry);
}

bool NeighbourTable::make_room() noexcept {
    const auto rank = [](const Entry& entry) {  // the entry of the lowest rank goes first
        return entry.state == State::Failed ? 0 : entry.state == State::Asking ? 2 : 1;
    };
    const auto least = std::min_element(entries_.begin(), entries_.end(), [&rank](const Entry& a, const Entry& b) {
        return rank(a) != rank(b) ? rank(a) < rank(b) : a.confirmed < b.confirmed;
    });
    if (least->state == State::Asking) {
        return false;
    }
    changes_ -= least->changed ? 1U : 0U;
    entries_.erase(least);
    return true;
}

void NeighbourTable::note_change(Entry& entry) noexcept {
    changes_ += entry.changed ? 0U : 1U;
    entry.changed = true;
}

void NeighbourTable::ask_anew(Entry& entry, Instant now) noexcept {
    entry.state = State::Asking;
    entry.tries = 0;
    entry.due = now;
}

std::optional<MacAddress> NeighbourTable::resolve(const IpAddress& address, Instant now) noexcept {
    Entry* const entry = find(address);
    if (entry == nullptr) {
        (void)make(address, now);
        return std::nullopt;
    }
    if (entry->state == State::Failed) {
        ask_anew(*entry, now);
    }
    return entry->has_mac() ? std::optional(entry->mac) : std::nullopt;
}

NeighbourTable::Learnt NeighbourTable::learn(const IpAddress& address, const MacAddress& mac, Instant now,
                                             Override replaces) noexcept {
    Entry* const entry = find(address);
    if (entry == nullptr) {
        return Learnt::NotWanted;
    }
    const bool other = !entry->has_mac() || entry->mac != mac;
    if (entry->has_mac() && other && replaces == Override::No) {  // RFC 4861, 7.2.5: the known MAC is confirmed first
        if (entry->state == State::Fresh) {
            plan(*entry, now);
        }
        return Learnt::Doubted;
    }
    if (entry->has_mac() && other && now - entry->mac_since < kChangeLeast) {
        return Learnt::TooFrequent;
    }
    entry->state = State::Fresh;
    entry->mac = mac;
    entry->tries = 0;
    entry->confirmed = now;
    plan(*entry, now + kNeighbourFresh);
    if (!other) {
        return Learnt::Confirmed;
    }
    entry->mac_since = now;
    note_change(*entry);
    return Learnt::Changed;
}

void NeighbourTable::plan(Entry& entry, Instant due) noexcept {
    entry.due = due;
    planned_ = std::min(planned_, due);
}

// Looks at the entries in turn, so that finding one due entry among many costs no more than finding the only one.
std::optional<NeighbourTable::Question> NeighbourTable::poll_question(Instant now) noexcept {
    for (std::size_t looked = 0; looked < entries_.size(); ++looked) {
        next_ = next_ < entries_.size() ? next_ : 0;
        Entry& entry = entries_[next_++];
        while (entry.state != State::Failed && entry.due <= now) {
            if (const std::optional<Question> question = ask(entry, now)) {
                return question;
            }
        }
    }
    return std::nullopt;
}

// Takes one step of a due entry: returns a question, or changes the state.
std::optional<NeighbourTable::Question> NeighbourTable::ask(Entry& entry, Instant now) noexcept {
    switch (entry.state) {
        case State::Fresh:
            entry.state = State::Confirming;
            entry.tries = 0;
            return std::nullopt;
        case State::Confirming:
            if (entry.tries == kConfirmTries) {
                note_change(entry);  // the MAC is no longer valid
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
    if (changes_ == 0) {
        return std::nullopt;
    }
    const auto changed = std::find_if(entries_.begin(), entries_.end(), [](const Entry& each) { return each.changed; });
    CAIRN_ASSERT(changed != entries_.end());
    changed->changed = false;
    --changes_;
    return Change{changed->address, changed->has_mac() ? std::optional(changed->mac) : std::nullopt};
}

}  // namespace cairn::net
