#include "lib/port/held_datagrams.hpp"

#include <algorithm>
#include <cstring>

namespace cairn::port {

namespace {

// Orders a heap whose front is due first.
constexpr auto kLater = [](const auto& a, const auto& b) noexcept {
    return a.due != b.due ? a.due > b.due : a.serial > b.serial;
};

}  // namespace

HeldDatagrams::HeldDatagrams(std::size_t most) : places_(most) {
    for (Place& place : places_) {
        free_.push_back(place.data());
    }
    held_.reserve(most);
    taken_.reserve(most);
}

HeldDatagrams::~HeldDatagrams() {
    for (const Held& each : held_) {
        each.packet.path->unpin();
    }
    for (Path* const path : taken_) {
        path->unpin();
    }
}

bool HeldDatagrams::hold(const PacketRef& packet, Instant due) noexcept {
    if (free_.empty() || packet.len > kMaxUdpPayloadBytes) {
        return false;
    }
    PacketRef copy = packet;
    copy.data = free_.back();
    free_.pop_back();
    std::memcpy(copy.data, packet.data, packet.len);
    copy.path->pin();
    held_.push_back({due, next_serial_++, copy});
    std::push_heap(held_.begin(), held_.end(), kLater);
    return true;
}

std::size_t HeldDatagrams::take_due(Port& port, std::span<PacketRef> out, Instant now) noexcept {
    for (Path* const path : taken_) {
        path->unpin();
    }
    taken_.clear();
    std::size_t count = 0;
    while (count < out.size() && next_due() <= now && port.allocate_burst(out.subspan(count, 1)) != 0) {
        std::pop_heap(held_.begin(), held_.end(), kLater);
        const PacketRef& from = held_.back().packet;
        PacketRef& to = out[count++];
        std::memcpy(to.data, from.data, from.len);
        to.path = from.path;
        to.len = from.len;
        to.ecn = from.ecn;
        to.icrc_ok = from.icrc_ok;
        to.ip_id = from.ip_id;
        taken_.push_back(from.path);
        free_.push_back(from.data);
        held_.pop_back();
    }
    return count;
}

}  // namespace cairn::port
