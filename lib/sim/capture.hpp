// The last frames of a simulated network, for Wireshark when a test fails.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/time.hpp"

namespace cairn::sim {

class Capture {
public:
    static constexpr std::size_t kFrames = 4096;

    void add(std::span<const std::uint8_t> frame, Instant when);
    [[nodiscard]] std::size_t size() const noexcept { return kept_.size(); }
    // Writes a pcap of Ethernet frames with nanosecond stamps, oldest first. Returns false if the file could not be
    // written.
    [[nodiscard]] bool write(const std::string& file_name) const;

private:
    struct Kept {
        Instant when{};
        std::vector<std::uint8_t> bytes;
    };
    std::vector<Kept> kept_;  // becomes a ring when it is full
    std::size_t oldest_ = 0;
};

}  // namespace cairn::sim
