// Lists of entries of a table, by their indices.
#pragma once

#include <cstdint>

#include "rpc/common/call.hpp"

namespace cairn::rpc {

// The head of a list. An entry is in one list at most; its members `next` and `previous` are the links.
struct IndexList {
    std::uint32_t first = kNone;

    [[nodiscard]] bool empty() const noexcept { return first == kNone; }
    template <class Table>
    void add(Table& table, std::uint32_t index) noexcept {
        table[index].previous = kNone;
        table[index].next = first;
        if (first != kNone) {
            table[first].previous = index;
        }
        first = index;
    }
    // Removes an entry, which is in this list.
    template <class Table>
    void remove(Table& table, std::uint32_t index) noexcept {
        const auto& entry = table[index];
        (entry.previous == kNone ? first : table[entry.previous].next) = entry.next;
        if (entry.next != kNone) {
            table[entry.next].previous = entry.previous;
        }
    }
};

}  // namespace cairn::rpc
