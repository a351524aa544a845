// An unbounded queue with many writers and one reader. It takes no lock and owns no memory: each posted item carries
// the link to the next one.
#pragma once

#include <atomic>

#include "lib/base/assert.hpp"

namespace cairn {

// The link inside an item. An item is in one mailbox at a time. It belongs to its poster again once it was taken.
template <class Item>
struct MailLink {
    Item* next = nullptr;
};

// Keeps the order of each thread's posts. `Item` has a member `mail` of type MailLink<Item>.
template <class Item>
class Mailbox {
public:
    Mailbox() = default;
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    // Returns false if the mailbox is closed; the item then stays the poster's. Any thread may call it.
    [[nodiscard]] bool post(Item& item) noexcept {
        Item* newest = newest_.load(std::memory_order_relaxed);
        do {
            if (newest == closed()) {
                return false;
            }
            item.mail.next = newest;
            // Pairs with take(): the reader of the item sees all that was written into it.
        } while (!newest_.compare_exchange_weak(newest, &item, std::memory_order_seq_cst, std::memory_order_relaxed));
        return true;
    }
    // Returns true if no item is in the mailbox. Any thread may call it. A thread always sees its own posts.
    [[nodiscard]] bool empty() const noexcept { return newest_.load(std::memory_order_seq_cst) == nullptr; }

    // Hands all posted items to sink(item), oldest first. The sink may post. Only the owner may call it, while the
    // mailbox is open. Returns true if there was an item.
    template <class Sink>
    bool take(Sink&& sink) noexcept {
        return !empty() && hand_out(newest_.exchange(nullptr, std::memory_order_acquire), sink);
    }
    // As take(), and closes the mailbox: later posts are refused.
    template <class Sink>
    void close(Sink&& sink) noexcept {
        Item* const newest = newest_.exchange(closed(), std::memory_order_acquire);
        CAIRN_ASSERT(newest != closed());
        hand_out(newest, sink);
    }

private:
    // Returns a pointer that is no item's address and marks a closed mailbox.
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
