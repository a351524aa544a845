// An unbounded queue that many threads fill and one empties, without locks and without memory of its own: what is
// posted carries the link.
#pragma once

#include <atomic>

#include "lib/base/assert.hpp"

namespace cairn {

// The place of a posted item in its mailbox. An item is in one mailbox at a time, and is its poster's again once taken.
template <class Item>
struct MailLink {
    Item* next = nullptr;
};

// In the order of posts of each thread. `Item` has a member `mail` of MailLink<Item>.
template <class Item>
class Mailbox {
public:
    Mailbox() = default;
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    // False: it is closed, the item stays the poster's. Any thread.
    [[nodiscard]] bool post(Item& item) noexcept {
        Item* newest = newest_.load(std::memory_order_relaxed);
        do {
            if (newest == closed()) {
                return false;
            }
            item.mail.next = newest;
            // Pairs with take(): who takes the item sees what was written into it.
        } while (!newest_.compare_exchange_weak(newest, &item, std::memory_order_seq_cst, std::memory_order_relaxed));
        return true;
    }
    // Any thread; what one thread posted, it sees.
    [[nodiscard]] bool empty() const noexcept { return newest_.load(std::memory_order_seq_cst) == nullptr; }

    // Hands all that was posted to sink(item), oldest first. The sink may post. By the owner, as long as it is open.
    template <class Sink>
    bool take(Sink&& sink) noexcept {
        return !empty() && hand_out(newest_.exchange(nullptr, std::memory_order_acquire), sink);
    }
    // The same, and nothing can be posted any more.
    template <class Sink>
    void close(Sink&& sink) noexcept {
        Item* const newest = newest_.exchange(closed(), std::memory_order_acquire);
        CAIRN_ASSERT(newest != closed());
        hand_out(newest, sink);
    }

private:
    // No item's address.
    [[nodiscard]] Item* closed() const noexcept {
        return reinterpret_cast<Item*>(const_cast<std::atomic<Item*>*>(&newest_));
    }
    template <class Sink>
    static bool hand_out(Item* newest, Sink& sink) noexcept {
        Item* oldest = nullptr;
        while (newest != nullptr) {
            Item* const before = newest->mail.next;
            newest->mail.next = oldest;
            oldest = newest;
            newest = before;
        }
        const bool any = oldest != nullptr;
        while (oldest != nullptr) {
            Item& item = *oldest;
            oldest = item.mail.next;
            sink(item);
        }
        return any;
    }

    std::atomic<Item*> newest_{nullptr};
};

}  // namespace cairn
