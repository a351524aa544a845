// UringPort: groups packets into batches, each of which is one send.
#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"
#include "lib/port/uring_port.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::port {

namespace {

constexpr std::uint32_t kSegmentsMax = 128;    // most segments of one send
constexpr std::uint32_t kGsoBytesV4 = 65'493;  // above it the kernel cuts in software, silently
constexpr std::uint32_t kGsoBytesV6 = 65'473;
constexpr Duration kBatchesAgain = seconds(1);

template <class T>
void add_control(msghdr& header, int level, int type, T value) noexcept {
    auto* const entry =
        reinterpret_cast<cmsghdr*>(static_cast<std::uint8_t*>(header.msg_control) + header.msg_controllen);
    entry->cmsg_level = level;
    entry->cmsg_type = type;
    entry->cmsg_len = CMSG_LEN(sizeof(value));
    std::memcpy(CMSG_DATA(entry), &value, sizeof(value));
    header.msg_controllen += CMSG_SPACE(sizeof(value));
}

void add_traffic_class(msghdr& header, const PathKey& key) noexcept {
    if (key.traffic_class != 0) {
        const bool v4 = key.local.is_v4();
        add_control(header, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, int{key.traffic_class});
    }
}

UringCounter refusal(std::int32_t result) noexcept {
    return result == -EMSGSIZE ? UringCounter::RouteMtu : UringCounter::SendFailed;
}

std::size_t length_of(const TxPacket& packet) noexcept {
    return packet.packet.len + packet.tail.size();
}

}  // namespace

std::size_t UringPort::allocate_burst(std::span<PacketRef> out) noexcept {
    std::size_t count = 0;
    while (count < out.size() && blocks_.has_buffer()) {
        Block* const block = blocks_.take_buffer();
        out[count] = {};
        out[count].data = block->data;
        out[count].cookie = block;
        out[count].room = kMaxUdpPayloadBytes;
        ++count;
    }
    if (count < out.size()) [[unlikely]] {
        counters_.count(UringCounter::NoBuffer);
    }
    return count;
}

// Queues the packets. They leave with the next exchange: the one call of the next receive_burst(), or of wait().
std::size_t UringPort::transmit_burst(std::span<TxPacket> packets, Instant now) noexcept {
    turn_ = now;
    const std::size_t count = take_room(packets.size());
    for (std::size_t first = 0; first < count; ++first) {
        if (packets[first].packet.cookie != nullptr) {
            append_batch(packets.first(count), first);
        }
    }
    return count;
}

std::size_t UringPort::transmit_as_is(std::span<TxPacket> packets) noexcept {
    const std::size_t count = take_room(packets.size());
    for (TxPacket& packet : packets.first(count)) {
        SendBatch& batch = begin_batch(packet);
        append_piece(batch, packet.packet.data, packet.packet.len);
        if (capture_ != nullptr) {
            const std::span<const std::uint8_t> whole(packet.packet.data, packet.packet.len);
            capture_->record(Direction::Transmit, *batch.path, {&whole, 1}, 0, 0);
        }
        sending_[packets_++] = packet;
        ++batch.packets;
        packet.packet.cookie = nullptr;
        address(batch, messages_[sends_++]);
    }
    return count;
}

// Returns how many of `packets` can be appended now. If there is no room for all, queued packets are sent first.
std::size_t UringPort::take_room(std::size_t packets) noexcept {
    const auto room = [this] { return std::min({kSends - sends_, kPackets - packets_, (kPieces - pieces_) / 3}); };
    if (!backlog_ && room() < packets) {
        exchange(nullptr);
    }
    return backlog_ ? 0 : std::min(packets, room());
}

UringPort::SendBatch& UringPort::begin_batch(const TxPacket& first) noexcept {
    SendBatch& batch = batches_[sends_];
    batch.path = first.packet.path;
    batch.path->pin();
    batch.first_packet = static_cast<std::uint32_t>(packets_);
    batch.first_piece = static_cast<std::uint32_t>(pieces_);
    batch.packets = batch.pieces = batch.bytes = 0;
    batch.most_packets = gso_ && batch.path->takes_batches_from() <= turn_ ? kSegmentsMax : 1;
    batch.segment_bytes = static_cast<std::uint16_t>(length_of(first));
    return batch;
}

// Appends the first packet and all later ones that go the same way, as far as one send takes them in order. The peer's
// kernel brings all of a batch to one worker. So a batch is for queue pairs of one worker, if the peer has as many
// workers as we have. If the peer has another number, it hands over datagrams that came to the wrong worker.
void UringPort::append_batch(std::span<TxPacket> packets, std::size_t first) noexcept {
    const bool apart = !queue_.is_alone();
    const std::uint16_t owner = apart ? queue_.owner_of(packets[first].packet.data) : 0;
    const bool goes_on = !backlog_ && sends_ != 0 && batches_[sends_ - 1].goes_on_with(packets[first], owner);
    SendBatch& batch = goes_on ? batches_[--sends_] : begin_batch(packets[first]);
    batch.owner = owner;
    for (TxPacket& packet : packets.subspan(first)) {
        if (packet.packet.cookie == nullptr || packet.packet.path != batch.path ||
            (apart && queue_.owner_of(packet.packet.data) != owner)) {
            continue;
        }
        if (!batch.takes(length_of(packet))) {
            break;
        }
        append_packet(batch, packet);
        packet.packet.cookie = nullptr;
        if (length_of(packet) < batch.segment_bytes) {
            break;  // only the last may be shorter
        }
    }
    address(batch, messages_[sends_++]);
}

