#include "lib/sim/capture.hpp"

#include <array>
#include <fstream>

namespace cairn::sim {

namespace {

constexpr std::uint32_t kNanosecondMagic = 0xa1b23c4d;
constexpr std::uint32_t kEthernet = 1;
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

template <std::size_t kWords>
void put(std::ofstream& file, const std::array<std::uint32_t, kWords>& words) {
    file.write(reinterpret_cast<const char*>(words.data()), sizeof(words));
}

}  // namespace

void Capture::add(std::span<const std::uint8_t> frame, Instant when) {
    if (kept_.size() < kFrames) {
        kept_.push_back({when, {frame.begin(), frame.end()}});
        return;
    }
    kept_[oldest_].when = when;
    kept_[oldest_].bytes.assign(frame.begin(), frame.end());
    oldest_ = (oldest_ + 1) % kFrames;
}

bool Capture::write(const std::string& file_name) const {
    std::ofstream file(file_name, std::ios::binary);
    // Magic, version 2.4, two unused words, snap length, link type. The magic shows that they are in host order.
    put(file, std::array<std::uint32_t, 6>{kNanosecondMagic, 2U | (4U << 16U), 0, 0, 65'535, kEthernet});
    for (std::size_t i = 0; i < kept_.size(); ++i) {
        const Kept& frame = kept_[(oldest_ + i) % kept_.size()];
        const auto bytes = static_cast<std::uint32_t>(frame.bytes.size());
        put(file, std::array<std::uint32_t, 4>{static_cast<std::uint32_t>(frame.when.ns / kNanosecondsPerSecond),
                                               static_cast<std::uint32_t>(frame.when.ns % kNanosecondsPerSecond), bytes,
                                               bytes});
        file.write(reinterpret_cast<const char*>(frame.bytes.data()), bytes);
    }
    return file.good();
}

}  // namespace cairn::sim
