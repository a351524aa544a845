// The recording for --pcap FILE: every frame that a device receives and is given to send. DPDK's receive and transmit
// callbacks write a burst's frames in one call, before the burst goes on. So the file lacks nothing, however the
// program ends. It needs no privilege, unlike dpdk-dumpcap.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/port/pcap_writer.hpp"

struct rte_eth_rxtx_callback;
struct rte_mbuf;

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
    // Writes the frames that a pipe has not taken yet. The workers have stopped.
    ~Capture();

    // Returns how many frames were written, and how many came too fast to be written.
    [[nodiscard]] std::string summary() const;

    // Records one direction of a queue. A callback calls record(), on the queue's thread alone.
    class Lane {
    public:
        Lane(port::PcapWriter& writer, Frames wanted) noexcept : writer_(writer), wanted_(wanted) {}
        void record(const rte_mbuf* const* frames, std::uint16_t count) noexcept;

    private:
        port::PcapWriter& writer_;
        const Frames wanted_;
    };

private:
    struct Hook {
        const rte_eth_rxtx_callback* callback;
        std::uint16_t queue;
        bool receive;
    };

    Capture(std::uint16_t port_id, std::unique_ptr<port::PcapWriter> writer);
    Status attach(std::uint16_t queues, Frames wanted);

    std::uint16_t port_id_;
    std::vector<std::unique_ptr<port::PcapWriter>> writers_;  // the first belongs to no direction of a queue
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::vector<Hook> hooks_;
};

}  // namespace cairn::pmd
