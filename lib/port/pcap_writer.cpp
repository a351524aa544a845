#include "lib/port/pcap_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

namespace cairn::port {

namespace {

// The reader tells the byte order by the magic: ours is the host's.
struct FileHeader {
    std::uint32_t magic = 0xa1b23c4dU;  // nanoseconds
    std::uint16_t major = 2;
    std::uint16_t minor = 4;
    std::uint32_t zone = 0;
    std::uint32_t accuracy = 0;
    std::uint32_t frame_bytes_max = PcapWriter::kFrameBytesMax;
    std::uint32_t link = 1;  // Ethernet
};
static_assert(sizeof(FileHeader) == 24);

struct FrameHeader {
    std::uint32_t seconds;
    std::uint32_t nanoseconds;
    std::uint32_t captured_bytes;
    std::uint32_t frame_bytes;
};
static_assert(sizeof(FrameHeader) == 16);
static_assert(PcapWriter::kBufferBytes >= sizeof(FrameHeader) + PcapWriter::kFrameBytesMax);

ssize_t write_some(int file, const void* bytes, std::size_t count) noexcept {
    ssize_t written = 0;
    do {
        written = ::write(file, bytes, count);
    } while (written < 0 && errno == EINTR);
    return written;
}

Error refused(const std::string& path, int reason) {
    return {fmt::format("cannot write the capture file '{}': {}", path, std::strerror(reason)),
            "give a path on a disk that has room, in a folder you may write to"};
}

}  // namespace

Result<std::unique_ptr<PcapWriter>> PcapWriter::open(const std::string& path, Duration epoch) {
    // Non-blocking matters for pipes: a slow reader costs frames, not time.
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0644);
    if (file < 0) {
        return refused(path, errno);
    }
    const FileHeader header;
    errno = ENOSPC;  // what a short write without an error means
    if (write_some(file, &header, sizeof(header)) != sizeof(header)) {
        const int reason = errno;
        ::close(file);
        return refused(path, reason);
    }
    return std::unique_ptr<PcapWriter>(new PcapWriter(file, epoch, sizeof(header)));
}

PcapWriter::PcapWriter(int file, Duration epoch, std::uint64_t file_bytes)
    : file_(file), epoch_(epoch), file_bytes_(file_bytes), buffer_(std::make_unique<std::uint8_t[]>(kBufferBytes)) {}

PcapWriter::~PcapWriter() {
    flush();
    ::close(file_);
}

void PcapWriter::add(std::span<const std::span<const std::uint8_t>> segments, Instant when) noexcept {
    std::size_t bytes = 0;
    for (const auto& segment : segments) {
        bytes += segment.size();
    }
    const std::size_t wanted = sizeof(FrameHeader) + bytes;
    if (bytes <= kFrameBytesMax && wanted > kBufferBytes - buffered_bytes_ && !stuck_) {
        flush();
    }
    if (bytes > kFrameBytesMax || wanted > kBufferBytes - buffered_bytes_) {
        ++frames_lost_;
        return;
    }
    constexpr std::int64_t kSecond = 1'000'000'000;
    constexpr std::int64_t kLast = (std::int64_t{std::numeric_limits<std::uint32_t>::max()} + 1) * kSecond - 1;
    const std::int64_t time = std::clamp((when + epoch_).ns, std::int64_t{0}, kLast);
    const auto captured = static_cast<std::uint32_t>(bytes);
    const FrameHeader header{static_cast<std::uint32_t>(time / kSecond), static_cast<std::uint32_t>(time % kSecond),
                             captured, captured};
    std::uint8_t* at = buffer_.get() + buffered_bytes_;
    std::memcpy(at, &header, sizeof(header));
    at += sizeof(header);
    for (const auto& segment : segments) {
        at = std::copy(segment.begin(), segment.end(), at);
    }
    buffered_bytes_ += wanted;
    ++frames_taken_;
}

bool PcapWriter::flush() noexcept {
    stuck_ = false;
    while (buffered_bytes_ != 0 && !stuck_) {
        const ssize_t result = write_some(file_, buffer_.get(), buffered_bytes_);
        std::size_t written = result > 0 ? static_cast<std::size_t>(result) : 0;
        stuck_ = written < buffered_bytes_;
        if (stuck_) {  // the start of a frame is taken back, which pipes refuse: there its rest comes later
            const std::size_t whole = whole_frames(written);
            written = ::ftruncate(file_, static_cast<off_t>(file_bytes_ + whole)) == 0 ? whole : written;
        }
        file_bytes_ += written;
        buffered_bytes_ -= written;
        std::memmove(buffer_.get(), buffer_.get() + written, buffered_bytes_);
    }
    return buffered_bytes_ == 0;
}

// The bytes of the frames that end within the first `bytes` of the buffer, which begins with one.
std::size_t PcapWriter::whole_frames(std::size_t bytes) const noexcept {
    std::size_t whole = 0;
    while (whole + sizeof(FrameHeader) <= bytes) {
        FrameHeader header;
        std::memcpy(&header, buffer_.get() + whole, sizeof(header));
        const std::size_t next = whole + sizeof(header) + header.captured_bytes;
        if (next > bytes) {
            break;
        }
        whole = next;
    }
    return whole;
}

}  // namespace cairn::port
