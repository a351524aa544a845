// Who may touch a worker: the one thread that holds its baton.
#pragma once

#include <atomic>

#include "lib/base/assert.hpp"

namespace cairn::worker {

// One compare-and-swap takes it, a store gives it back; nobody waits. A thread that does not get it leaves its work in
// the worker's mail.
class Baton {
public:
    Baton() = default;
    Baton(const Baton&) = delete;
    Baton& operator=(const Baton&) = delete;

    // False: another thread has it.
    [[nodiscard]] bool try_take() noexcept {
        bool held = false;
        // Pairs with give(): who takes it sees all that the last holder did. In one order with the mailbox: who posted
        // and did not get it is seen by the holder, who looks at the mail once more behind give().
        return held_.compare_exchange_strong(held, true, std::memory_order_seq_cst, std::memory_order_seq_cst);
    }
    void give() noexcept {
        CAIRN_ASSERT(held_.load(std::memory_order_relaxed));
        held_.store(false, std::memory_order_seq_cst);
    }

private:
    std::atomic<bool> held_{false};
};

// The baton for as long as this lives, if it was free.
class BatonHold {
public:
    explicit BatonHold(Baton& baton) noexcept : baton_(baton.try_take() ? &baton : nullptr) {}
    BatonHold(const BatonHold&) = delete;
    BatonHold& operator=(const BatonHold&) = delete;
    ~BatonHold() {
        if (baton_ != nullptr) {
            baton_->give();
        }
    }
    [[nodiscard]] explicit operator bool() const noexcept { return baton_ != nullptr; }

private:
    Baton* baton_;
};

}  // namespace cairn::worker
