// Who on the link has which MAC address: asking, asking again, ageing. No I/O: questions are drawn, answers fed in.
#pragma once

#include <cstdint>
#include <optional>
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

// One thread. Fixed capacity, allocated at construction; when it is full, the entry confirmed longest ago makes
// room. Strangers get no entry by talking.
class NeighbourTable {
public:
    explicit NeighbourTable(std::uint32_t capacity = 1024) : capacity_(capacity) { entries_.reserve(capacity); }

    // Someone wants to send there: the MAC, or nothing while it is asked for.
    [[nodiscard]] std::optional<MacAddress> resolve(const IpAddress& address, Instant now) noexcept;

    // The station itself said so. Entries are made by resolve() alone.
    enum class Learnt : std::uint8_t { NotWanted, Confirmed, Changed, TooFrequent };
    Learnt learn(const IpAddress& address, const MacAddress& mac, Instant now) noexcept;

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
    };
    [[nodiscard]] Entry* find(const IpAddress& address) noexcept;
    [[nodiscard]] Entry& make(const IpAddress& address) noexcept;
    void ask_anew(Entry& entry, Instant now) noexcept;
    [[nodiscard]] std::optional<Question> ask(Entry& entry, Instant now) noexcept;

    std::uint32_t capacity_;
    std::vector<Entry> entries_;
};

}  // namespace cairn::net
