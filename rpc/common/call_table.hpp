// The calls of a client from post to completion: ids, deadlines, results, and calls that wait to be sent.
#pragma once

#include <algorithm>
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

// The calls of one session that wait for a slot, oldest first. The session keeps the backlog; CallTable changes it.
struct Backlog {
    std::uint32_t oldest = kNone;
    std::uint32_t newest = kNone;

    [[nodiscard]] bool empty() const noexcept { return oldest == kNone; }
};

// A table of a fixed number of calls, for one thread. An index names a call. An RPC system keeps only the index, for
// instance in a slot, and asks the table for the rest. After construction only keep_latency() allocates.
class CallTable {
public:
    static constexpr std::uint8_t kNoSlot = 0xff;

    // Makes the table. `failed` counts the calls that do not end with Ok. It outlives the table.
    CallTable(std::uint32_t calls_max, telemetry::Counter& failed);

    [[nodiscard]] bool is_full() const noexcept { return free_ == kNone; }
    // Adds a call that is posted now, and returns its index. The call is in no backlog. The table is not full
    // (asserted).
    [[nodiscard]] std::uint32_t add(const Call& call, SessionId session, Instant now,
                                    std::uint8_t slot = kNoSlot) noexcept {
        CAIRN_ASSERT(!is_full());
        const std::uint32_t index = free_;
        Entry& entry = entries_[index];
        free_ = entry.next;
        keep(entry.call, call);
        entry.used = true;
        entry.posted = now;
        entry.session = session;
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
    // Returns the index of the call, or kNone if there is no such call or it has ended.
    [[nodiscard]] std::uint32_t find(CallId id) const noexcept;
    [[nodiscard]] const Call& operator[](std::uint32_t index) const noexcept { return entries_[index].call; }
    [[nodiscard]] SessionId session_of(std::uint32_t index) const noexcept { return entries_[index].session; }
    // Returns the call's slot, or kNoSlot if it waits in the backlog.
    [[nodiscard]] std::uint8_t slot_of(std::uint32_t index) const noexcept { return entries_[index].slot; }
    void put_into_slot(std::uint32_t index, std::uint32_t slot) noexcept {
        entries_[index].slot = static_cast<std::uint8_t>(slot);
    }

    void join(Backlog& backlog, std::uint32_t index) noexcept;
    void leave(Backlog& backlog, std::uint32_t index) noexcept;
    [[nodiscard]] std::uint32_t size_of(const Backlog& backlog) const noexcept;

    // Ends a call that is in no backlog. Frees the entry, then runs the completion, which may post. If the response
    // does not fit into the call's own buffer, the call ends with ResponseTooLong.
    void finish(std::uint32_t index, CallStatus status, std::span<const std::uint8_t> response, Instant now) noexcept;
    // Calls end(index) for each call whose deadline has passed; end() ends that call.
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
    // Returns when end_overdue() has something to do, or Instant::never() without deadlines.
    [[nodiscard]] Instant next_deadline() const noexcept { return deadlines_.next_due(); }
    // Calls end(index) for each call that asked to be completed when its endpoint ends.
    template <class End>
    void end_awaited(End&& end) noexcept {
        for (std::uint32_t i = 0; i < entries_.size(); ++i) {
            if (entries_[i].used && entries_[i].call.ends_with_endpoint) {
                end(i);
            }
        }
    }
    [[nodiscard]] std::uint32_t pending() const noexcept { return pending_; }

    // Allocates a histogram. It takes the latencies (ns) of calls of this type that end with Ok from now on.
    void keep_latency(std::uint8_t type) {
        latencies_ns_[type] = std::make_unique<telemetry::Histogram>();
        keeps_latencies_ = true;
    }
    // Returns the histogram, or nullptr if none is kept for this type.
    [[nodiscard]] const telemetry::Histogram* latency_ns(std::uint8_t type) const noexcept {
        return latencies_ns_[type].get();
    }

private:
    struct Entry {
        Call call;
        Instant posted{};
        std::uint32_t generation = 0;
        std::uint32_t next = kNone;      // backlog or free list
        std::uint32_t previous = kNone;  // backlog
        SessionId session{};
        std::uint8_t slot = kNoSlot;
        bool used = false;
        Deadlines::Handle deadline{};  // empty: the call has no deadline
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
    bool keeps_latencies_ = false;  // some type has a histogram
    std::array<std::unique_ptr<telemetry::Histogram>, kRequestTypes> latencies_ns_;
};

// Copies field by field: the caller has just stored the fields one by one, and wider loads could not be forwarded.
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
                              Instant now) noexcept {
    Entry& entry = entries_[index];
    const Call& call = entry.call;
    Duration latency = now - entry.posted;
    --pending_;
    if (entry.deadline) [[unlikely]] {
        forget_deadline(entry);
    }
    if (call.response != nullptr && status == CallStatus::Ok) {
        status = take_response(*call.response, response);
    }
    if (status != CallStatus::Ok) [[unlikely]] {
        latency = std::max(latency, Duration{});  // a program may post with a later time than the turn's
        ++failed_;
    } else if (keeps_latencies_) [[unlikely]] {
        record(call.type, latency);
    }
    // The completion may post a call that takes this very entry, so everything it needs is copied first.
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
