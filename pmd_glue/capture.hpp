// Capture: what --pcap FILE asks for. Records every frame that a device receives and is given to send, without
// touching the datapath: DPDK's receive and transmit callbacks copy frames into a ring, a thread of its own
// writes them. Needs no privilege, unlike dpdk-dumpcap.
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
    enum class Frames : std::uint8_t { Roce, All };  // UDP 4791 only, or neighbour discovery and the rest too

    // Starts recording on all queues of the device, which outlives the capture. A transmit ring that is full
    // makes its sender offer a frame again; then it is in the file twice.
    static Result<std::unique_ptr<Capture>> start(const Device& device, const std::string& file_name,
                                                  Frames wanted = Frames::Roce);
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    // Writes the rest. The workers have stopped.
    ~Capture();

    // Frames written, and frames that came faster than they could be copied or written.
    [[nodiscard]] std::string summary() const;

    // For the callbacks: any worker's thread.
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
