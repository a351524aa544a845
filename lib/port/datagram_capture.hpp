// Writes the datagrams of a socket port to a capture file as frames. A frame has the lower headers that a NIC would
// have shown. So Wireshark dissects the frames, and their ICRC is right.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/port/path.hpp"
#include "lib/port/pcap_writer.hpp"

namespace cairn::port {

// Each thread that records uses a lane of its own. It flushes the datagrams of a receive once that is done, and the
// datagrams of a send before they leave. So the file lacks nothing, however the program ends.
class DatagramCapture {
public:
    class Lane;

    // Opens the file. `lanes` is the number of threads that record.
    static Result<std::unique_ptr<DatagramCapture>> open(const std::string& file_name, std::size_t lanes = 1);
    // Prints the number of datagrams written and missed, on stderr. Frames that the file does not take within a second
    // are lost.
    ~DatagramCapture();
    DatagramCapture(const DatagramCapture&) = delete;
    DatagramCapture& operator=(const DatagramCapture&) = delete;

    [[nodiscard]] Lane& lane(std::size_t index) noexcept { return lanes_[index]; }

private:
    DatagramCapture(std::unique_ptr<PcapWriter> first, std::size_t lanes);

    std::vector<std::unique_ptr<PcapWriter>> writers_;
    std::vector<Lane> lanes_;
};

class DatagramCapture::Lane {
public:
    explicit Lane(PcapWriter& writer) noexcept : writer_(writer) {}

    // Records a datagram. `pieces` is BTH ... ICRC in at most three parts. `ip_id` is the IPv4 ID that the ICRC covers,
    // `ecn` the received ECN bits. A datagram that finds no room is counted as missed.
    void record(Direction direction, const Path& path, std::span<const std::span<const std::uint8_t>> pieces,
                std::uint16_t ip_id, std::uint8_t ecn) noexcept;
    // Writes the datagrams recorded since the last call. Does not wait for a pipe.
    void flush() noexcept { writer_.flush(); }

private:
    PcapWriter& writer_;
};

}  // namespace cairn::port
