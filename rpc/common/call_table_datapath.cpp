// The less frequent parts of the call table: backlogs, deadlines, cancellation, and copies of responses.
#include "lib/base/copy.hpp"
#include "rpc/common/call_table.hpp"

namespace cairn::rpc {

CallTable::CallTable(std::uint32_t calls_max, telemetry::Counter& failed)
    : entries_(calls_max), free_(0), failed_(failed), deadlines_(calls_max) {
    for (std::uint32_t i = 0; i < calls_max; ++i) {
        entries_[i].next = i + 1 < calls_max ? i + 1 : kNone;
    }
}

[[gnu::noinline]] void CallTable::watch_deadline(Entry& entry, std::uint32_t index) noexcept {
    entry.deadline = deadlines_.insert(index, entry.call.deadline);
}

[[gnu::noinline]] void CallTable::forget_deadline(Entry& entry) noexcept {
    deadlines_.cancel(entry.deadline);
    entry.deadline = {};
}

void CallTable::record(std::uint8_t type, Duration latency) noexcept {
    if (latencies_ns_[type] != nullptr) {
        latencies_ns_[type]->record(static_cast<std::uint64_t>(latency.ns));
    }
}

std::uint32_t CallTable::find(CallId id) const noexcept {
    const std::uint64_t index = (id & 0xffffffffU) - 1U;
    if (id == 0 || index >= entries_.size()) {
        return kNone;
    }
    const Entry& entry = entries_[index];
    const bool same = entry.used && entry.generation == static_cast<std::uint32_t>(id >> 32U);
    return same ? static_cast<std::uint32_t>(index) : kNone;
}

void CallTable::join(Backlog& backlog, std::uint32_t index) noexcept {
    Entry& entry = entries_[index];
    entry.previous = backlog.newest;
    entry.next = kNone;
    (backlog.empty() ? backlog.oldest : entries_[backlog.newest].next) = index;
    backlog.newest = index;
}

void CallTable::leave(Backlog& backlog, std::uint32_t index) noexcept {
    Entry& entry = entries_[index];
    (entry.previous == kNone ? backlog.oldest : entries_[entry.previous].next) = entry.next;
    (entry.next == kNone ? backlog.newest : entries_[entry.next].previous) = entry.previous;
    entry.next = entry.previous = kNone;
}

std::uint32_t CallTable::size_of(const Backlog& backlog) const noexcept {
    std::uint32_t size = 0;
    for (std::uint32_t index = backlog.oldest; index != kNone; index = entries_[index].next) {
        ++size;
    }
    return size;
}

// Copies the response into the caller's buffer. Afterwards `response` lies there.
CallStatus CallTable::take_response(MsgBuffer& into, std::span<const std::uint8_t>& response) noexcept {
    if (response.size() > into.capacity) {
        response = {};
        return CallStatus::ResponseTooLong;
    }
    if (response.data() != into.data) {  // otherwise the response was assembled there
        copy_bytes(into.data, response.data(), response.size());
    }
    into.bytes = static_cast<std::uint32_t>(response.size());
    response = into.span();
    return CallStatus::Ok;
}

}  // namespace cairn::rpc
