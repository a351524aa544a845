#include "lib/port/pcap_writer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace cairn::port {

namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 18U;

// In the writer's byte order, which readers recognise by the magic.
struct FileHeader {
    std::uint32_t magic = 0xa1b23c4d;  // nanoseconds
    std::uint16_t major = 2;
    std::uint16_t minor = 4;
    std::uint32_t zone = 0;
    std::uint32_t accuracy = 0;
    std::uint32_t longest = 65535;
    std::uint32_t link_type = 1;  // Ethernet
};
static_assert(sizeof(FileHeader) == 24);

struct RecordHeader {
    std::uint32_t seconds;
    std::uint32_t nanoseconds;
    std::uint32_t captured_bytes;
    std::uint32_t frame_bytes;
};
static_assert(sizeof(RecordHeader) == 16);

template <class T>
void append(std::vector<std::uint8_t>& to, const T& value) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
    to.insert(to.end(), bytes, bytes + sizeof(value));
}

}  // namespace

Result<PcapWriter> PcapWriter::create(const std::string& file_name) {
    std::FILE* file = std::fopen(file_name.c_str(), "wb");
    if (file == nullptr) {
        return Error{fmt::format("cannot write the capture {}: {}", file_name, std::strerror(errno)),
                     "choose another --pcap file"};
    }
    std::setvbuf(file, nullptr, _IONBF, 0);  // we collect ourselves
    return PcapWriter(file);
}

PcapWriter::PcapWriter(std::FILE* file) : file_(file) {
    waiting_.reserve(kWriteBytes + 65536);
    append(waiting_, FileHeader{});
    flush();
}

void PcapWriter::add(std::span<const std::span<const std::uint8_t>> pieces, Instant when) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    std::size_t bytes = 0;
    for (const auto& piece : pieces) {
        bytes += piece.size();
    }
    append(waiting_,
           RecordHeader{static_cast<std::uint32_t>(when.ns / kSecond), static_cast<std::uint32_t>(when.ns % kSecond),
                        static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(bytes)});
    for (const auto& piece : pieces) {
        waiting_.insert(waiting_.end(), piece.begin(), piece.end());
    }
    ++frames_waiting_;
    if (waiting_.size() >= kWriteBytes) {
        flush();
    }
}

void PcapWriter::flush() {
    const bool whole = std::fwrite(waiting_.data(), 1, waiting_.size(), file_.get()) == waiting_.size();
    (whole ? written_ : lost_) += frames_waiting_;
    frames_waiting_ = 0;
    waiting_.clear();
}

}  // namespace cairn::port
