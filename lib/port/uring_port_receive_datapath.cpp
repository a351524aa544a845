// UringPort: receives batches and hands out their segments.
#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/assert.hpp"
#include "lib/port/uring_port.hpp"
#include "lib/wire/bth.hpp"

namespace cairn::port {

namespace {

constexpr std::size_t kBatchPayloadBytes = 65536;
constexpr std::uint16_t kShortBytes = 1024;
constexpr std::uint32_t kBulkBytes = 32768;
constexpr std::size_t kBulkSegments = 16;  // in a batch that large, at the longest path MTU
constexpr std::uint32_t kIdlePolls = 8;    // in a row, without an arrival
constexpr std::uint16_t kWhole = 0xffff;
constexpr std::uint32_t kWorthHalving = 48;  // segments: two batches cost the kernel twice as much as one
constexpr std::uint32_t kLeastDatagram = wire::Bth::kBytes + kIcrcBytes;

struct Ancillary {
    int segment_bytes = 0;  // 0: one datagram
    std::uint8_t traffic_class = 0;
};

Ancillary read_ancillary(msghdr& header) noexcept {
    Ancillary found;
    for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
        if (each->cmsg_level == IPPROTO_UDP && each->cmsg_type == UDP_GRO) {
            std::memcpy(&found.segment_bytes, CMSG_DATA(each), sizeof(found.segment_bytes));
        } else if ((each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_TOS) ||
                   (each->cmsg_level == IPPROTO_IPV6 && each->cmsg_type == IPV6_TCLASS)) {
            found.traffic_class = *CMSG_DATA(each);
        }
    }
    return found;
}

}  // namespace

// Bulk is taken as far as there is room. One answer to it then covers several batches.
std::size_t UringPort::receive_burst(std::span<PacketRef> out, Instant now) noexcept {
    paths_.begin_burst();
    turn_ = now;
    queue_.end_sleep();
    if (std::exchange(slept_, false)) {
        found_empty_ = empty_at_ = now;  // the datagram that ended a sleep has just come
    }
    std::size_t accepted = queue_.empty() ? 0 : receive_handed_over(out, now);
    std::size_t last = 0;
    do {
        last = receive_batch(out.subspan(accepted), now);
        accepted += last;
    } while (last != 0 && arrival_.bytes >= kBulkBytes && out.size() - accepted >= kBulkSegments);
    if (accepted != 0) {
        counters_.count(UringCounter::Received, accepted);
    }
    queue_.wake_others();
    if (capture_ != nullptr) [[unlikely]] {
        capture_->flush();
    }
    return accepted;
}

// Judges each datagram here, as an arrival of its own. Takes at most half as many as are asked for, sound or not. So a
// flood of them leaves room for the socket's own datagrams, and ends.
std::size_t UringPort::receive_handed_over(std::span<PacketRef> out, Instant now) noexcept {
    if (arrival_.block != nullptr && arrival_.path == &stranger_) {
        return 0;
    }
    const Arrival own = arrival_;
    std::size_t accepted = 0;
    const auto accept = [&](const HandedOver& datagram) noexcept {
        Block& block = *blocks_.take_buffer();
        std::memcpy(block.data, datagram.bytes.data(), datagram.len);
        found_empty_ = std::min(found_empty_, datagram.empty_at);
        begin_arrival(block, {config_.local, datagram.remote, datagram.udp_source_port, 0}, datagram.len);
        arrival_.index = datagram.index;
        arrival_.ecn = datagram.ecn;
        arrival_.handed_over = true;
        accepted += next_segment(out[accepted], now) ? 1U : 0U;
    };
    std::size_t most = (out.size() + 1) / 2;
    while (most != 0 && blocks_.has_buffer() && queue_.take(accept)) {
        --most;
    }
    arrival_ = own;
    return accepted;
}

// Receives from one batch at most.
std::size_t UringPort::receive_batch(std::span<PacketRef> out, Instant now) noexcept {
    if (arrival_.block == nullptr) {
        const bool armed = arm_receive();
        const net::IpAddress* const group = armed ? groups_.receive(receive_.header, receive_.result) : nullptr;
        exchange(armed && group == nullptr ? &receive_ : nullptr);
        take_arrival(group == nullptr ? config_.local : *group);
        if (arrival_.block == nullptr) {
            ++idle_polls_;
            found_empty_ = armed && queue_.empty() ? now : found_empty_;
        }
    } else if (sends_ != 0) {
        exchange(nullptr);
    }
    out = out.first(std::min<std::size_t>(out.size(), std::exchange(arrival_.part, kWhole)));
    std::size_t accepted = 0;
    while (accepted < out.size() && arrival_.block != nullptr) {
        accepted += next_segment(out[accepted], now) ? 1U : 0U;
    }
    return accepted;
}