bool UringPort::SendBatch::goes_on_with(const TxPacket& packet, std::uint16_t its_owner) const noexcept {
    const bool is_same_way = path == packet.packet.path && owner == its_owner;
    return is_same_way && bytes == packets * segment_bytes && takes(length_of(packet));
}

bool UringPort::SendBatch::takes(std::size_t len) const noexcept {
    const std::uint32_t most = path->is_v4() ? kGsoBytesV4 : kGsoBytesV6;
    return packets == 0 || (packets < most_packets && len <= segment_bytes && bytes + len <= most);
}

void UringPort::address(SendBatch& batch, SocketMessage& message) noexcept {
    const PathKey& key = batch.path->key();
    msghdr& header = message.header;
    header.msg_namelen = to_sockaddr(key.remote, config_.udp_port, batch.to);
    header.msg_name = &batch.to;
    header.msg_iov = &send_pieces_[batch.first_piece];
    header.msg_iovlen = batch.pieces;
    header.msg_flags = 0;
    header.msg_control = batch.control.data();
    header.msg_controllen = 0;
    if (batch.packets > 1) {
        add_control(header, IPPROTO_UDP, UDP_SEGMENT, batch.segment_bytes);
    }
    add_traffic_class(header, key);
    if (header.msg_controllen == 0) {
        header.msg_control = nullptr;
    }
}

void UringPort::exchange(SocketMessage* receive) noexcept {
    if (sends_ != 0 || receive != nullptr) {
        if (capture_ != nullptr) [[unlikely]] {
            capture_->flush();
        }
        io_->exchange(std::span(messages_).first(sends_), receive);
        finish_sends();
    }
}

// Keeps sends that did not fit into the socket's buffer, in order, for the next exchange.
void UringPort::finish_sends() noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < sends_; ++i) {
        if (!finish(i)) {
            if (kept != i) {
                batches_[kept] = batches_[i];
            }
            address(batches_[kept], messages_[kept]);
            ++kept;
        }
    }
    backlog_ = kept != 0;
    sends_ = kept;
    if (kept == 0) {
        packets_ = pieces_ = staged_ = 0;
    }
}

// Returns false if the send is to be tried again.
bool UringPort::finish(std::size_t index) noexcept {
    SendBatch& batch = batches_[index];
    const std::int32_t result = messages_[index].result;
    if (messages_[index].found_no_room()) {
        counters_.count(UringCounter::SendWaited);
        return false;
    }
    if (result >= 0) [[likely]] {
        counters_.count(UringCounter::Transmitted, batch.packets);
        counters_.count(UringCounter::TransmittedBatches);
    } else if (batch.packets > 1 &&
               (result == -EINVAL || result == -EIO || result == -EOPNOTSUPP || result == -EMSGSIZE)) {
        send_singly(batch);
    } else {
        counters_.count(refusal(result), batch.packets);
    }
    for (std::uint32_t i = 0; i < batch.packets; ++i) {
        if (void* const block = sending_[batch.first_packet + i].packet.cookie; block != nullptr) {
            blocks_.drop_reference(*static_cast<Block*>(block));
        }
    }
    batch.path->unpin();
    return true;
}

// Sends a refused batch as single datagrams, each with ID 0. The interface takes no batches (no checksum offload), or
// the route takes no datagrams of this length. For a while this path's datagrams go one per send.
void UringPort::send_singly(SendBatch& batch) noexcept {
    batch.path->refuse_batches_until(turn_ + kBatchesAgain);
    for (std::uint32_t i = 0; i < batch.packets; ++i) {
        const TxPacket& packet = sending_[batch.first_packet + i];
        std::uint8_t* const icrc_at = packet.packet.data + packet.packet.len - kIcrcBytes;
        std::uint32_t icrc = 0;
        std::memcpy(&icrc, icrc_at, sizeof(icrc));
        if (batch.path->is_v4()) {
            icrc ^= deltas_.delta(static_cast<std::uint16_t>(length_of(packet)), static_cast<std::uint16_t>(i));
            std::memcpy(icrc_at, &icrc, sizeof(icrc));
        }
        std::array<iovec, 3> pieces{{{packet.packet.data, std::size_t{packet.packet.len} - kIcrcBytes},
                                     {const_cast<std::uint8_t*>(packet.tail.data()), packet.tail.size()},
                                     {icrc_at, kIcrcBytes}}};
        SocketMessage message;
        message.header.msg_name = &batch.to;
        message.header.msg_namelen = to_sockaddr(batch.path->key().remote, config_.udp_port, batch.to);
        message.header.msg_iov = pieces.data();
        message.header.msg_iovlen = pieces.size();
        message.header.msg_control = batch.control.data();
        add_traffic_class(message.header, batch.path->key());
        io_->exchange({&message, 1}, nullptr);
        if (message.result >= 0) {
            counters_.count(UringCounter::SentSingly);
        } else {
            counters_.count(refusal(message.result));
        }
    }
}

}  // namespace cairn::port
