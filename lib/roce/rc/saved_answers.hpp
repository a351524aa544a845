// The answers that a responder still has to send, or keeps so that its peer can ask for them again (IBTA vol. 1, 9.7.4,
// 9.7.5).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "lib/base/assert.hpp"
#include "lib/base/types.hpp"
#include "lib/roce/qp/limits.hpp"
#include "lib/roce/qp/memory.hpp"
#include "lib/wire/opcode.hpp"

namespace cairn::roce::rc {

// The answer to a READ, atomic, ATOMIC WRITE or FLUSH that was executed. For a READ memory is read again each time, for
// an atomic the value that it found is kept. The other two are answered like a READ of no bytes (annex A19), as in
// Linux rxe.
struct SavedAnswer {
    enum class State : std::uint8_t {
        Sent,      // all of its packets were sent; also for an unused place
        Due,       // packets `next` ... `until` are still to be sent, for the first time
        DueAgain,  // as Due, but the peer asked for them once more
    };
    wire::Operation operation{};
    State state = State::Sent;
    Psn first{};  // of the original request
    Psn last{};
    Psn from{};  // READ: the PSN asked for last, whose response is a First or Only
    Psn next{};
    Psn until{};
    Msn msn{};
    Rkey rkey{};
    std::uint64_t address = 0;   // READ: of `first`
    std::uint32_t bytes = 0;     // READ: of the whole
    std::uint32_t end = 0;       // READ: after the last byte asked for last, counted from `first`
    Pd pd{};                     // the domain whose rights apply
    std::uint64_t original = 0;  // atomic: the earlier value in memory

    [[nodiscard]] bool is_due() const noexcept { return state != State::Sent; }
    // Returns how many bytes of the READ lie before the packet `psn`.
    [[nodiscard]] std::uint32_t offset_of(Psn psn, std::uint32_t path_mtu_bytes) const noexcept {
        return static_cast<std::uint32_t>(psn.since(first)) * path_mtu_bytes;
    }
};

// Returns the number of packets in the answer to a READ.
[[nodiscard]] constexpr std::uint32_t responses_for(std::uint32_t bytes, std::uint32_t path_mtu_bytes) noexcept {
    return std::max(1U, (bytes + path_mtu_bytes - 1) / path_mtu_bytes);
}

// The newest kMaxRdAtomic answers of one queue pair, in the order of their requests.
class SavedAnswers {
public:
    // Adds a new answer, which is due. It takes the place of the oldest one, which was sent or is forgotten.
    [[nodiscard]] SavedAnswer& add() noexcept {
        SavedAnswer& saved = at(count_++);
        due_ -= saved.is_due() ? 1U : 0U;  // asked for again, and then not waited for
        saved = {};
        saved.state = SavedAnswer::State::Due;
        ++due_;
        return saved;
    }
    // Returns the answer to the request that had `psn`, among the newest `depth`; nullptr if it is not kept.
    [[nodiscard]] SavedAnswer* find(Psn psn, std::uint32_t depth) noexcept {
        for (std::uint32_t back = 1; back <= depth; ++back) {
            SavedAnswer& saved = at(count_ - back);
            const bool used = saved.operation != wire::Operation{};  // no READ or atomic has this code
            if (used && psn.since(saved.first) >= 0 && saved.last.since(psn) >= 0) {
                return &saved;
            }
        }
        return nullptr;
    }
    // Returns true if `depth` answers are kept, and the next one would push out an answer that was never sent.
    [[nodiscard]] bool is_full(std::uint32_t depth) const noexcept {
        return depth == 0 || at(count_ - depth).state == SavedAnswer::State::Due;
    }

    [[nodiscard]] bool any_due() const noexcept { return due_ != 0; }
    // Returns the oldest answer that is due; there is one (asserted).
    [[nodiscard]] const SavedAnswer& oldest_due() const noexcept {
        std::uint32_t number = count_ - kMaxRdAtomic;  // the oldest of all; unused places are not due
        while (!at(number).is_due()) {
            ++number;
            CAIRN_ASSERT(number != count_);
        }
        return at(number);
    }
    [[nodiscard]] SavedAnswer& oldest_due() noexcept {
        return const_cast<SavedAnswer&>(static_cast<const SavedAnswers&>(*this).oldest_due());
    }
    // Notes that its last packet was sent.
    void note_sent(SavedAnswer& saved) noexcept {
        saved.state = SavedAnswer::State::Sent;
        --due_;
    }
    // Makes `saved` due once more, since the peer asks for it from `from` on, up to `until`. Later answers that are due
    // start again, too, so that they stay in order.
    void ask_again(SavedAnswer& saved, Psn from, Psn until) noexcept {
        if (!saved.is_due()) {
            saved.state = SavedAnswer::State::DueAgain;
            ++due_;
        }
        saved.from = saved.next = from;
        saved.until = until;
        for (SavedAnswer& later : all_) {
            if (later.is_due() && later.first.since(saved.last) > 0) {
                later.next = later.from;
            }
        }
    }
    // Drops all answers that are due.
    void drop_due() noexcept {
        for (SavedAnswer& saved : all_) {
            saved.state = SavedAnswer::State::Sent;
        }
        due_ = 0;
    }
    // Asserts that all requests answered here lie before `expected`.
    void check_invariants(Psn expected) const noexcept;

private:
    [[nodiscard]] SavedAnswer& at(std::uint32_t number) noexcept { return all_[number % kMaxRdAtomic]; }
    [[nodiscard]] const SavedAnswer& at(std::uint32_t number) const noexcept { return all_[number % kMaxRdAtomic]; }

    std::uint32_t count_ = 0;  // answers ever saved; the newest is at count_ - 1
    std::uint32_t due_ = 0;
    std::array<SavedAnswer, kMaxRdAtomic> all_{};
};

}  // namespace cairn::roce::rc
