// Requests and answers through the segment.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "fs/channel/client_end.hpp"
#include "fs/channel/shard_end.hpp"
#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"

namespace cairn::fs {

namespace {

// Returns the address of a sleeper's word.
std::uint32_t* futex_of(DoorbellWord& word) noexcept {
    static_assert(sizeof(word.asleep) == sizeof(std::uint32_t));
    return reinterpret_cast<std::uint32_t*>(&word.asleep);
}

constexpr int kLooks = 2000;  // how often a client looks before it sleeps
constexpr int kLooksAtOnce = 32;

}  // namespace

std::uint64_t ShardEnd::take_pending() noexcept {
    std::atomic<std::uint64_t>& pending = segment_.head().pending;
    if (pending.load(std::memory_order_relaxed) == 0) {
        return 0;
    }
    const std::uint64_t slots = ~std::uint64_t{0} >> (ChannelShape::kMostSlots - segment_.shape().slots);
    return pending.exchange(0, std::memory_order_acq_rel) & slots;
}

// Reads the length once, as everything else.
std::optional<std::span<const std::uint8_t>> ShardEnd::take(std::uint32_t slot) noexcept {
    if (breach_ != ChannelBreach::None) {
        return std::nullopt;
    }
    SlotHead& head = segment_.slot(slot);
    Slot& own = slots_[slot];
    const std::uint32_t asked = head.asked.load(std::memory_order_acquire);
    if (asked == own.taken) {
        return std::nullopt;
    }
    if (asked != own.taken + 1 || is_taken(slot)) {
        breach_ = ChannelBreach::BadCount;
        return std::nullopt;
    }
    const std::uint32_t bytes = std::atomic_ref(head.request_bytes).load(std::memory_order_relaxed);
    if (bytes > kRequestBytes) {
        breach_ = ChannelBreach::BadLength;
        return std::nullopt;
    }
    own.taken = asked;
    copy_bytes(own.request.data(), segment_.request(slot).data(), bytes);
    return std::span<const std::uint8_t>(own.request).first(bytes);
}

void ShardEnd::answer(std::uint32_t slot, std::span<const std::uint8_t> bytes) noexcept {
    CAIRN_ASSERT(is_taken(slot) && bytes.size() <= kAnswerBytes);
    SlotHead& head = segment_.slot(slot);
    copy_bytes(segment_.answer(slot).data(), bytes.data(), bytes.size());
    head.answer_bytes = static_cast<std::uint32_t>(bytes.size());
    slots_[slot].answered = slots_[slot].taken;
    head.answered.store(slots_[slot].answered, std::memory_order_release);
    DoorbellWord& sleeps = segment_.head().client_sleeps;
    if (sleeps.must_wake()) {
        syscall(SYS_futex, futex_of(sleeps), FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
}

std::optional<std::uint32_t> ClientEnd::take_slot() noexcept {
    for (std::uint32_t slot = 0; slot != segment_.shape().slots; ++slot) {
        if (uses_[slot] == Use::Free) {
            uses_[slot] = Use::Taken;
            return slot;
        }
    }
    return std::nullopt;
}

void ClientEnd::ask(std::uint32_t slot, std::uint32_t bytes) noexcept {
    CAIRN_ASSERT(uses_[slot] == Use::Taken && bytes <= kRequestBytes);
    SlotHead& head = segment_.slot(slot);
    std::atomic_ref(head.request_bytes).store(bytes, std::memory_order_relaxed);
    uses_[slot] = Use::Asked;
    head.asked.store(++asked_[slot], std::memory_order_release);
    segment_.head().pending.fetch_or(std::uint64_t{1} << slot, std::memory_order_acq_rel);
    (void)ring(segment_.head().shard_sleeps, shard_doorbell_);
}

std::optional<std::span<const std::uint8_t>> ClientEnd::answer(std::uint32_t slot) const noexcept {
    SlotHead& head = segment_.slot(slot);
    if (uses_[slot] != Use::Asked || head.answered.load(std::memory_order_acquire) != asked_[slot]) {
        return std::nullopt;
    }
    return std::span<const std::uint8_t>(segment_.answer(slot)).first(std::min(head.answer_bytes, kAnswerBytes));
}

void ClientEnd::give_back(std::uint32_t slot) noexcept {
    CAIRN_ASSERT(uses_[slot] == Use::Taken || answer(slot).has_value());
    uses_[slot] = Use::Free;
}

bool ClientEnd::any_answered() const noexcept {
    for (std::uint32_t slot = 0; slot != segment_.shape().slots; ++slot) {
        if (uses_[slot] == Use::Asked && answer(slot)) {
            return true;
        }
    }
    return false;
}

void ClientEnd::wait(Duration at_most) noexcept {
    for (int look = 0; look != kLooks; ++look) {
        if (any_answered()) {
            return;
        }
        if (look % kLooksAtOnce == kLooksAtOnce - 1) {
            sched_yield();  // the shard may need this CPU to answer
        } else {
            __builtin_ia32_pause();
        }
    }
    DoorbellWord& sleeps = segment_.head().client_sleeps;
    sleeps.begin_sleep();
    if (!any_answered()) {
        const timespec limit{at_most.ns / 1'000'000'000, at_most.ns % 1'000'000'000};
        syscall(SYS_futex, futex_of(sleeps), FUTEX_WAIT, 1, &limit, nullptr, 0);
    }
    sleeps.end_sleep();
}

}  // namespace cairn::fs
