// Capture: the recording for --pcap FILE. It records every frame that a device receives and is given to send. DPDK's
// receive and transmit callbacks copy the frames into a ring, and a thread of the capture writes them, so that the
// datapath stays as it is. It needs no privilege, unlike dpdk-dumpcap.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/port/capture_thread.hpp"
#include "lib/port/pcap_writer.hpp"

struct rte_eth_rxtx_callback;
struct rte_mbuf;
struct rte_mempool;
struct rte_ring;

namespace cairn::pmd {

class Device;

class Capture {
public:
    enum class Frames : std::uint8_t { Roce, All };  // UDP port 4791 only, or all frames

    // Starts recording on all queues of the device, which outlives the capture. If the transmit ring is full, the
    // sender offers a frame again, and the frame is in the file twice.
    static Result<std::unique_ptr<Capture>> start(const Device& device, const std::string& file_name,
                                                  Frames wanted = Frames::Roce);
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    // Writes the remaining frames. The workers have stopped.
    ~Capture();

    // Says how many frames were written, and how many came too fast to be copied or written.
    [[nodiscard]] std::string summary() const;

    // For the callbacks. Any worker's thread may call it.
    void record(rte_mbuf* const* frames, std::uint16_t count) noexcept;

private:
    Capture(std::uint16_t port_id, std::string file_name, std::unique_ptr<port::PcapWriter> writer, Frames wanted);
    Status attach(std::uint16_t queues, std::uint16_t data_room_bytes);
    void drain();

    struct Hook {
        const rte_eth_rxtx_callback* callback;
        std::uint16_t queue;
        bool receive;
    };
    std::uint16_t port_id_;
    std::string file_name_;
    std::unique_ptr<port::PcapWriter> writer_;
    Frames wanted_;
    rte_mempool* pool_ = nullptr;
    rte_ring* ring_ = nullptr;
    std::vector<Hook> hooks_;
    std::atomic<std::uint64_t> missed_{0};
    std::optional<port::CaptureThread> thread_;
};

}  // namespace cairn::pmd
