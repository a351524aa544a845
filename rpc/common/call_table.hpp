// The calls of a client, from post to completion: their ids, deadlines, results, and those that wait to be sent.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/base/assert.hpp"
#include "lib/telemetry/counters.hpp"
#include "lib/telemetry/histogram.hpp"
#include "rpc/common/call.hpp"
#include "rpc/common/deadlines.hpp"
#include "rpc/common/request_types.hpp"

namespace cairn::rpc {

constexpr std::uint32_t kCallsMax = 1U << 24U;

// Calls of one session that wait for a place to be sent from, oldest first. Kept by the session, changed by CallTable.
struct Backlog {
    std::uint32_t oldest = kNone;
    std::uint32_t newest = kNone;

    [[nodiscard]] bool empty() const noexcept { return oldest == kNone; }
};

// A fixed number of entries; an entry is named by its index. One thread's. An RPC system keeps the index where it sends
// the call from (a slot, say), and asks the table for the rest. Nothing here allocates but keep_latency().
class CallTable {
public:
    static constexpr std::uint8_t kNoSlot = 0xff;

    // `failed` counts the calls that end otherwise than with Ok; it outlives the table.
    CallTable(std::uint32_t calls_max, telemetry::Counter& failed);

    [[nodiscard]] bool is_full() const noexcept { return free_ == kNone; }
    // A new entry, which is in no backlog, and in this slot if any. The table is not full (asserted).
    [[nodiscard]] std::uint32_t add(const Call& call, SessionId session, std::uint8_t slot = kNoSlot) noexcept {
        CAIRN_ASSERT(!is_full());
        const std::uint32_t index = free_;
        Entry& entry = entries_[index];
        free_ = entry.next;
        keep(entry.call, call);
        entry.used = true;
        entry.session = session.value;
        entry.slot = slot;
        ++pending_;
        if (call.deadline < Instant::never()) [[unlikely]] {
            watch_deadline(entry, index);
        }
        return index;
    }
    [[nodiscard]] CallId id_of(std::uint32_t index) const noexcept {
        return (std::uint64_t{entries_[index].generation} << 32U) | (index + 1U);
    }
    // kNone: there is no such call, or it has ended.
    [[nodiscard]] std::uint32_t find(CallId id) const noexcept;
    [[nodiscard]] const Call& operator[](std::uint32_t index) const noexcept { return entries_[index].call; }
    [[nodiscard]] SessionId session_of(std::uint32_t index) const noexcept {
        return SessionId{entries_[index].session};
    }
    // kNoSlot: the call waits in the backlog.
    [[nodiscard]] std::uint8_t slot_of(std::uint32_t index) const noexcept { return entries_[index].slot; }
    void put_into_slot(std::uint32_t index, std::uint32_t slot) noexcept {
        entries_[index].slot = static_cast<std::uint8_t>(slot);
    }

    void join(Backlog& backlog, std::uint32_t index) noexcept;
    void leave(Backlog& backlog, std::uint32_t index) noexcept;
    [[nodiscard]] std::uint32_t size_of(const Backlog& backlog) const noexcept;

    // Ends a call that is in no backlog: frees the entry, then runs the completion, which may post. A response that
    // does not fit into the call's own buffer ends it with ResponseTooLong.
    void finish(std::uint32_t index, CallStatus status, std::span<const std::uint8_t> response,
                Duration latency) noexcept;
    // Tells end(index) of each call whose deadline has passed; end() ends it.
    // mutants: rpc-call-table-end-overdue
    template <class End>
    void end_overdue(Instant now, End&& end) noexcept {
        deadlines_.advance(now, [this, now, &end](std::uint32_t index) {
            Entry& entry = entries_[index];
            if (entry.call.deadline <= now) {
                end(index);
            } else {
                entry.deadline = deadlines_.insert(index, entry.call.deadline);
            }
        });
    }
    // When end_overdue() has something to do. Instant::never() without deadlines.
    [[nodiscard]] Instant next_deadline() const noexcept { return deadlines_.next_due(); }
    // Tells end(index) of each call that asked to be completed when its endpoint ends.
    template <class End>
    void end_awaited(End&& end) noexcept {
        for (std::uint32_t i = 0; i < entries_.size(); ++i) {
            if (entries_[i].used && entries_[i].call.ends_with_endpoint) {
                end(i);
            }
        }
    }
    [[nodiscard]] std::uint32_t pending() const noexcept { return pending_; }

    // Keeps a histogram of the latencies (ns) of the calls of this type that end with Ok from now on. Allocates it.
    void keep_latency(std::uint8_t type) {
        latencies_ns_[type] = std::make_unique<telemetry::Histogram>();
        keeps_latencies_ = true;
    }
    // nullptr: it is not kept.
    [[nodiscard]] const telemetry::Histogram* latency_ns(std::uint8_t type) const noexcept {
        return latencies_ns_[type].get();
    }

private:
    struct Entry {
        Call call;
        std::uint32_t generation = 0;
        std::uint32_t next = kNone;      // backlog or free list
        std::uint32_t previous = kNone;  // backlog
        std::uint16_t session = 0;
        std::uint8_t slot = kNoSlot;
        bool used = false;
        Deadlines::Handle deadline{};  // empty: there is none
    };
    void watch_deadline(Entry& entry, std::uint32_t index) noexcept;
    void forget_deadline(Entry& entry) noexcept;
    void record(std::uint8_t type, Duration latency) noexcept;
    static void keep(Call& kept, const Call& call) noexcept;
    [[nodiscard]] static CallStatus take_response(MsgBuffer& into, std::span<const std::uint8_t>& response) noexcept;

    std::vector<Entry> entries_;
    std::uint32_t free_ = kNone;
    std::uint32_t pending_ = 0;
    telemetry::Counter& failed_;
    Deadlines deadlines_;
    bool keeps_latencies_ = false;  // of some type
    std::array<std::unique_ptr<telemetry::Histogram>, kRequestTypes> latencies_ns_;
};

// Field by field: the whole struct was written piece by piece just now and would not be forwarded.
inline void CallTable::keep(Call& kept, const Call& call) noexcept {
    kept.type = call.type;
    kept.request = call.request;
    kept.response = call.response;
    kept.completion = call.completion;
    kept.context = call.context;
    kept.tag = call.tag;
    kept.deadline = call.deadline;
    kept.ends_with_endpoint = call.ends_with_endpoint;
}

inline void CallTable::finish(std::uint32_t index, CallStatus status, std::span<const std::uint8_t> response,
                              Duration latency) noexcept {
    Entry& entry = entries_[index];
    const Call& call = entry.call;
    --pending_;
    if (entry.deadline) [[unlikely]] {
        forget_deadline(entry);
    }
    if (call.response != nullptr && status == CallStatus::Ok) {
        status = take_response(*call.response, response);
    }
    if (status != CallStatus::Ok) [[unlikely]] {
        ++failed_;
    } else if (keeps_latencies_) [[unlikely]] {
        record(call.type, latency);
    }
    // The completion may post, which takes this very entry: all that it needs is copied.
    const CallResult result{status, response, latency, call.tag};
    const Completion completion = call.completion;
    void* const context = call.context;
    entry.used = false;
    ++entry.generation;
    entry.next = free_;
    free_ = index;
    if (completion != nullptr) [[likely]] {
        completion(context, result);
    }
}

}  // namespace cairn::rpc
