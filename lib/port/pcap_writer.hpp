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

// Driven by one thread. add() copies into a buffer, which goes to the file when it is full, at flush() and at the
// end. What cannot be written (disk full, a pipe that no one reads) stays in the buffer for the next flush(); frames
// that then find no room are counted, and nothing waits. Whoever drives it calls flush() ten times a second or so, that
// what was full a moment ago is tried again and the file lacks little at any time. A file on a disk ends with a whole
// frame at any time. A pipe whose reader is gone raises SIGPIPE, as everywhere: a program that writes to pipes ignores
// it.
class PcapWriter {
public:
    static constexpr std::size_t kBufferBytes = std::size_t{256} * 1024;
    static constexpr std::size_t kFrameBytesMax = std::size_t{128} * 1024;  // longer frames are counted as lost

    // Makes or empties the file. `epoch` is where on the calendar (since 1970, UTC) the zero of `when` lies.
    static Result<std::unique_ptr<PcapWriter>> open(const std::string& path, Duration epoch);
    PcapWriter(const PcapWriter&) = delete;
    PcapWriter& operator=(const PcapWriter&) = delete;
    ~PcapWriter();

    // One frame in one or several segments. A time before 1970 or after 2106 is written as the nearest there is.
    void add(std::span<const std::span<const std::uint8_t>> segments, Instant when) noexcept;
    void add(std::span<const std::uint8_t> frame, Instant when) noexcept { add({&frame, 1}, when); }

    // Writes what is buffered, as far as that goes at once; false when some stays behind.
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
