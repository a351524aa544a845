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

// Belongs to one thread; other threads have writers of the same file. add() copies frames into a buffer. flush() writes
// them to the file, and so does an add() that finds the buffer full. After flush() the frames are in the file however
// the program ends. Bytes that cannot be written (disk full, a pipe that is not read) stay in the buffer for the next
// flush(). Frames that then find no room are counted as lost; nothing waits. A file on a disk always ends with a whole
// frame, unless SIGKILL or a crash ends the program while it writes. See WriteGate for other signals. A pipe whose
// reader is gone raises SIGPIPE, so a program that writes to pipes ignores that signal.
class PcapWriter {
public:
    static constexpr std::size_t kBufferBytes = std::size_t{4} << 20U;
    static constexpr std::size_t kFrameBytesMax = std::size_t{128} * 1024;  // longer frames are counted as lost

    // Makes or empties the file, or shares it with the writers of this process that have it. A file that another
    // process writes is left alone. This process then gets a file of its own next to it, with its process ID in the
    // name, and prints that on stderr. `epoch` is the calendar time (since 1970, UTC) at which `when` is zero.
    static Result<std::unique_ptr<PcapWriter>> open(const std::string& path, Duration epoch);
    // Makes a writer of the same file, for another thread. The file has the frames in the order in which they are
    // flushed.
    [[nodiscard]] std::unique_ptr<PcapWriter> beside() const;
    PcapWriter(const PcapWriter&) = delete;
    PcapWriter& operator=(const PcapWriter&) = delete;
    ~PcapWriter();

    // Adds one frame in one or several segments. A time before 1970 or after 2106 is written as the nearest one
    // possible.
    void add(std::span<const std::span<const std::uint8_t>> segments, Instant when) noexcept;
    void add(std::span<const std::uint8_t> frame, Instant when) noexcept { add({&frame, 1}, when); }

    // Writes buffered bytes as far as possible without waiting. Returns false if some stay in the buffer.
    bool flush() noexcept;

    // Returns where the frames go.
    [[nodiscard]] const std::string& path() const noexcept;
    [[nodiscard]] std::uint64_t frames_taken() const noexcept { return frames_taken_; }
    [[nodiscard]] std::uint64_t frames_lost() const noexcept { return frames_lost_; }

private:
    struct File;
    struct Cut {
        std::size_t whole;  // bytes of the frames that end before it
        std::size_t left;   // bytes of a frame after it
    };

    PcapWriter(std::shared_ptr<File> file, Duration epoch);
    [[nodiscard]] bool write_once() noexcept;
    [[nodiscard]] Cut cut_at(std::size_t bytes) const noexcept;

    std::shared_ptr<File> file_;
    Duration epoch_;
    std::unique_ptr<std::uint8_t[]> buffer_;
    std::size_t begin_ = 0;  // of the buffered bytes
    std::size_t end_ = 0;
    std::size_t left_ = 0;  // bytes at the beginning whose frame has begun in the file, which is a pipe
    bool stuck_ = false;    // the last write fell short: only flush() tries again, not every add()
    std::uint64_t frames_taken_ = 0;
    std::uint64_t frames_lost_ = 0;
};

// Flushes all until nothing is left, for a second at most.
void finish(std::span<const std::unique_ptr<PcapWriter>> writers) noexcept;

}  // namespace cairn::port
