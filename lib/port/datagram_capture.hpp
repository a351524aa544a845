// Writes the datagrams of a socket port to a capture file as frames: with the lower headers that a NIC would have
// shown, so that Wireshark dissects them and their ICRC holds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/base/result.hpp"
#include "lib/port/path.hpp"
#include "lib/port/pcap_writer.hpp"

namespace cairn::port {

// One thread.
class DatagramCapture {
public:
    static Result<std::unique_ptr<DatagramCapture>> open(const std::string& file_name);
    ~DatagramCapture();
    DatagramCapture(const DatagramCapture&) = delete;
    DatagramCapture& operator=(const DatagramCapture&) = delete;

    // BTH ... ICRC in one or two pieces; `ip_id` as it counts in the ICRC (IPv4), `ecn` as received.
    void record(Direction direction, const Path& path, std::span<const std::span<const std::uint8_t>> pieces,
                std::uint16_t ip_id, std::uint8_t ecn) noexcept;

private:
    DatagramCapture(std::string file_name, std::unique_ptr<PcapWriter> writer);
    std::string file_name_;
    std::unique_ptr<PcapWriter> writer_;
};

}  // namespace cairn::port
