// Writes frames to a capture file that Wireshark and tcpdump read: classic pcap, nanoseconds, Ethernet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/base/result.hpp"
#include "lib/base/time.hpp"

namespace cairn::port {

// Belongs to one thread. add() copies frames into a buffer. The buffer goes to the file when it is full, at flush() and
// at the end. Bytes that cannot be written (disk full, a pipe that no one reads) stay in the buffer for the next
// flush(). Frames that then find no room are counted as lost; nothing waits.
// The owner calls flush() about ten times a second, so that the file is tried again soon and lacks little. A file on a
// disk always ends with a whole frame. A pipe whose reader is gone raises SIGPIPE, so a program that writes to pipes
// ignores that signal.
class PcapWriter {
public:
    static constexpr std::size_t kBufferBytes = std::size_t{256} * 1024;
    static constexpr std::size_t kFrameBytesMax = std::size_t{128} * 1024;  // longer frames are counted as lost

    // Makes or empties the file. `epoch` is the calendar time (since 1970, UTC) at which `when` is zero.
    static Result<std::unique_ptr<PcapWriter>> open(const std::string& path, Duration epoch);
    PcapWriter(const PcapWriter&) = delete;
    PcapWriter& operator=(const PcapWriter&) = delete;
    ~PcapWriter();

    // Adds one frame in one or several segments. A time before 1970 or after 2106 is written as the nearest one
    // possible.
    void add(std::span<const std::span<const std::uint8_t>> segments, Instant when) noexcept;
    void add(std::span<const std::uint8_t> frame, Instant when) noexcept { add({&frame, 1}, when); }

    // Writes buffered bytes as far as possible without waiting. Returns false if some stay behind.
    bool flush() noexcept;

    [[nodiscard]] std::uint64_t frames_taken() const noexcept { return frames_taken_; }
    [[nodiscard]] std::uint64_t frames_lost() const noexcept { return frames_lost_; }

private:
    PcapWriter(int file, Duration epoch, std::uint64_t file_bytes);
    [[nodiscard]] std::size_t whole_frames(std::size_t bytes) const noexcept;

    int file_;
    Duration epoch_;
    std::uint64_t file_bytes_;  // written so far
    std::unique_ptr<std::uint8_t[]> buffer_;
    std::size_t buffered_bytes_ = 0;
    bool stuck_ = false;  // the last write fell short: only flush() tries again, not every add()
    std::uint64_t frames_taken_ = 0;
    std::uint64_t frames_lost_ = 0;
};

}  // namespace cairn::port