// Returns how many segments to hand out before answers leave. A large batch that finds us idle is all that is under
// way, and the peer is idle now. The answers to one half of it leave before the other half is handed out. So both sides
// have work from then on.
std::uint16_t UringPort::part_of_arrival() noexcept {
    const bool was_idle = std::exchange(idle_polls_, 0) >= kIdlePolls;
    const std::uint32_t segments = (arrival_.bytes + arrival_.segment_bytes - 1U) / arrival_.segment_bytes;
    return was_idle && segments >= kWorthHalving ? static_cast<std::uint16_t>((segments + 1) / 2) : kWhole;
}

// Returns false if no batch is free.
bool UringPort::arm_receive() noexcept {
    if (receive_block_ == nullptr) {
        receive_block_ = blocks_.take_batch();
        if (receive_block_ == nullptr) {
            counters_.count(UringCounter::NoBuffer);
            return false;
        }
    }
    receive_piece_ = {receive_block_->data, kBatchPayloadBytes};
    receive_.header.msg_name = &receive_from_;
    receive_.header.msg_namelen = sizeof(receive_from_);
    receive_.header.msg_iov = &receive_piece_;
    receive_.header.msg_iovlen = 1;
    receive_.header.msg_control = receive_control_.data();
    receive_.header.msg_controllen = receive_control_.size();
    receive_.header.msg_flags = 0;
    receive_.result = -EAGAIN;
    return true;
}

// Makes the result of the last exchange, if there is one, the arrival to hand out.
void UringPort::take_arrival(const net::IpAddress& local) noexcept {
    if (receive_block_ == nullptr || receive_.result < 0) {
        if (receive_block_ != nullptr && receive_.result != -EAGAIN && receive_.result != -EINTR) {
            counters_.count(UringCounter::ReceiveFailed);
        }
        return;
    }
    if ((receive_.header.msg_flags & MSG_TRUNC) != 0) {
        counters_.count(UringCounter::TooLong);
    }
    const Ancillary with = read_ancillary(receive_.header);
    PathKey key;
    key.local = local;
    key.remote = from_sockaddr(receive_from_, key.udp_source_port);
    if (key.remote.is_v4() != key.local.is_v4()) {
        counters_.count(UringCounter::NoPath);
        return;
    }
    const auto bytes = static_cast<std::uint32_t>(receive_.result);
    begin_arrival(*std::exchange(receive_block_, nullptr), key, bytes);
    if (with.segment_bytes > 0) {
        arrival_.segment_bytes = static_cast<std::uint16_t>(with.segment_bytes);
    }
    arrival_.ecn = with.traffic_class & 3U;
    counters_.count(UringCounter::ReceivedBatches);
    if (bytes == 0) {
        counters_.count(UringCounter::TooShort);
        end_arrival();
        return;
    }
    arrival_.part = part_of_arrival();
}

// Begins an arrival of one segment.
void UringPort::begin_arrival(Block& block, const PathKey& key, std::uint32_t bytes) noexcept {
    Path* path = paths_.find(key);
    if (path == nullptr) {
        stranger_ = Path(key, config_.udp_port);
        path = &stranger_;
    }
    path->pin();
    arrival_.path = path;
    arrival_.block = &block;
    arrival_.bytes = bytes;
    arrival_.at = 0;
    arrival_.index = 0;
    arrival_.handed_over = false;
    arrival_.segment_bytes = static_cast<std::uint16_t>(std::min<std::uint32_t>(bytes, 0xffff));
    empty_at_ = found_empty_;
}

// Returns false if the datagram was given back.
inline bool UringPort::judge(PacketRef& out, Instant now) noexcept {
    out.path = arrival_.path;
    out.ecn = arrival_.ecn;
    out.ip_id = 0;
    out.icrc_ok = verify(out, arrival_.index, out.ip_id, now);
    if (!out.icrc_ok) [[unlikely]] {
        counters_.count(UringCounter::BadIcrc);
    }
    if (capture_ != nullptr) [[unlikely]] {
        const std::span<const std::uint8_t> whole(out.data, out.len);
        capture_->record(Direction::Receive, *out.path, {&whole, 1}, out.ip_id, out.ecn);
    }
    return arrival_.path != &stranger_ || admit(out);
}

// Returns false if the segment is no datagram, or another worker's. The arrival moves on in either case.
bool UringPort::next_segment(PacketRef& out, Instant now) noexcept {
    const std::uint32_t len = std::min<std::uint32_t>(arrival_.segment_bytes, arrival_.bytes - arrival_.at);
    const bool last = arrival_.at + len == arrival_.bytes;
    const std::uint8_t* const bth = arrival_.block->data + arrival_.at;
    bool taken = false;
    if (len < kLeastDatagram || len > kMaxUdpPayloadBytes) [[unlikely]] {
        counters_.count(len < kLeastDatagram ? UringCounter::TooShort : UringCounter::TooLong);
    } else if (queue_.is_alone() || arrival_.handed_over || !hand_over(bth, static_cast<std::uint16_t>(len))) {
        place(out, static_cast<std::uint16_t>(len), last);
        taken = judge(out, now);
    }
    arrival_.at += len;
    ++arrival_.index;
    if (last) {
        end_arrival();
    }
    return taken;
}

