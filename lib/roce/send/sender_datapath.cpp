#include "lib/roce/send/sender.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "lib/base/assert.hpp"
#include "lib/base/user_memory.hpp"

namespace cairn::roce {

Sender::Sender(port::Port& port) noexcept
    : port_(port), burst_(std::clamp<std::size_t>(port.limits().burst, 1, kQueuePackets)) {
    set_end(0);
}

Sender::~Sender() {
    let_paths_go(queued());
    for (port::TxPacket& left : std::span(queue_).first(queued())) {
        port_.release_burst({&left.packet, 1});
    }
    port_.release_burst({stash_.data(), stash_end_});
}

bool Sender::refill() noexcept {
    const std::size_t count = port_.allocate_burst(std::span(stash_).first(kStashBuffers / 2));
    if (count == 0) {
        return false;
    }
    stash_end_ = stash_.data() + count;
    room_ = stash_[0].room;
    return true;
}

// Takes a buffer that is too small to be kept, or for which there is no place.
[[gnu::noinline]] void Sender::give_back_slowly(std::uint8_t* data, void* cookie, std::uint16_t room) noexcept {
    port::PacketRef buffer{.data = data, .cookie = cookie, .room = room};
    if (room < room_) [[unlikely]] {
        port_.release_burst({&buffer, 1});
        return;
    }
    if (stash_end_ == stash_.data() + kStashBuffers) {
        stash_end_ -= kStashBuffers / 2;
        port_.release_burst({stash_end_, kStashBuffers / 2});
    }
    *stash_end_++ = buffer;
}

[[gnu::noinline]] void Sender::drop(std::uint8_t* data, void* cookie, std::uint16_t room) noexcept {
    drops_.count(Drop::TxQueueFull);
    port::PacketRef buffer{.data = data, .cookie = cookie, .room = room};
    port_.release_burst({&buffer, 1});
}

void Sender::set_end(std::size_t queued) noexcept {
    end_ = queue_.data() + queued;
    stop_ = queue_.data() + std::min(kQueuePackets, (queued / burst_ + 1) * burst_);
}

// Returns false if the queue is still full after the port was offered its packets.
bool Sender::make_room(Instant now) noexcept {
    flush(now);
    return queued() < kQueuePackets;
}

void Sender::flush_queued(Instant now) noexcept {
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
    let_paths_go(sent);
    std::move(queue_.data() + sent, end_, queue_.data());
    set_end(queued_before - sent);
    refused_ = sent != queued_before;
}

// Pins the path of a run that begins.
void Sender::keep_path(port::Path* path) noexcept {
    path->pin();
    pinned_[pinned_count_++] = path;
    last_path_ = path;
}

// Unpins the paths of the first `sent` packets, which leave the queue. The run of the first remaining packet keeps its
// pin.
void Sender::let_paths_go(std::size_t sent) noexcept {
    if (sent == queued()) [[likely]] {
        for (; pinned_count_ != 0; --pinned_count_) {
            pinned_[pinned_count_ - 1]->unpin();
        }
        last_path_ = nullptr;
        return;
    }
    std::size_t runs_left = 0;
    const port::Path* run = nullptr;
    for (const port::TxPacket& left : std::span(queue_).first(queued()).subspan(sent)) {
        runs_left += left.packet.path != run ? 1 : 0;
        run = left.packet.path;
    }
    const std::size_t ended = pinned_count_ - runs_left;
    for (port::Path* const path : std::span(pinned_).first(ended)) {
        path->unpin();
    }
    std::copy(pinned_.begin() + static_cast<std::ptrdiff_t>(ended),
              pinned_.begin() + static_cast<std::ptrdiff_t>(pinned_count_), pinned_.begin());
    pinned_count_ = runs_left;
    last_path_ = runs_left != 0 ? pinned_[runs_left - 1] : nullptr;
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
        std::uint8_t* const to = packet.data + packet.len - port::kIcrcBytes;
        const auto copy = [to, tail = queued.tail]() noexcept { std::memcpy(to, tail.data(), tail.size()); };
        if (!UserMemory::run(copy)) [[unlikely]] {
            port::spoil(packet.data);
        }
        packet.len = static_cast<std::uint16_t>(packet.len + queued.tail.size());
        queued.tail = {};
    }
    port_.copy_tails(which);
}

}  // namespace cairn::roce
