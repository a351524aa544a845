// Ports that are joined in memory, for counting without a device.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "lib/port/path_table.hpp"
#include "lib/port/port.hpp"

namespace cairn::ruler {

constexpr std::size_t kBufferHeadroom = 128;
constexpr std::size_t kBufferRoom = 2048;
constexpr std::size_t kLinkBuffers = 4096;
constexpr std::size_t kLinkFrames = 4096;  // under way, each way

struct alignas(64) Buffer {
    std::array<std::uint8_t, kBufferHeadroom + kBufferRoom> bytes;
};

// The buffers of both ends of a link: they change hands with the frames that lie in them.
class BufferStore {
public:
    BufferStore() {
        for (Buffer& buffer : buffers_) {
            free_.push_back(&buffer);
        }
    }
    // Returns nullptr if none is left.
    [[nodiscard]] Buffer* take() noexcept {
        if (free_.empty()) {
            return nullptr;
        }
        Buffer* const buffer = free_.back();
        free_.pop_back();
        return buffer;
    }
    void give_back(void* buffer) noexcept { free_.push_back(static_cast<Buffer*>(buffer)); }

private:
    std::vector<Buffer> buffers_{kLinkBuffers};
    std::vector<Buffer*> free_;
};

// One end of a link in memory. Frames are handed over in place; headers and ICRC are written and judged as on a
// network. One thread uses both ends.
class MemoryPort final : public port::Port {
public:
    // The store outlives the port.
    MemoryPort(const char* address, std::uint8_t mac, BufferStore& store)
        : address_(net::IpAddress::parse(address).value()), store_(store) {
        mac_.octets = {2, 0, 0, 0, 0, mac};
    }
    void connect(MemoryPort& other) { peer_ = &other; }

    [[nodiscard]] std::size_t receive_burst(std::span<port::PacketRef> out, Instant now) noexcept override {
        paths_.begin_burst();
        empty_at_ = now;
        if (known_ == nullptr) {
            known_ = open_path({address_, peer_->address_, port::kFirstUdpSourcePort, 0}, now);
        }
        const std::size_t count = std::min(out.size(), tail_ - head_);
        const Frame* const ring = ring_.data();
        port::Path& path = *known_;
        std::size_t at = head_;
        for (port::PacketRef& packet : out.first(count)) {
            const Frame& frame = ring[at++ % kLinkFrames];
            if (path.judge_arrival(frame.bytes, frame.length, packet) != port::Path::Arrival::Whole) {
                std::abort();
            }
            packet.cookie = frame.buffer;
            packet.room = kBufferRoom - port::Path::kLowerBytesV4;
            paths_.keep(path);
        }
        head_ = at;
        return count;
    }
    [[nodiscard]] Instant empty_at() const noexcept override { return empty_at_; }
    [[nodiscard]] std::size_t transmit_burst(std::span<port::TxPacket> packets, Instant) noexcept override {
        constexpr std::size_t kLower = port::Path::kLowerBytesV4;
        Frame* const ring = peer_->ring_.data();
        std::size_t at = peer_->tail_;
        for (const port::TxPacket& each : packets) {
            each.packet.path->seal(each.packet.data, each.packet.len);
            ring[at++ % kLinkFrames] = {each.packet.data - kLower, each.packet.len + kLower, each.packet.cookie};
        }
        peer_->tail_ = at;
        return packets.size();
    }
    [[nodiscard]] std::size_t allocate_burst(std::span<port::PacketRef> out) noexcept override {
        std::size_t count = 0;
        constexpr std::size_t kLower = port::Path::kLowerBytesV4;
        for (; count < out.size(); ++count) {
            Buffer* const buffer = store_.take();
            if (buffer == nullptr) {
                break;
            }
            out[count] = {};
            out[count].cookie = buffer;
            out[count].data = buffer->bytes.data() + kBufferHeadroom + kLower;
            out[count].room = static_cast<std::uint16_t>(kBufferRoom - kLower);
        }
        return count;
    }
    void release_burst(std::span<port::PacketRef> packets) noexcept override {
        for (port::PacketRef& packet : packets) {
            if (packet.cookie != nullptr) {
                store_.give_back(packet.cookie);
                packet.cookie = nullptr;
            }
        }
    }
    [[nodiscard]] bool can_send_from(std::span<const std::uint8_t>) const noexcept override { return false; }
    [[nodiscard]] port::Path* open_path(const port::PathKey& key, Instant) noexcept override {
        port::Path* const path = paths_.intern(key);
        path->resolve(mac_, peer_->mac_);
        return path;
    }
    void on_timeout(Instant) noexcept override {}
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return address_; }
    [[nodiscard]] port::PortLimits limits() const noexcept override { return {1200, 32, true, false}; }
    [[nodiscard]] std::string describe() const override { return "memory"; }

private:
    struct Frame {
        std::uint8_t* bytes;
        std::size_t length;
        void* buffer;
    };
    net::IpAddress address_;
    BufferStore& store_;
    net::MacAddress mac_{};
    MemoryPort* peer_ = nullptr;
    port::Path* known_ = nullptr;
    Instant empty_at_{};
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
    std::vector<Frame> ring_{kLinkFrames};
    port::PathTable paths_{256};
};

}  // namespace cairn::ruler
