// Requests that a simulated file system has refused for want of room.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

namespace cairn::fs {

// Counts refusals by operation.
class SimRefusals {
public:
    void count(std::string_view operation) { ++by_operation_[operation]; }
    void add(const SimRefusals& others) {
        for (const auto& [operation, times] : others.by_operation_) {
            by_operation_[operation] += times;
        }
    }
    [[nodiscard]] std::uint64_t of(std::string_view operation) const {
        const auto found = by_operation_.find(operation);
        return found == by_operation_.end() ? 0 : found->second;
    }
    [[nodiscard]] std::uint64_t all() const {
        std::uint64_t sum = 0;
        for (const auto& [operation, times] : by_operation_) {
            sum += times;
        }
        return sum;
    }

private:
    std::map<std::string_view, std::uint64_t> by_operation_;  // names are literals
};

}  // namespace cairn::fs