// Passes a datagram to the worker that owns it; the kernel steers a batch by its first datagram only. The datagram goes
// there unchanged, whatever its sender, and is judged there. A datagram to a group is for the worker that joined it.
// Returns false if the datagram is for this worker.
bool UringPort::hand_over(const std::uint8_t* bth, std::uint16_t len) noexcept {
    const PathKey& key = arrival_.path->key();
    if (queue_.is_ours(bth) || key.local != config_.local) {
        return false;
    }
    const bool passed = queue_.hand_over(queue_.owner_of(bth), [&](HandedOver& to) noexcept {
        to.remote = key.remote;
        to.udp_source_port = key.udp_source_port;
        to.empty_at = empty_at_;
        to.index = arrival_.index;
        to.ecn = arrival_.ecn;
        to.len = len;
        std::memcpy(to.bytes.data(), bth, len);
    });
    counters_.count(passed ? UringCounter::HandedOver : UringCounter::HandedOverFull);
    return true;
}

// Makes a path for a new peer at its first whole datagram. The arrival uses that path as long as parts of it are to be
// handed out. Returns false if this datagram gets no path; it is then given back.
bool UringPort::admit(PacketRef& out) noexcept {
    Path* const path = out.icrc_ok ? path_back({stranger_.key(), {}}, turn_) : nullptr;
    if (path != nullptr) {
        stranger_.unpin();
        path->pin();
        arrival_.path = out.path = path;
        return true;
    }
    if (out.icrc_ok) {
        counters_.count(UringCounter::NoPath);
    }
    release_burst({&out, 1});
    return false;
}

// Gives out a datagram where it lies, or as a copy. Keeping one where it lies keeps its whole block (64 KB). So short
// datagrams that came alone are copied. All are copied when half of the blocks are kept.
void UringPort::place(PacketRef& out, std::uint16_t len, bool last) noexcept {
    Block* block = arrival_.block;
    std::uint8_t* data = block->data + arrival_.at;
    std::size_t room = len;  // the next segment follows at once
    if (last) {
        room = std::min<std::size_t>(kBatchPayloadBytes - arrival_.at, kMaxUdpPayloadBytes);
    }
    const bool alone = len == arrival_.bytes && len <= kShortBytes;
    const bool copied = block->batch && (alone || blocks_.free_batches() < config_.batches / 2U);
    if (Block* const buffer = copied ? blocks_.take_buffer() : nullptr; buffer != nullptr) {
        std::memcpy(buffer->data, data, len);
        block = buffer;
        data = buffer->data;
        room = kMaxUdpPayloadBytes;
    } else {
        ++block->references;
    }
    out.data = data;
    out.cookie = block;
    out.len = len;
    out.room = static_cast<std::uint16_t>(room);
}

// Finds the IPv4 ID that the sender's kernel gave: 0, or the segment's place in its batch, or a counter. Returns true
// if the ICRC is right for one of these.
bool UringPort::verify(const PacketRef& packet, std::uint16_t index, std::uint16_t& ip_id, Instant now) noexcept {
    std::uint32_t carried = 0;
    std::memcpy(&carried, packet.data + packet.len - kIcrcBytes, sizeof(carried));
    const std::uint32_t difference = packet.path->icrc(Direction::Receive, packet.data, packet.len) ^ carried;
    if (difference == 0) {
        return true;
    }
    if (!packet.path->is_v4()) {
        return false;
    }
    if (index != 0 && difference == deltas_.delta(packet.len, index)) [[likely]] {
        ip_id = index;
        return true;
    }
    const auto id = deltas_.solve(packet.len, difference);
    if (!id.has_value() || !peer_ids_.judge(packet.path->key().remote.v4(), *id, now)) {
        return false;
    }
    ip_id = *id;
    counters_.count(UringCounter::SolvedIds);
    return true;
}

void UringPort::end_arrival() noexcept {
    paths_.keep(*arrival_.path);  // its last parts belong to this burst
    arrival_.path->unpin();
    blocks_.drop_reference(*std::exchange(arrival_.block, nullptr));
}

void UringPort::release_burst(std::span<PacketRef> packets) noexcept {
    for (const PacketRef& packet : packets) {
        if (packet.cookie != nullptr) {
            blocks_.drop_reference(*static_cast<Block*>(packet.cookie));
        }
    }
}

}  // namespace cairn::port
