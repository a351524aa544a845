// Entries of an endpoint's tables, such as a call from its posting to its completion.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rpc/erpc/call.hpp"
#include "rpc/erpc/deadlines.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

struct PendingCall {
    Call call;
    std::uint32_t generation = 0;
    std::uint32_t next = kNone;      // backlog or free list
    std::uint32_t previous = kNone;  // backlog
    std::uint16_t session = 0;
    std::uint8_t slot = 0xff;  // 0xff: in the backlog
    bool used = false;
    Deadlines::Handle deadline{};  // empty: there is none
};

// Names a server's slot whose credit return leaves at the end of the burst.
struct CreditDue {
    std::uint16_t session;
    std::uint8_t slot;
};

// A fixed number of T, handed out and taken back; nullptr when all are out.
template <class T>
class FixedTable {
public:
    explicit FixedTable(std::size_t count) : items_(std::make_unique<T[]>(count)) {
        free_.reserve(count);
        for (std::size_t i = count; i-- > 0;) {
            free_.push_back(&items_[i]);
        }
    }
    [[nodiscard]] T* take() noexcept {
        if (free_.empty()) {
            return nullptr;
        }
        T* const item = free_.back();
        free_.pop_back();
        *item = T{};
        return item;
    }
    void give_back(T* item) noexcept { free_.push_back(item); }

private:
    std::unique_ptr<T[]> items_;
    std::vector<T*> free_;
};

}  // namespace cairn::erpc
