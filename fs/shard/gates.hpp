// Locks of changes at several shards, and the calls that wait for them.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <coroutine>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fs/rules/ids.hpp"
#include "fs/shard/kept_call.hpp"

namespace cairn::fs {

// The object that is locked. It is a name of a directory, a file (without a name), or a directory whose attributes are
// asked for. It may also be the whole shard's room for changes that give space back.
struct Gate {
    enum class Kind : std::uint8_t { Name, File, Attributes, Room };
    Kind kind = Kind::Name;
    FileId file{};
    std::string name{};

    friend bool operator==(const Gate&, const Gate&) = default;
    template <class Hash>
    friend Hash AbslHashValue(Hash hash, const Gate& gate) {
        return Hash::combine(std::move(hash), gate.kind, gate.file.place, gate.file.random, gate.name);
    }
};

class Gates {
public:
    static constexpr Duration kTimeout = seconds(10);

    [[nodiscard]] bool any() const noexcept { return !closed_.empty(); }
    [[nodiscard]] bool is_open(const Gate& gate) const { return closed_.empty() || !closed_.contains(gate); }
    // True if a gate of a name in this directory is closed.
    [[nodiscard]] bool any_name_of(const FileId& directory) const;
    // Closes a gate, which is open (asserted).
    void close(const Gate& gate);
    // Opens a gate. Its waiting calls and coroutines go on in the next take_ready().
    void open(const Gate& gate);

    // Keeps a call until the gate opens, and then makes it again. The gate is closed (asserted).
    void park(const Gate& gate, KeptCall call, Instant now);
    // co_await opened(gate) returns when the gate is open. The gate may be closed again by then.
    class Opened {
    public:
        Opened(Gates& gates, Gate gate) : gates_(gates), gate_(std::move(gate)) {}
        [[nodiscard]] bool await_ready() const { return gates_.is_open(gate_); }
        void await_suspend(std::coroutine_handle<> waiter) { gates_.closed_.at(gate_).coroutines.push_back(waiter); }
        void await_resume() const noexcept {}

    private:
        Gates& gates_;
        Gate gate_;
    };
    [[nodiscard]] Opened opened(const Gate& gate) { return {*this, gate}; }

    // Makes the call again in this turn.
    void again(KeptCall call) { ready_.emplace_back(std::move(call)); }

    using Ready = std::variant<KeptCall, std::coroutine_handle<>>;
    // Returns the next call or coroutine that need not wait any more.
    [[nodiscard]] std::optional<Ready> take_ready();
    // Takes the calls that have waited too long.
    [[nodiscard]] std::vector<KeptCall> take_expired(Instant now);
    [[nodiscard]] Instant next_deadline() const noexcept {
        return parked_.empty() ? Instant::never() : parked_.front().due;
    }

private:
    struct Waiting {
        std::vector<std::uint64_t> calls{};  // their numbers in waiting_
        std::vector<std::coroutine_handle<>> coroutines{};
    };
    struct Parked {
        Instant due{};
        std::uint64_t number = 0;
    };

    absl::flat_hash_map<Gate, Waiting> closed_;
    absl::flat_hash_map<std::uint64_t, KeptCall, IdHash> calls_;
    std::deque<Parked> parked_;  // oldest first
    std::deque<Ready> ready_;
    std::uint64_t last_number_ = 0;
};

}  // namespace cairn::fs
