// A fixed number of objects, handed out and taken back without allocating.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace cairn::rpc {

template <class T>
class FixedTable {
public:
    explicit FixedTable(std::size_t count) : items_(std::make_unique<T[]>(count)) {
        free_.reserve(count);
        for (std::size_t i = count; i-- > 0;) {
            free_.push_back(&items_[i]);
        }
    }
    // A fresh one; nullptr when all are out.
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

}  // namespace cairn::rpc
