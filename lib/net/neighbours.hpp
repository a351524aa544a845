// Who on the link has which MAC address: asking, asking again, ageing. No I/O: questions are drawn, answers fed in.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/time.hpp"
#include "lib/net/address.hpp"

namespace cairn::net {

// Waits between questions double from the first to the longest (RFC 4861, 10 has one second; a data centre
// answers in microseconds, and someone waits).
constexpr Duration kAskFirst = milliseconds(100);
constexpr Duration kAskLongest = seconds(1);
constexpr std::uint8_t kAskTries = 10;             // without an answer: nobody is there, until wanted again
constexpr Duration kNeighbourFresh = seconds(30);  // REACHABLE_TIME: then it is asked whether it is still there
constexpr std::uint8_t kConfirmTries = 3;          // to its own MAC; then it is asked for as a stranger
constexpr Duration kChangeLeast = seconds(1);      // a MAC that changes more often is two stations

// Whether what a station says of itself replaces a MAC already known (RFC 4861, 4.4, the override flag).
enum class Override : std::uint8_t { No, Yes };

// One thread. Fixed capacity, allocated at construction. When it is full, an entry makes room that is not being asked
// for: one that nobody answered for, else the one confirmed longest ago. While all are being asked for there is no
// room, so that each question ends. Strangers get no entry by talking.
class NeighbourTable {
public:
    explicit NeighbourTable(std::uint32_t capacity = 1024) : capacity_(capacity) { entries_.reserve(capacity); }

    // Someone wants to send there: the MAC, or nothing while it is asked for, or while there is no room.
    [[nodiscard]] std::optional<MacAddress> resolve(const IpAddress& address, Instant now) noexcept;
    // The MAC if it is known; nobody asks for it.
    [[nodiscard]] std::optional<MacAddress> known(const IpAddress& address) const noexcept;

    // True when it was asked for in vain: nobody on the link has this address.
    [[nodiscard]] bool is_nobody(const IpAddress& address) const noexcept;

    // The station itself said so. Entries are made by resolve() alone.
    enum class Learnt : std::uint8_t { NotWanted, Confirmed, Changed, TooFrequent, Doubted };
    Learnt learn(const IpAddress& address, const MacAddress& mac, Instant now,
                 Override replaces = Override::Yes) noexcept;

    // The first deadline that learn() set since the last call, without a walk through the table; never: none.
    [[nodiscard]] Instant poll_planned() noexcept { return std::exchange(planned_, Instant::never()); }

    struct Question {
        IpAddress address{};
        std::optional<MacAddress> to{};  // nothing: whom it may concern
    };
    // The next question that is due; call until there is none.
    [[nodiscard]] std::optional<Question> poll_question(Instant now) noexcept;
    [[nodiscard]] Instant next_deadline() const noexcept;

    struct Change {
        IpAddress address{};
        std::optional<MacAddress> mac{};  // nothing: gone
    };
    // What changed since the last call; call until there is nothing.
    [[nodiscard]] std::optional<Change> poll_change() noexcept;

    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

private:
    enum class State : std::uint8_t { Asking, Fresh, Confirming, Failed };
    struct Entry {
        IpAddress address{};
        MacAddress mac{};
        State state = State::Asking;
        std::uint8_t tries = 0;
        bool changed = false;
        Instant due{};        // the next question, or the end of freshness
        Instant confirmed{};  // last answer
        Instant mac_since{};  // last change of the MAC

        [[nodiscard]] bool has_mac() const noexcept { return state == State::Fresh || state == State::Confirming; }
    };
    [[nodiscard]] std::vector<Entry>::iterator place_of(const IpAddress& address) noexcept;
    [[nodiscard]] Entry* find(const IpAddress& address) noexcept;
    [[nodiscard]] Entry* make(const IpAddress& address, Instant now) noexcept;
    [[nodiscard]] bool make_room() noexcept;
    void plan(Entry& entry, Instant due) noexcept;
    void ask_anew(Entry& entry, Instant now) noexcept;
    void note_change(Entry& entry) noexcept;
    [[nodiscard]] std::optional<Question> ask(Entry& entry, Instant now) noexcept;

    std::uint32_t capacity_;
    std::vector<Entry> entries_;  // by address
    std::size_t next_ = 0;        // to be looked at for a question
    std::size_t changes_ = 0;     // entries that changed
    Instant planned_ = Instant::never();
};

}  // namespace cairn::net
