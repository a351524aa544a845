// Parts of a port of the tests: the payloads that it leaves in place, the ranges attached for them, and a tap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lib/port/port.hpp"

namespace cairn::test {

class AttachedPort : public port::Port {
public:
    using Range = std::span<const std::uint8_t>;

    // Sees each datagram that leaves, and its destination.
    std::function<void(Range, const net::IpAddress&)> tap = [](Range, const net::IpAddress&) {};
    bool sends_in_place = false;
    std::vector<Range> attached;
    int detached_wrongly = 0;  // ranges that were not attached, or that a waiting packet still needed

    [[nodiscard]] bool can_send_from(Range) const noexcept override { return sends_in_place; }
    [[nodiscard]] bool attach(Range range) override {
        if (sends_in_place) {
            attached.push_back(range);
        }
        return sends_in_place;
    }
    void detach(Range range) noexcept override {
        const auto found = std::find_if(attached.begin(), attached.end(), [range](Range each) {
            return each.data() == range.data() && each.size() == range.size();
        });
        const bool is_read = std::any_of(waiting_.begin(), waiting_.end(), [range](const port::TxPacket& packet) {
            return packet.tail.data() < range.data() + range.size() &&
                   range.data() < packet.tail.data() + packet.tail.size();
        });
        detached_wrongly += found == attached.end() || is_read ? 1 : 0;
        if (found != attached.end()) {
            attached.erase(found);
        }
    }

protected:
    std::vector<port::TxPacket> waiting_;  // taken, and not sent yet
};

}  // namespace cairn::test
