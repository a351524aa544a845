// A table that hands out a fixed number of objects and takes them back, without allocating.
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
    // Returns a fresh object, or nullptr if all are out.
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
