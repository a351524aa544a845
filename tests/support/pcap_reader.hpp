// Reads classic little-endian Ethernet pcap files, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace cairn::test {

using Frame = std::vector<std::uint8_t>;

// Every frame of the file; empty when it is no such file.
inline std::vector<Frame> read_pcap(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto word = [&bytes](std::size_t at) {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof(value));
        return value;
    };
    std::vector<Frame> frames;
    constexpr std::size_t kFileHeader = 24;
    constexpr std::size_t kRecordHeader = 16;
    if (bytes.size() < kFileHeader || (word(0) != 0xa1b2c3d4U && word(0) != 0xa1b23c4dU) || word(20) != 1) {
        return frames;
    }
    for (std::size_t at = kFileHeader; at + kRecordHeader <= bytes.size();) {
        const std::size_t captured = word(at + 8);
        at += kRecordHeader;
        if (at + captured > bytes.size()) {
            break;
        }
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        frames.emplace_back(first, first + static_cast<std::ptrdiff_t>(captured));
        at += captured;
    }
    return frames;
}

// The golden traces: $CAIRN_TRACES or those of the source tree, in the order of their names.
inline std::vector<std::filesystem::path> trace_files() {
    const char* folder = std::getenv("CAIRN_TRACES");
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder != nullptr ? folder : CAIRN_DEFAULT_TRACES)) {
        if (entry.path().extension() == ".pcap") {
            files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace cairn::test
