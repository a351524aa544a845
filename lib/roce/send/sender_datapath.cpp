#include "lib/roce/send/sender.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "lib/base/assert.hpp"

namespace cairn::roce {

Sender::Sender(port::Port& port) noexcept
    : port_(port), burst_(std::clamp<std::size_t>(port.limits().burst, 1, kQueuePackets)) {
    set_end(0);
}

Sender::~Sender() {
    unpin(queued());
    for (port::TxPacket& left : std::span(queue_).first(queued())) {
        port_.release_burst({&left.packet, 1});
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

// Too small to be kept, or there is no place.
void Sender::give_back_slowly(const port::PacketRef& buffer) noexcept {
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
    drops_.count(Drop::TxQueueFull);
    port::PacketRef buffer = packet;
    port_.release_burst({&buffer, 1});
}

void Sender::set_end(std::size_t queued) noexcept {
    end_ = queue_.data() + queued;
    stop_ = queue_.data() + std::min(kQueuePackets, (queued / burst_ + 1) * burst_);
}

// False: the queue is full although the port was asked.
bool Sender::make_room(Instant now) noexcept {
    flush(now);
    return queued() < kQueuePackets;
}

void Sender::flush(Instant now) noexcept {
    const std::size_t queued_before = queued();
    std::size_t sent = 0;
    while (sent < queued_before) {
        const std::size_t offered = std::min(burst_, queued_before - sent);
        const std::size_t taken = port_.transmit_burst(std::span(queue_).subspan(sent, offered), now);
        sent += taken;
        if (taken == 0) {
            break;
        }
    }
    unpin(sent);
    std::move(queue_.data() + sent, end_, queue_.data());
    set_end(queued_before - sent);
    refused_ = sent != queued_before;
}

void Sender::unpin(std::size_t count) noexcept {
    for (const port::TxPacket& each : std::span(queue_).first(count)) {
        each.packet.path->unpin();
    }
}

void Sender::settle_tails(std::span<const std::uint8_t> memory) noexcept {
    copy_tails(memory);
    port_.settle_tails();
}

void Sender::settle_tails() noexcept {
    const auto all = [](const port::TxPacket&) noexcept { return true; };
    settle_tails(port::TailFilter(all));
}

void Sender::copy_tails(std::span<const std::uint8_t> memory) noexcept {
    const auto overlaps = [memory](const port::TxPacket& packet) noexcept {
        return packet.tail.data() < memory.data() + memory.size() &&
               memory.data() < packet.tail.data() + packet.tail.size();
    };
    copy_tails(port::TailFilter(overlaps));
}

void Sender::copy_tails(const port::TailFilter& which) noexcept {
    for (port::TxPacket& queued : std::span(queue_).first(queued())) {
        port::PacketRef& packet = queued.packet;
        if (queued.tail.empty() || !which(queued)) {
            continue;
        }
        CAIRN_ASSERT(packet.len + queued.tail.size() <= packet.room);
        std::memcpy(packet.data + packet.len - port::kIcrcBytes, queued.tail.data(), queued.tail.size());
        packet.len = static_cast<std::uint16_t>(packet.len + queued.tail.size());
        queued.tail = {};
    }
    port_.copy_tails(which);
}

}  // namespace cairn::roce
