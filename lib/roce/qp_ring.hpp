// A list in the order of arrival, each member at most once, without memory of its own.
#pragma once

#include <cstdint>

#include "lib/base/assert.hpp"

namespace cairn::roce {

// `Member` has `Member* next` and `bool listed`, which are the list's while it is in it.
template <class Member>
class QpRing {
public:
    void push(Member& member) noexcept {
        if (member.listed) {
            return;
        }
        member.listed = true;
        member.next = nullptr;
        (last_ == nullptr ? first_ : last_->next) = &member;
        last_ = &member;
        ++size_;
    }
    // There is one (asserted).
    [[nodiscard]] Member& pop() noexcept {
        CAIRN_ASSERT(first_ != nullptr);
        Member& member = *first_;
        first_ = member.next;
        last_ = first_ == nullptr ? nullptr : last_;
        member.listed = false;
        --size_;
        return member;
    }
    // In time of the list's length.
    void remove(Member& member) noexcept {
        for (std::uint32_t left = size_; member.listed && left > 0; --left) {
            Member& each = pop();
            if (&each != &member) {
                push(each);
            }
        }
    }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

private:
    Member* first_ = nullptr;
    Member* last_ = nullptr;
    std::uint32_t size_ = 0;
};

}  // namespace cairn::roce
