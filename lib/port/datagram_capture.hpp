// Writes the datagrams of a socket port to a capture file as frames. A frame has the lower headers that a NIC would
// have shown. So Wireshark dissects the frames, and their ICRC is right.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/port/capture_thread.hpp"
#include "lib/port/path.hpp"
#include "lib/port/pcap_writer.hpp"

namespace cairn::port {

// Recorded datagrams lie in memory until the capture's own thread has written them.
class DatagramCapture {
public:
    class Lane;

    // `lanes` is the number of threads that record. Each thread uses a lane of its own.
    static Result<std::unique_ptr<DatagramCapture>> open(const std::string& file_name, std::size_t lanes = 1);
    ~DatagramCapture();
    DatagramCapture(const DatagramCapture&) = delete;
    DatagramCapture& operator=(const DatagramCapture&) = delete;

    [[nodiscard]] Lane& lane(std::size_t index) noexcept { return *lanes_[index]; }

private:
    DatagramCapture(std::string file_name, std::unique_ptr<PcapWriter> writer, std::size_t lanes);
    void drain() noexcept;

    std::string file_name_;
    std::unique_ptr<PcapWriter> writer_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::optional<CaptureThread> thread_;
};

// The ring in which one thread records.
class DatagramCapture::Lane {
public:
    Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    // Records a datagram. `pieces` is BTH ... ICRC in one or several parts. `ip_id` is the IPv4 ID that the ICRC
    // covers, `ecn` the received ECN bits. The call never waits. A datagram that finds no room is counted as missed.
    void record(Direction direction, const Path& path, std::span<const std::span<const std::uint8_t>> pieces,
                std::uint16_t ip_id, std::uint8_t ecn) noexcept;

    // Only the capture's thread calls begin_drain(), front() and pop(). front() returns the oldest frame left that was
    // recorded before the last begin_drain(); nothing if there is none. pop() removes it.
    void begin_drain() noexcept { drain_to_ = recorded_.load(std::memory_order_acquire); }
    struct Frame {
        Instant when{};
        std::span<const std::uint8_t> bytes{};
    };
    [[nodiscard]] std::optional<Frame> front() noexcept;
    void pop() noexcept;

    // Returns the number of missed datagrams. May be called once nobody records any more.
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }

private:
    // Stands in front of each frame in the ring. A frame that does not fit in front of the ring's end goes to its
    // beginning.
    struct alignas(16) Header {
        Instant when{};
        std::uint32_t bytes = 0;
        bool at_beginning = false;  // the frame stands at the ring's beginning
    };
    static constexpr std::size_t kRingBytes = std::size_t{4} << 20U;

    [[nodiscard]] std::uint8_t* room_for(std::size_t bytes) noexcept;
    [[nodiscard]] Header header_at(std::uint64_t position) const noexcept;

    std::unique_ptr<std::uint8_t[]> ring_;  // [kRingBytes]
    std::uint64_t begun_ = 0;               // bytes recorded so far, the frame under way included
    std::uint64_t missed_ = 0;
    std::uint64_t drain_to_ = 0;
    std::atomic<std::uint64_t> recorded_{0};
    std::atomic<std::uint64_t> drained_{0};
};

}  // namespace cairn::port
