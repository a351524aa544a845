// An intrusive list in the order of arrival. A member is in it at most once. Each operation takes constant time.
#pragma once

#include <cstdint>

#include "lib/base/assert.hpp"

namespace cairn::roce {

// A member's place in one list. The list owns it while the member is in the list.
template <class Member>
struct QpRingLink {
    Member* next = nullptr;
    Member* previous = nullptr;
    bool listed = false;
};

template <class Member, QpRingLink<Member> Member::*kLink = &Member::link>
class QpRing {
public:
    void push(Member& member) noexcept {
        QpRingLink<Member>& link = member.*kLink;
        if (link.listed) {
            return;
        }
        link = {nullptr, last_, true};
        (last_ == nullptr ? first_ : (last_->*kLink).next) = &member;
        last_ = &member;
        ++size_;
    }
    // Removes and returns the oldest member. The list is not empty (asserted).
    [[nodiscard]] Member& pop() noexcept {
        CAIRN_ASSERT(first_ != nullptr);
        Member& member = *first_;
        remove(member);
        return member;
    }
    template <class Predicate>
    [[nodiscard]] bool all_of(const Predicate& predicate) const noexcept {
        const Member* each = first_;
        while (each != nullptr && predicate(*each)) {
            each = (each->*kLink).next;
        }
        return each == nullptr;
    }
    void remove(Member& member) noexcept {
        QpRingLink<Member>& link = member.*kLink;
        if (!link.listed) {
            return;
        }
        (link.previous == nullptr ? first_ : (link.previous->*kLink).next) = link.next;
        (link.next == nullptr ? last_ : (link.next->*kLink).previous) = link.previous;
        link.listed = false;
        --size_;
    }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

private:
    Member* first_ = nullptr;
    Member* last_ = nullptr;
    std::uint32_t size_ = 0;
};

}  // namespace cairn::roce
