// UringPort: what arrives, batch by batch and segment by segment.
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
constexpr std::size_t kBulkSegments = 16;  // of a batch that large, at the longest path MTU
constexpr std::uint32_t kIdlePolls = 8;    // in vain, one behind the other
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

// Bulk is taken as far as there is room: what answers it then answers several batches at once.
std::size_t UringPort::receive_burst(std::span<PacketRef> out, Instant now) noexcept {
    paths_.begin_burst();
    turn_ = now;
    std::size_t accepted = 0;
    std::size_t last = 0;
    do {
        last = receive_batch(out.subspan(accepted), now);
        accepted += last;
    } while (last != 0 && arrival_.bytes >= kBulkBytes && out.size() - accepted >= kBulkSegments);
    if (accepted != 0) {
        counters_.count(UringCounter::Received, accepted);
    }
    return accepted;
}

// Of one batch at most.
std::size_t UringPort::receive_batch(std::span<PacketRef> out, Instant now) noexcept {
    if (std::exchange(slept_, false)) {
        found_empty_ = empty_at_ = now;  // what ended a sleep has just come
    }
    if (arrival_.block == nullptr) {
        const bool armed = arm_receive();
        const net::IpAddress* const group = armed ? receive_from_groups() : nullptr;
        exchange(armed && group == nullptr ? &receive_ : nullptr);
        take_arrival(group == nullptr ? config_.local : *group);
        if (arrival_.block == nullptr) {
            ++idle_polls_;
            found_empty_ = armed ? now : found_empty_;
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

// The group that something came to.
const net::IpAddress* UringPort::receive_from_groups() noexcept {
    groups_first_ = !groups_first_ && !groups_.empty();
    for (std::size_t i = groups_first_ ? 0 : groups_.size(); i < groups_.size(); ++i) {
        const ssize_t got = recvmsg(groups_[i].second.fd(), &receive_.header, MSG_DONTWAIT);
        if (got >= 0) {
            receive_.result = static_cast<std::int32_t>(got);
            return &groups_[i].first;
        }
    }
    return nullptr;
}

// A large batch that finds us idle is all that is under way, and the peer is idle now: the answers to one half of it
// leave before the other half is handed out, so that both have work from then on.
std::uint16_t UringPort::part_of_arrival() noexcept {
    const bool was_idle = std::exchange(idle_polls_, 0) >= kIdlePolls;
    const std::uint32_t segments = (arrival_.bytes + arrival_.segment_bytes - 1U) / arrival_.segment_bytes;
    return was_idle && segments >= kWorthHalving ? static_cast<std::uint16_t>((segments + 1) / 2) : kWhole;
}

// False: no batch is free.
bool UringPort::arm_receive() noexcept {
    if (receive_block_ == nullptr) {
        if (free_batches_.empty()) {
            counters_.count(UringCounter::NoBuffer);
            return false;
        }
        receive_block_ = free_batches_.back();
        free_batches_.pop_back();
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

// What the last exchange brought, if anything, becomes the arrival to hand out.
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
    Path* path = paths_.find(key);
    if (path == nullptr) {
        stranger_ = Path(key, config_.udp_port);
        path = &stranger_;
    }
    const auto bytes = static_cast<std::uint32_t>(receive_.result);
    const auto whole = static_cast<std::uint16_t>(std::min<std::uint32_t>(bytes, 0xffff));
    arrival_.block = std::exchange(receive_block_, nullptr);
    arrival_.block->references = 1;
    lead_arrival_by(*path);
    arrival_.bytes = bytes;
    arrival_.at = 0;
    arrival_.index = 0;
    arrival_.segment_bytes = with.segment_bytes > 0 ? static_cast<std::uint16_t>(with.segment_bytes) : whole;
    arrival_.ecn = with.traffic_class & 3U;
    empty_at_ = found_empty_;
    counters_.count(UringCounter::ReceivedBatches);
    if (bytes == 0) {
        counters_.count(UringCounter::TooShort);
        end_arrival();
        return;
    }
    arrival_.part = part_of_arrival();
}

// False: the segment is no datagram; either way the arrival moves on.
bool UringPort::next_segment(PacketRef& out, Instant now) noexcept {
    const std::uint32_t len = std::min<std::uint32_t>(arrival_.segment_bytes, arrival_.bytes - arrival_.at);
    const bool last = arrival_.at + len == arrival_.bytes;
    bool taken = len >= kLeastDatagram && len <= kMaxUdpPayloadBytes;
    if (taken) [[likely]] {
        place(out, static_cast<std::uint16_t>(len), last);
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
        if (arrival_.path == &stranger_) [[unlikely]] {
            taken = admit(out);
        }
    } else {
        counters_.count(len < kLeastDatagram ? UringCounter::TooShort : UringCounter::TooLong);
    }
    arrival_.at += len;
    ++arrival_.index;
    if (last) {
        end_arrival();
    }
    return taken;
}

// The first whole datagram of somebody new gets it a path. False: this one does not, and is given back.
bool UringPort::admit(PacketRef& out) noexcept {
    Path* const path = out.icrc_ok ? paths_.admit(stranger_.key()) : nullptr;
    if (path != nullptr) {
        stranger_.unpin();
        lead_arrival_by(*path);
        out.path = path;
        return true;
    }
    if (out.icrc_ok) {
        counters_.count(UringCounter::NoPath);
    }
    release_burst({&out, 1});
    return false;
}

// It stays that path for as long as parts of the arrival are to be handed out.
void UringPort::lead_arrival_by(Path& path) noexcept {
    path.pin();
    arrival_.path = &path;
    if (!path.resolved()) {
        path.resolve({}, {});  // the kernel knows the neighbours
    }
}

// Where it lies, or copied out of its 64 KB, which whoever keeps it would keep: short ones that came alone, and all
// when half of the batches are kept already.
void UringPort::place(PacketRef& out, std::uint16_t len, bool last) noexcept {
    Block* block = arrival_.block;
    std::uint8_t* data = block->data + arrival_.at;
    std::size_t room = len;  // the next segment lies right behind
    if (last) {
        room = std::min<std::size_t>(kBatchPayloadBytes - arrival_.at, kMaxUdpPayloadBytes);
    }
    const bool alone = len == arrival_.bytes && len <= kShortBytes;
    if ((alone || free_batches_.size() < config_.batches / 2U) && !free_buffers_.empty()) {
        block = free_buffers_.back();
        free_buffers_.pop_back();
        std::memcpy(block->data, data, len);
        data = block->data;
        room = kMaxUdpPayloadBytes;
    }
    ++block->references;
    out.data = data;
    out.cookie = block;
    out.len = len;
    out.room = static_cast<std::uint16_t>(room);
}

// The ICRC for the IPv4 ID that the sender's kernel gave: 0, or the segment's place in its batch, or a counter.
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
    paths_.keep(*arrival_.path);  // its last parts are of this burst
    arrival_.path->unpin();
    drop_reference(*std::exchange(arrival_.block, nullptr));
}

void UringPort::drop_reference(Block& block) noexcept {
    CAIRN_ASSERT(block.references > 0);
    if (--block.references == 0) {
        (block.batch ? free_batches_ : free_buffers_).push_back(&block);  // reserved for all: never grows
    }
}

void UringPort::release_burst(std::span<PacketRef> packets) noexcept {
    for (const PacketRef& packet : packets) {
        if (packet.cookie != nullptr) {
            drop_reference(*static_cast<Block*>(packet.cookie));
        }
    }
}

}  // namespace cairn::port
