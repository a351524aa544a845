// Sender: an engine's way to the port. It keeps a few empty buffers at hand, collects datagrams into a burst, and hands
// the burst to the port once per turn. No call per packet is virtual.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/port/port.hpp"
#include "lib/roce/send/drops.hpp"

namespace cairn::roce {

// Driven by the worker that owns the port. Its user sends or gives back each buffer that it takes; otherwise the buffer
// is lost. The destructor returns all buffers to the port.
class Sender {
public:
    static constexpr std::size_t kQueuePackets = 256;
    static constexpr std::size_t kStashBuffers = 32;

    explicit Sender(port::Port& port) noexcept;
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;
    ~Sender();

    // Takes an empty buffer. Its `cookie` is nullptr if the pool is exhausted.
    [[nodiscard]] port::PacketRef take() noexcept {
        if (stash_end_ == stash_.data() && !refill()) [[unlikely]] {
            return {};
        }
        // Copied field by field: the whole struct would be read back from where it was just stored.
        const port::PacketRef& kept = *--stash_end_;
        port::PacketRef taken;
        taken.data = kept.data;
        taken.cookie = kept.cookie;
        taken.room = kept.room;
        return taken;
    }
    // Gives an unneeded buffer back. It is kept for take() if it has the room of a fresh one.
    void give_back(const port::PacketRef& buffer) noexcept {
        if (buffer.room < room_ || stash_end_ == stash_.data() + kStashBuffers) [[unlikely]] {
            give_back_slowly(buffer.data, buffer.cookie, buffer.room);
            return;
        }
        port::PacketRef& kept = *stash_end_++;
        kept.data = buffer.data;
        kept.cookie = buffer.cookie;
        kept.room = buffer.room;
    }

    // Queues the datagram of `len` bytes (BTH ... ICRC, less the tail) at buffer.data; `tail` as in TxPacket. If the
    // queue is full even after a flush, the packet is dropped and counted. The protocol above sees one more lost
    // datagram.
    void send(const port::PacketRef& buffer, port::Path* path, std::size_t len, std::span<const std::uint8_t> tail,
              Instant now) noexcept {
        if (end_ == stop_ && !make_room(now)) [[unlikely]] {
            drop(buffer.data, buffer.cookie, buffer.room);
            return;
        }
        // Copied field by field: the whole struct was written piece by piece just now and would not be forwarded.
        port::TxPacket& queued = *end_++;
        queued.packet.data = buffer.data;
        queued.packet.path = path;
        queued.packet.cookie = buffer.cookie;
        queued.packet.len = static_cast<std::uint16_t>(len);
        queued.packet.room = buffer.room;
        queued.tail = tail;
        if (path != last_path_) {
            keep_path(path);
        }
    }
    // Hands the queued packets to the port. Packets that the port does not take stay queued, in order.
    void flush(Instant now) noexcept {
        if (end_ == queue_.data()) {
            refused_ = false;
            return;
        }
        flush_queued(now);
    }
    // Settles tails. Called before memory changes that packets may have as tails. When it returns, the tails that
    // `which` selects are no longer read. Tails of packets that wait here are copied, and the port settles the tails
    // that a device has.
    void settle_tails(const port::TailFilter& which) noexcept {
        copy_tails(which);
        port_.settle_tails();
    }
    void settle_tails(std::span<const std::uint8_t> memory) noexcept;
    void settle_tails() noexcept;  // all tails
    // Copies the tails that no device has yet. Used for peers that answer packets which they cannot have seen: a packet
    // that a device has is being sent.
    void copy_tails(const port::TailFilter& which) noexcept;
    void copy_tails(std::span<const std::uint8_t> memory) noexcept;
    // Returns true if packets that were offered to the port are not on their way yet.
    [[nodiscard]] bool holds_back() const noexcept { return refused_ || port_.holds_back(); }

    [[nodiscard]] port::Port& port() noexcept { return port_; }
    [[nodiscard]] std::size_t queued() const noexcept { return static_cast<std::size_t>(end_ - queue_.data()); }
    // Returns the counters of dropped packets, for which the queue was full even after a flush.
    [[nodiscard]] const telemetry::CounterSet<Drop>& drops() const noexcept { return drops_; }

private:
    bool refill() noexcept;
    // Takes a buffer in parts, so that the callers keep it in registers.
    void give_back_slowly(std::uint8_t* data, void* cookie, std::uint16_t room) noexcept;
    void drop(std::uint8_t* data, void* cookie, std::uint16_t room) noexcept;
    bool make_room(Instant now) noexcept;
    void flush_queued(Instant now) noexcept;
    void set_end(std::size_t queued) noexcept;
    void keep_path(port::Path* path) noexcept;
    void let_paths_go(std::size_t sent) noexcept;

    port::Port& port_;
    std::size_t burst_;
    port::TxPacket* end_ = nullptr;   // after the last queued packet
    port::TxPacket* stop_ = nullptr;  // where the next burst is complete, or the queue is full
    bool refused_ = false;            // the port refused some of the queued packets at the last flush
    telemetry::CounterSet<Drop> drops_;
    std::uint16_t room_ = 0xffff;  // of a fresh buffer, as soon as one was seen
    // The owner of a path may end before the packet leaves. So each run of queued packets with one path pins it.
    port::Path* last_path_ = nullptr;  // of the newest run; nullptr: nothing is queued
    std::size_t pinned_count_ = 0;
    std::array<port::Path*, kQueuePackets> pinned_{};  // by run
    std::array<port::PacketRef, kStashBuffers> stash_{};
    port::PacketRef* stash_end_ = stash_.data();
    std::array<port::TxPacket, kQueuePackets> queue_{};
};

}  // namespace cairn::roce
