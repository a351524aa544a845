// UringPort: seals the packets of a batch, and collects the pieces of memory that they are sent from.
#include <algorithm>
#include <array>
#include <cstring>

#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"
#include "lib/base/user_memory.hpp"
#include "lib/port/uring_port.hpp"
#include "lib/wire/icrc.hpp"

namespace cairn::port {

namespace {

constexpr std::array<std::uint8_t, kMaxUdpPayloadBytes> kNoTail{};  // in the place of a tail that has vanished

// Adds the tail to the ICRC. Returns false if the tail has vanished.
bool add_tail(std::uint32_t& icrc, std::span<const std::uint8_t>& tail) noexcept {
    const auto add = [&icrc, tail]() noexcept { icrc = wire::crc32(icrc, tail.data(), tail.size()); };
    if (UserMemory::run(add)) [[likely]] {
        return true;
    }
    tail = std::span(kNoTail).first(tail.size());
    return false;
}

}  // namespace

// Segment i gets IPv4 ID i when the kernel or the NIC cuts the batch. The ICRC is computed for that ID from the start.
void UringPort::append_packet(SendBatch& batch, const TxPacket& packet) noexcept {
    TxPacket& kept = sending_[packets_++];
    kept = packet;
    PacketRef& head = kept.packet;
    std::span<const std::uint8_t>& tail = kept.tail;
    const auto len = static_cast<std::uint16_t>(packet.packet.len + tail.size());
    const std::size_t header_bytes = std::size_t{head.len} - kIcrcBytes;
    if (header_bytes + kIcrcBytes <= kStagedBytes && !continues(batch, head.data)) {
        stage(head);
    }
    std::uint32_t icrc = 0;
    if (tail.empty()) {
        icrc = head.path->icrc(Direction::Transmit, head.data, len);
    } else {
        icrc = head.path->icrc_of_headers(Direction::Transmit, head.data, header_bytes, len);
        if (!add_tail(icrc, tail)) [[unlikely]] {
            spoil(head.data);  // whatever its ICRC
        }
    }
    const auto ip_id = static_cast<std::uint16_t>(head.path->is_v4() ? batch.packets : 0);
    icrc ^= ip_id != 0 ? deltas_.delta(len, ip_id) : 0;
    std::memcpy(head.data + header_bytes, &icrc, sizeof(icrc));
    if (tail.empty()) {
        append_piece(batch, head.data, head.len);
    } else {
        append_piece(batch, head.data, header_bytes);
        append_piece(batch, tail.data(), tail.size());
        append_piece(batch, head.data + header_bytes, kIcrcBytes);
    }
    if (capture_ != nullptr) [[unlikely]] {
        const std::array<std::span<const std::uint8_t>, 3> pieces{
            {{head.data, header_bytes}, tail, {head.data + header_bytes, kIcrcBytes}}};
        capture_->record(Direction::Transmit, *head.path, pieces, ip_id, 0);
    }
    ++batch.packets;
    batch.bytes += len;
}

bool UringPort::continues(const SendBatch& batch, const std::uint8_t* data) const noexcept {
    if (batch.pieces == 0) {
        return false;
    }
    const iovec& last = send_pieces_[pieces_ - 1];
    return static_cast<const std::uint8_t*>(last.iov_base) + last.iov_len == data;
}

// Copies the packet, so that its buffer is free at once.
void UringPort::stage(PacketRef& packet) noexcept {
    std::uint8_t* const at = staging_.data() + BlockPool::kHeadroomBytes + staged_;
    copy_bytes(at, packet.data, std::size_t{packet.len} - kIcrcBytes);
    staged_ += packet.len;
    packet.data = at;
    blocks_.drop_reference(*static_cast<Block*>(packet.cookie));
    packet.cookie = nullptr;
}

// Extends the last piece if the data follow it: answers often lie where their requests did, one after the other.
void UringPort::append_piece(SendBatch& batch, const std::uint8_t* data, std::size_t bytes) noexcept {
    auto* const at = const_cast<std::uint8_t*>(data);
    if (continues(batch, data)) {
        send_pieces_[pieces_ - 1].iov_len += bytes;
        return;
    }
    send_pieces_[pieces_++] = {at, bytes};
    ++batch.pieces;
}

// Replaces tails, each of which is a piece of its own. Sealed headers and ICRC stay unchanged.
void UringPort::copy_tails(const TailFilter& which) noexcept {
    for (SendBatch& batch : std::span(batches_).first(sends_)) {
        std::size_t piece = batch.first_piece;
        for (std::size_t i = batch.first_packet; i < std::size_t{batch.first_packet} + batch.packets; ++i) {
            TxPacket& packet = sending_[i];
            if (packet.tail.empty()) {
                continue;
            }
            while (send_pieces_[piece].iov_base != packet.tail.data()) {
                ++piece;
                CAIRN_ASSERT(piece < std::size_t{batch.first_piece} + batch.pieces);
            }
            if (which(packet)) {
                std::uint8_t* const copy = tail_copies_ + i * kMaxUdpPayloadBytes;
                const auto copy_it = [copy, tail = packet.tail]() noexcept {
                    copy_bytes(copy, tail.data(), tail.size());
                };
                (void)UserMemory::run(copy_it);  // the ICRC of a tail that has vanished is wrong
                send_pieces_[piece].iov_base = copy;
                packet.tail = {copy, packet.tail.size()};
            }
            ++piece;
        }
    }
}

}  // namespace cairn::port
