#include "lib/roce/sender.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "lib/base/assert.hpp"

namespace cairn::roce {

Sender::Sender(port::Port& carrier) noexcept
    : port_(carrier), burst_(std::clamp<std::size_t>(carrier.limits().burst, 1, kQueuePackets)) {}

Sender::~Sender() {
    for (std::size_t i = 0; i < queued_; ++i) {
        port_.release_burst({&queue_[i].packet, 1});
    }
    port_.release_burst({stash_.data(), stash_count_});
}

bool Sender::refill() noexcept {
    stash_count_ = port_.allocate_burst(std::span(stash_).first(kStashBuffers / 2));
    if (stash_count_ == 0) {
        return false;
    }
    room_ = stash_[0].room;
    return true;
}

void Sender::give_back(const port::PacketRef& buffer) noexcept {
    if (buffer.room < room_) [[unlikely]] {
        port::PacketRef small = buffer;
        port_.release_burst({&small, 1});
        return;
    }
    if (stash_count_ == kStashBuffers) {
        port_.release_burst(std::span(stash_).last(kStashBuffers / 2));
        stash_count_ -= kStashBuffers / 2;
    }
    stash_[stash_count_++] = buffer;
}

void Sender::drop(const port::PacketRef& packet) noexcept {
    ++dropped_;
    port::PacketRef buffer = packet;
    port_.release_burst({&buffer, 1});
}

void Sender::flush(Instant now) noexcept {
    std::size_t sent = 0;
    while (sent < queued_) {
        const std::size_t offered = std::min(burst_, queued_ - sent);
        const std::size_t taken = port_.transmit_burst(std::span(queue_).subspan(sent, offered), now);
        sent += taken;
        if (taken == 0) {
            break;
        }
    }
    std::move(queue_.begin() + static_cast<std::ptrdiff_t>(sent), queue_.begin() + static_cast<std::ptrdiff_t>(queued_),
              queue_.begin());
    queued_ -= sent;
}

void Sender::settle_tails() noexcept {
    for (port::TxPacket& queued : std::span(queue_).first(queued_)) {
        port::PacketRef& packet = queued.packet;
        if (queued.tail.empty()) {
            continue;
        }
        CAIRN_ASSERT(packet.len + queued.tail.size() <= packet.room);
        std::memcpy(packet.data + packet.len - port::kIcrcBytes, queued.tail.data(), queued.tail.size());
        packet.len = static_cast<std::uint16_t>(packet.len + queued.tail.size());
        queued.tail = {};
    }
    port_.settle_tails();
}

}  // namespace cairn::roce
