// Writes frames into a classic pcap file (nanosecond stamps, Ethernet) that Wireshark and tcpdump open.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/time.hpp"

namespace cairn::port {

// Collects in memory and writes in large pieces. One thread. What the file refuses (a full disk) is counted and
// lost: a capture never stops what it watches.
class PcapWriter {
public:
    // Creates or truncates the file. Errors name it.
    static Result<PcapWriter> create(const std::string& file_name);

    // One frame, Ethernet header first, in one or more pieces. `when` counts from the Unix epoch.
    void add(std::span<const std::span<const std::uint8_t>> pieces, Instant when);
    void add(std::span<const std::uint8_t> frame, Instant when) { add({&frame, 1}, when); }
    void flush();

    [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }  // frames the file did not take

private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { std::fclose(file); }
    };
    explicit PcapWriter(std::FILE* file);

    std::unique_ptr<std::FILE, Close> file_;
    std::vector<std::uint8_t> waiting_;
    std::uint64_t frames_waiting_ = 0;
    std::uint64_t written_ = 0;
    std::uint64_t lost_ = 0;
};

}  // namespace cairn::port
