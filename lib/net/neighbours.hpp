// Which station of the link has which MAC address: questions, repeated questions, ageing. It does no I/O: the caller
// polls the questions and feeds in the answers.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/time.hpp"
#include "lib/net/address.hpp"

namespace cairn::net {

// The wait between questions doubles from the first to the longest. RFC 4861, 10 has one second. A data centre answers
// in microseconds, and a caller is waiting.
constexpr Duration kAskFirst = milliseconds(100);
constexpr Duration kAskLongest = seconds(1);
constexpr std::uint8_t kAskTries = 10;             // without an answer; the entry then fails until it is wanted again
constexpr Duration kNeighbourFresh = seconds(30);  // REACHABLE_TIME; after it the station is asked for confirmation
constexpr std::uint8_t kConfirmTries = 3;          // questions to the known MAC; then the address is asked for anew
constexpr Duration kChangeLeast = seconds(1);      // two changes within this time come from two stations

// Says if a station's own message replaces a MAC that is already known (RFC 4861, 4.4, the override flag).
enum class Override : std::uint8_t { No, Yes };

// Belongs to one thread. The capacity is fixed and allocated at construction. A full table replaces an entry that is
// not being asked for: a failed one first, else the one confirmed longest ago. While all entries are being asked for
// there is no room, so that each question comes to an end. Messages of unknown stations make no entry.
class NeighbourTable {
public:
    explicit NeighbourTable(std::uint32_t capacity = 1024) : capacity_(capacity) { entries_.reserve(capacity); }

    // Returns the MAC for a sender. Returns nullopt while the question is under way, or if there is no room for it.
    [[nodiscard]] std::optional<MacAddress> resolve(const IpAddress& address, Instant now) noexcept;
    // Returns the MAC if it is known, and asks no question.
    [[nodiscard]] std::optional<MacAddress> known(const IpAddress& address) const noexcept;

    // Returns true if the questions for the address stayed without an answer: no station of the link has it.
    [[nodiscard]] bool is_nobody(const IpAddress& address) const noexcept;

    // Learns the MAC that a station announced itself. Only resolve() makes entries.
    enum class Learnt : std::uint8_t { NotWanted, Confirmed, Changed, TooFrequent, Doubted };
    Learnt learn(const IpAddress& address, const MacAddress& mac, Instant now,
                 Override replaces = Override::Yes) noexcept;

    // Returns the earliest deadline that learn() set since the last call, without a walk through the table; never, if
    // it set none.
    [[nodiscard]] Instant poll_planned() noexcept { return std::exchange(planned_, Instant::never()); }

    struct Question {
        IpAddress address{};
        std::optional<MacAddress> to{};  // nullopt: broadcast or multicast
    };
    // Returns the next due question. The caller calls until it gets nullopt.
    [[nodiscard]] std::optional<Question> poll_question(Instant now) noexcept;
    [[nodiscard]] Instant next_deadline() const noexcept;

    struct Change {
        IpAddress address{};
        std::optional<MacAddress> mac{};  // nullopt: the MAC was lost
    };
    // Returns an entry that changed since the last call. The caller calls until it gets nullopt.
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
        Instant due{};        // of the next question, or of the end of freshness
        Instant confirmed{};  // time of the last answer
        Instant mac_since{};  // time of the last change of the MAC

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
    std::vector<Entry> entries_;  // sorted by address
    std::size_t next_ = 0;        // the entry that poll_question() looks at next
    std::size_t changes_ = 0;     // number of changed entries
    Instant planned_ = Instant::never();
};

}  // namespace cairn::net
