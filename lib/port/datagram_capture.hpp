// Writes the datagrams of a socket port to a capture file as frames: with the lower headers that a NIC would have
// shown, so that Wireshark dissects them and their ICRC holds.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/base/result.hpp"
#include "lib/port/capture_thread.hpp"
#include "lib/port/path.hpp"
#include "lib/port/pcap_writer.hpp"

namespace cairn::port {

// One thread records; what it records lies in memory until a thread of the capture's own has written it.
class DatagramCapture {
public:
    static Result<std::unique_ptr<DatagramCapture>> open(const std::string& file_name);
    ~DatagramCapture();
    DatagramCapture(const DatagramCapture&) = delete;
    DatagramCapture& operator=(const DatagramCapture&) = delete;

    // BTH ... ICRC in one or several pieces; `ip_id` as it counts in the ICRC (IPv4), `ecn` as received. Waits for
    // nothing: what finds no room is counted as missed.
    void record(Direction direction, const Path& path, std::span<const std::span<const std::uint8_t>> pieces,
                std::uint16_t ip_id, std::uint8_t ecn) noexcept;

private:
    // In front of each frame in the ring. One that does not fit before the ring's end stands at its beginning.
    struct alignas(16) Header {
        Instant when{};
        std::uint32_t bytes = 0;
        bool at_beginning = false;  // the frame is not here
    };
    static constexpr std::size_t kRingBytes = std::size_t{4} << 20U;

    DatagramCapture(std::string file_name, std::unique_ptr<PcapWriter> writer);
    [[nodiscard]] std::uint8_t* room_for(std::size_t bytes) noexcept;
    void drain() noexcept;

    std::string file_name_;
    std::unique_ptr<PcapWriter> writer_;
    std::unique_ptr<std::uint8_t[]> ring_;  // [kRingBytes]
    std::uint64_t begun_ = 0;               // bytes recorded so far, the frame under way included
    std::uint64_t missed_ = 0;
    std::atomic<std::uint64_t> recorded_{0};
    std::atomic<std::uint64_t> drained_{0};
    std::optional<CaptureThread> thread_;
};

}  // namespace cairn::port
