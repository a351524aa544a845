// Reads captures of Ethernet, pcap and pcapng, for tests.
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

struct CaptureFile {
    std::vector<Frame> frames;
    std::size_t cut = 0;  // frames that were recorded in part only
    std::string refusal;  // why nothing was read; empty: the file was read
};

// Parses a capture, little-endian or big-endian.
class CaptureReader {
public:
    explicit CaptureReader(const std::filesystem::path& path) {
        std::ifstream file(path, std::ios::binary);
        bytes_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }

    [[nodiscard]] CaptureFile read() {
        const std::uint32_t magic = bytes_.size() < 24 ? 0 : word(0);
        constexpr std::uint32_t kMicroseconds = 0xa1b2c3d4U;
        constexpr std::uint32_t kNanoseconds = 0xa1b23c4dU;
        swapped_ = magic == __builtin_bswap32(kMicroseconds) || magic == __builtin_bswap32(kNanoseconds);
        if (magic == 0x0a0d0d0aU) {
            read_blocks();
        } else if (swapped_ || magic == kMicroseconds || magic == kNanoseconds) {
            read_records();
        } else {
            file_.refusal = "it is no pcap or pcapng file";
        }
        return std::move(file_);
    }

private:
    static constexpr std::uint32_t kEthernet = 1;

    [[nodiscard]] std::uint32_t word(std::size_t at) const {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes_.data() + at, sizeof(value));
        return swapped_ ? __builtin_bswap32(value) : value;
    }
    void refuse_link(std::uint32_t type) {
        if (type != kEthernet) {
            file_.refusal = "its link type is " + std::to_string(type) + ", not Ethernet: capture on one interface";
        }
    }
    void add(std::size_t at, std::size_t captured, std::size_t whole) {
        if (captured < whole) {
            ++file_.cut;
            return;
        }
        const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(at);
        file_.frames.emplace_back(first, first + static_cast<std::ptrdiff_t>(captured));
    }
    // Stops at the last whole frame if the file ends within a frame.
    void read_records() {
        constexpr std::size_t kRecordHeader = 16;
        refuse_link(word(20) & 0xffffU);
        for (std::size_t at = 24; file_.refusal.empty() && at + kRecordHeader <= bytes_.size();) {
            const std::size_t captured = word(at + 8);
            const std::size_t whole = word(at + 12);
            at += kRecordHeader;
            if (captured > bytes_.size() - at) {
                break;
            }
            add(at, captured, whole);
            at += captured;
        }
    }
    void read_blocks() {
        constexpr std::uint32_t kSection = 0x0a0d0d0aU;
        constexpr std::uint32_t kInterface = 1;
        constexpr std::uint32_t kPacket = 6;
        for (std::size_t at = 0; file_.refusal.empty() && at + 12 <= bytes_.size();) {
            if (word(at) == kSection) {
                swapped_ = false;
                swapped_ = word(at + 8) == __builtin_bswap32(0x1a2b3c4dU);
            }
            const std::size_t block = word(at + 4);
            if (block < 12 || block > bytes_.size() - at) {
                break;
            }
            if (word(at) == kInterface && block >= 20) {
                refuse_link(swapped_ ? word(at + 8) >> 16U : word(at + 8) & 0xffffU);
            } else if (word(at) == kPacket && block >= 32 && word(at + 20) <= block - 32) {
                add(at + 28, word(at + 20), word(at + 24));
            }
            at += block;
        }
    }

    std::vector<char> bytes_;
    bool swapped_ = false;
    CaptureFile file_;
};

// Returns every whole frame of the file, or nothing if it is no capture.
inline std::vector<Frame> read_pcap(const std::filesystem::path& path) {
    return CaptureReader(path).read().frames;
}

// Returns true for the golden traces, all of whose content is known. Other captures ($CAIRN_TRACES) are tested in part.
inline bool traces_are_golden() {
    return std::getenv("CAIRN_TRACES") == nullptr;
}

// Returns the captures in the order of their names.
inline std::vector<std::filesystem::path> trace_files() {
    const char* folder = std::getenv("CAIRN_TRACES");
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder != nullptr ? folder : CAIRN_DEFAULT_TRACES)) {
        if (entry.path().extension() == ".pcap" || entry.path().extension() == ".pcapng") {
            files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace cairn::test
