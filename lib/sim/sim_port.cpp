#include "lib/sim/sim_port.hpp"

#include <algorithm>
#include <cstring>

namespace cairn::sim {

SimPort::SimPort(Network& network, std::size_t node, std::size_t buffers, std::uint64_t seed, std::size_t paths,
                 std::uint8_t queue)
    : network_(network),
      node_(node),
      queue_(queue),
      random_(seed),
      // A table as large as a real port's costs more than a history.
      paths_(paths != 0 ? static_cast<std::uint32_t>(paths) : paths_among(network.nodes())),
      buffers_(buffers) {}

// Takes frames. An arrival wakes a node, so a packet came just now, unless there was more last time.
std::size_t SimPort::receive_burst(std::span<port::PacketRef> out, Instant now) noexcept {
    out = out.first(std::min<std::size_t>(out.size(), limits().burst));
    empty_at_ = full_burst_ ? empty_at_ : now;
    std::size_t count = 0;
    paths_.begin_burst();
    while (count < out.size()) {
        const std::optional<Frame> frame = network_.receive(node_, now - clock_ahead_, queue_);
        if (!frame) {
            break;
        }
        if (allocate_burst(out.subspan(count, 1)) == 0) {
            ++counters_.unheard;  // lost, as by a NIC without descriptors
        } else if (take_in(*frame, out[count])) {
            ++counters_.taken;
            ++count;
        } else {
            ++counters_.foreign;
            release_burst(out.subspan(count, 1));
        }
    }
    full_burst_ = count == out.size();
    return count;
}

bool SimPort::take_in(const Frame& frame, port::PacketRef& out) noexcept {
    port::ParsedFrame parsed = port::parse_frame_for(Network::mac_of(node_), local_address(), frame.bytes);
    if (!parsed.ok() && !groups_.empty()) {
        parsed = port::parse_frame_for_groups(groups_, frame.bytes);
    }
    const auto is_own = [&](const port::PathKey& key) noexcept {
        return key.local.is_group() && key.remote == local_address() && frame.queue == queue_;
    };
    if (!parsed.ok() || (is_own(parsed.value().key) && !loops_groups_)) {
        return false;
    }
    port::Path* path = paths_.admit(parsed.value().key);
    if (path == nullptr) {
        return false;
    }
    paths_.keep(*path);
    resolve(*path);
    const std::size_t lower = path->lower_bytes();
    std::memcpy(out.data - lower, frame.bytes.data(), frame.bytes.size());
    out.path = path;
    out.len = static_cast<std::uint16_t>(frame.bytes.size() - lower);
    out.ecn = parsed.value().ecn();
    const port::Path::Arrival arrival = path->judge_arrival(out.data - lower, frame.bytes.size());
    // A hostile peer sends in another node's name from its own Ethernet address, as a router would.
    out.icrc_ok = arrival == port::Path::Arrival::Whole || arrival == port::Path::Arrival::WholeFromElsewhere;
    counters_.bad_icrcs += out.icrc_ok ? 0 : 1;
    if (witness_) {
        witness_(frame, out.icrc_ok);
    }
    return true;
}

std::size_t SimPort::transmit_burst(std::span<port::TxPacket> packets, Instant now) noexcept {
    std::size_t taken = 0;
    for (port::TxPacket& sent : packets) {
        if (random_.chance(faults_.tx_full_per_million)) {
            counters_.refused += packets.size() - taken;
            break;
        }
        port::PacketRef& packet = sent.packet;
        if (!sent.tail.empty()) {
            std::memcpy(packet.data + packet.len - port::kIcrcBytes, sent.tail.data(), sent.tail.size());
            packet.len = static_cast<std::uint16_t>(packet.len + sent.tail.size());
        }
        packet.path->seal(packet.data, packet.len);
        std::uint8_t* frame = packet.data - packet.path->lower_bytes();
        network_.send(node_, Frame{std::vector<std::uint8_t>(frame, packet.data + packet.len), false, queue_},
                      now - clock_ahead_);
        release_burst({&packet, 1});
        ++counters_.sent;
        ++taken;
    }
    return taken;
}

std::size_t SimPort::allocate_burst(std::span<port::PacketRef> out) noexcept {
    std::size_t count = 0;
    for (; count < out.size() && buffers_in_use() < buffers_; ++count) {
        if (random_.chance(faults_.pool_empty_per_million)) {
            ++counters_.starved;
            break;
        }
        Buffer* const buffer = take_buffer();
        out[count] = {};
        out[count].cookie = buffer;
        out[count].data = buffer->data() + kHeadroom;
        out[count].room = kRoom;
    }
    return count;
}

// Returns the buffer that was given back last, else a new one.
SimPort::Buffer* SimPort::take_buffer() {
    if (free_.empty()) {
        return storage_.emplace_back(std::make_unique<Buffer>(kHeadroom + kRoom, std::uint8_t{0xa5})).get();
    }
    Buffer* const buffer = free_.back();
    free_.pop_back();
    return buffer;
}

void SimPort::release_burst(std::span<port::PacketRef> packets) noexcept {
    for (const port::PacketRef& packet : packets) {
        if (packet.cookie != nullptr) {
            free_.push_back(static_cast<Buffer*>(packet.cookie));
        }
    }
}

port::Path* SimPort::open_path(const port::PathKey& key, Instant) noexcept {
    port::Path* path = paths_.intern(key);
    if (path != nullptr) {
        resolve(*path);
    }
    return path;
}

port::Path* SimPort::path_back(const port::WayBack& way, Instant) noexcept {
    port::Path* path = paths_.admit(way.key);
    if (path != nullptr) {
        resolve(*path);
    }
    return path;
}

Status SimPort::join(const net::IpAddress& group) {
    CAIRN_ASSERT(std::find(groups_.begin(), groups_.end(), group) == groups_.end());
    groups_.push_back(group);
    return Nothing{};
}

void SimPort::resolve(port::Path& path) noexcept {
    if (path.resolved()) {
        return;
    }
    const auto mac_of = [this](const net::IpAddress& address) noexcept {
        return address.is_group() ? address.group_mac() : Network::mac_of(network_.node_of(address));
    };
    path.resolve(mac_of(path.key().local), mac_of(path.key().remote));
}

}  // namespace cairn::sim
