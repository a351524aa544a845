// A baton is the right to touch a worker. At most one thread holds it.
#pragma once

#include <atomic>

#include "lib/base/assert.hpp"

namespace cairn::worker {

// One compare-and-swap takes the baton, one store gives it back. No thread waits: one that does not get the baton
// leaves its work in the worker's mail.
class Baton {
public:
    Baton() = default;
    Baton(const Baton&) = delete;
    Baton& operator=(const Baton&) = delete;

    // Returns false if another thread holds the baton.
    [[nodiscard]] bool try_take() noexcept {
        bool held = false;
        // Pairs with give(): the new holder sees all that the last one did. The baton and the mailbox share one total
        // order. The holder looks at the mail once more after give(), so it sees a letter of a thread that did not get
        // the baton.
        return held_.compare_exchange_strong(held, true, std::memory_order_seq_cst, std::memory_order_seq_cst);
    }
    void give() noexcept {
        CAIRN_ASSERT(held_.load(std::memory_order_relaxed));
        held_.store(false, std::memory_order_seq_cst);
    }

private:
    std::atomic<bool> held_{false};
};

// Holds the baton during its own lifetime, if the baton was free.
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
