// Sender: what an engine sends through. It keeps a few empty buffers at hand, collects datagrams into a
// burst and hands the burst to the port once per loop turn; nothing here is virtual per packet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/port/port.hpp"
#include "lib/roce/send/drops.hpp"

namespace cairn::roce {

// Driven by the worker that owns the port. Buffers taken but neither queued nor given back leak: callers
// do one of the two. On destruction all buffers return to the port.
class Sender {
public:
    static constexpr std::size_t kQueuePackets = 256;
    static constexpr std::size_t kStashBuffers = 32;

    explicit Sender(port::Port& port) noexcept;
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;
    ~Sender();

    // An empty buffer; `cookie` is nullptr when the pool is exhausted.
    [[nodiscard]] port::PacketRef take() noexcept {
        if (stash_count_ == 0 && !refill()) {
            return {};
        }
        return stash_[--stash_count_];
    }
    // Gives an unneeded buffer back: kept for take() when it has the room of a fresh one.
    void give_back(const port::PacketRef& buffer) noexcept;

    // Queues the datagram of `len` bytes (BTH ... ICRC, less the tail) that lies at buffer.data; `tail` as in
    // TxPacket. With a full queue even after a flush the packet is dropped and counted: to the protocol above it
    // is one more lost datagram.
    void send(const port::PacketRef& buffer, port::Path* path, std::size_t len, std::span<const std::uint8_t> tail,
              Instant now) noexcept {
        if (end_ == stop_ && !make_room(now)) [[unlikely]] {
            drop(buffer);
            return;
        }
        // Field by field: the whole struct was written piece by piece just now and would not be forwarded.
        port::TxPacket& queued = *end_++;
        queued.packet.data = buffer.data;
        queued.packet.path = path;
        queued.packet.cookie = buffer.cookie;
        queued.packet.len = static_cast<std::uint16_t>(len);
        queued.packet.room = buffer.room;
        queued.tail = tail;
        path->pin();  // its owner may end before it leaves
    }
    // Hands what is queued to the port; what it does not take stays queued, in order.
    void flush(Instant now) noexcept;
    // Memory that was given as tails is about to change, and packets with them may wait here or in the port: returns
    // when none of the tails that `which` means is read any more. Those that wait are copied; for those that a device
    // has, the port is asked.
    void settle_tails(const port::TailFilter& which) noexcept {
        copy_tails(which);
        port_.settle_tails();
    }
    void settle_tails(std::span<const std::uint8_t> memory) noexcept;
    void settle_tails() noexcept;  // all
    // The same for those that no device has. For a peer that answers what it can not have seen: what a device has
    // it is sending.
    void copy_tails(const port::TailFilter& which) noexcept;
    void copy_tails(std::span<const std::uint8_t> memory) noexcept;
    // Some packets were offered and are not on their way yet.
    [[nodiscard]] bool holds_back() const noexcept { return refused_ || port_.holds_back(); }

    [[nodiscard]] port::Port& port() noexcept { return port_; }
    [[nodiscard]] std::size_t queued() const noexcept { return static_cast<std::size_t>(end_ - queue_.data()); }
    // Those that found the queue full.
    [[nodiscard]] const telemetry::CounterSet<Drop>& drops() const noexcept { return drops_; }

private:
    bool refill() noexcept;
    bool make_room(Instant now) noexcept;
    void set_end(std::size_t queued) noexcept;
    void drop(const port::PacketRef& packet) noexcept;
    void unpin(std::size_t count) noexcept;

    port::Port& port_;
    std::size_t burst_;
    port::TxPacket* end_ = nullptr;   // behind what is queued
    port::TxPacket* stop_ = nullptr;  // where the next burst is complete, or the queue is full
    bool refused_ = false;            // some that are queued were, at the last flush
    std::size_t stash_count_ = 0;
    telemetry::CounterSet<Drop> drops_;
    std::uint16_t room_ = 0xffff;  // of a fresh buffer, once one was seen
    std::array<port::PacketRef, kStashBuffers> stash_{};
    std::array<port::TxPacket, kQueuePackets> queue_{};
};

}  // namespace cairn::roce
