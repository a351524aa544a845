// A model of how Linux numbers the sockets of one address.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace cairn::broker {

using Process = std::uint32_t;
using SocketId = std::uint32_t;

// The sockets of one address. When one closes, the last one gets its number.
class Kernel {
public:
    [[nodiscard]] SocketId bind(Process by) {
        numbered_.push_back(++last_);
        hold(last_, by);
        return last_;
    }
    void hold(SocketId socket, Process by) { holders_[socket].insert(by); }
    void close(SocketId socket, Process by) {
        auto& holders = holders_[socket];
        holders.erase(by);
        if (holders.empty()) {
            holders_.erase(socket);
            const auto at = std::find(numbered_.begin(), numbered_.end(), socket);
            *at = numbered_.back();
            numbered_.pop_back();
        }
    }
    // Closes the sockets of a process in the order of its descriptors.
    void kill(Process process) {
        std::vector<SocketId> held;
        for (const auto& [socket, holders] : holders_) {
            if (holders.count(process) != 0) {
                held.push_back(socket);
            }
        }
        for (const SocketId socket : held) {
            close(socket, process);
        }
    }
    [[nodiscard]] bool is_taken() const { return !numbered_.empty(); }
    [[nodiscard]] std::optional<SocketId> at(std::size_t number) const {
        return number < numbered_.size() ? std::optional(numbered_[number]) : std::nullopt;
    }

private:
    std::vector<SocketId> numbered_;
    std::map<SocketId, std::set<Process>> holders_;
    SocketId last_ = 0;
};

}  // namespace cairn::broker
