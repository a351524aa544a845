#include "lib/port/pcap_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/user_memory.hpp"
#include "lib/port/write_gate.hpp"

namespace cairn::port {

namespace {

// Readers find out the byte order by the magic. It is the host's.
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

// Opens the file and empties it, unless another writer has it. Pipes and devices are shared. Returns -1, with errno;
// EWOULDBLOCK: another writer has it.
int open_alone(const std::string& path) noexcept {
    // Non-blocking matters for pipes: a slow reader costs frames, not time.
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0644);
    struct stat is {};
    if (file < 0 || ::fstat(file, &is) != 0 || !S_ISREG(is.st_mode)) {
        return file;
    }
    // If the file cannot be locked, other writers cannot be noticed.
    const bool is_taken = ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_taken && ::ftruncate(file, 0) == 0) {
        WriteGate::guard();
        return file;
    }
    const int reason = errno;
    ::close(file);
    errno = reason;
    return -1;
}

// Returns another name, for a writer of this process that finds `path` taken.
std::string name_beside(const std::string& path, int number) {
    std::filesystem::path name(path);
    const std::string own = number == 0 ? fmt::format("{}", ::getpid()) : fmt::format("{}-{}", ::getpid(), number);
    name.replace_filename(fmt::format("{}.{}{}", name.stem().string(), own, name.extension().string()));
    return name.string();
}

struct Opened {
    std::string path;
    int file;
};

// Opens the file under the first free name and writes the header.
Result<Opened> open_somewhere(const std::string& path) {
    std::string name = path;
    int file = open_alone(name);
    for (int number = 0; file < 0 && errno == EWOULDBLOCK; ++number) {
        name = name_beside(path, number);
        file = open_alone(name);
    }
    if (file < 0) {
        return refused(name, errno);
    }
    const FileHeader header;
    errno = ENOSPC;  // the meaning of a short write without an error
    if (write_some(file, &header, sizeof(header)) != sizeof(header)) {
        const int reason = errno;
        ::close(file);
        return refused(name, reason);
    }
    if (name != path) {
        fmt::print(stderr, "{}: another writes to it; this process {} writes to {}\n", path, ::getpid(), name);
    }
    return Opened{std::move(name), file};
}

}  // namespace

struct PcapWriter::File {
    File(std::string wish, std::string name, int descriptor) noexcept
        : wanted(std::move(wish)), path(std::move(name)), fd(descriptor) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() { ::close(fd); }

    const std::string wanted;
    const std::string path;
    const pid_t owner = ::getpid();
    const int fd;
    std::mutex mutex{};
    std::uint64_t bytes = sizeof(FileHeader);  // written so far
    const PcapWriter* midway = nullptr;        // has written a part of a frame: other writers wait for the rest
};

// A child of fork() inherits the files of its parent, and writes to none of them.
Result<std::unique_ptr<PcapWriter>> PcapWriter::open(const std::string& path, Duration epoch) {
    static std::mutex mutex;
    static std::vector<std::weak_ptr<File>> files;
    const std::lock_guard hold(mutex);
    std::erase_if(files, [](const std::weak_ptr<File>& each) { return each.expired(); });
    for (const std::weak_ptr<File>& each : files) {
        const std::shared_ptr<File> file = each.lock();
        if (file != nullptr && file->wanted == path && file->owner == ::getpid()) {
            return std::unique_ptr<PcapWriter>(new PcapWriter(file, epoch));
        }
    }
    Result<Opened> opened = open_somewhere(path);
    if (!opened.ok()) {
        return opened.error();
    }
    const auto made = std::make_shared<File>(path, std::move(opened.value().path), opened.value().file);
    files.push_back(made);
    return std::unique_ptr<PcapWriter>(new PcapWriter(made, epoch));
}

const std::string& PcapWriter::path() const noexcept {
    return file_->path;
}

std::unique_ptr<PcapWriter> PcapWriter::beside() const {
    return std::unique_ptr<PcapWriter>(new PcapWriter(file_, epoch_));
}

PcapWriter::PcapWriter(std::shared_ptr<File> file, Duration epoch)
    : file_(std::move(file)), epoch_(epoch), buffer_(std::make_unique_for_overwrite<std::uint8_t[]>(kBufferBytes)) {}

PcapWriter::~PcapWriter() {
    flush();
}

void PcapWriter::add(std::span<const std::span<const std::uint8_t>> segments, Instant when) noexcept {
    std::size_t bytes = 0;
    for (const auto& segment : segments) {
        bytes += segment.size();
    }
    const std::size_t wanted = sizeof(FrameHeader) + bytes;
    if (bytes <= kFrameBytesMax && wanted > kBufferBytes - end_) {
        if (!stuck_) {
            flush();
        }
        if (begin_ >= kBufferBytes / 2) {  // no byte is moved often
            std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
            end_ -= std::exchange(begin_, 0);
        }
    }
    if (bytes > kFrameBytesMax || wanted > kBufferBytes - end_) {
        ++frames_lost_;
        return;
    }
    constexpr std::int64_t kSecond = 1'000'000'000;
    constexpr std::int64_t kLast = (std::int64_t{std::numeric_limits<std::uint32_t>::max()} + 1) * kSecond - 1;
    const std::int64_t time = std::clamp((when + epoch_).ns, std::int64_t{0}, kLast);
    const auto captured = static_cast<std::uint32_t>(bytes);
    const FrameHeader header{static_cast<std::uint32_t>(time / kSecond), static_cast<std::uint32_t>(time % kSecond),
                             captured, captured};
    std::uint8_t* at = buffer_.get() + end_;
    std::memcpy(at, &header, sizeof(header));
    at += sizeof(header);
    for (const auto& segment : segments) {
        // Memory that has vanished since it was sealed is recorded as the buffer held it.
        (void)UserMemory::run([segment, at]() noexcept { std::copy(segment.begin(), segment.end(), at); });
        at += segment.size();
    }
    end_ += wanted;
    ++frames_taken_;
}

bool PcapWriter::flush() noexcept {
    if (begin_ != end_) {
        const std::lock_guard hold(file_->mutex);
        const WriteGate gate;
        stuck_ = !gate.is_open() || !write_once();
    }
    return begin_ == end_;
}

// Returns false if bytes stay in the buffer. Needs the lock of the file.
bool PcapWriter::write_once() noexcept {
    if (file_->midway != nullptr && file_->midway != this) {
        return false;
    }
    const ssize_t result = write_some(file_->fd, buffer_.get() + begin_, end_ - begin_);
    std::size_t written = result > 0 ? static_cast<std::size_t>(result) : 0;
    Cut cut = cut_at(written);
    // The start of a frame is cut off again. Pipes refuse that, so there the frame's rest follows later.
    if (cut.left != 0 && ::ftruncate(file_->fd, static_cast<off_t>(file_->bytes + cut.whole)) == 0) {
        written = cut.whole;
        cut.left = 0;
    }
    left_ = cut.left;
    file_->midway = left_ != 0 ? this : nullptr;
    file_->bytes += written;
    begin_ += written;
    const bool all = begin_ == end_;
    begin_ = all ? 0 : begin_;
    end_ = all ? 0 : end_;
    return all;
}

// Relies on the buffer ending with a whole frame.
PcapWriter::Cut PcapWriter::cut_at(std::size_t bytes) const noexcept {
    std::size_t begin = 0;
    std::size_t end = left_;
    while (end < bytes) {
        FrameHeader header;
        std::memcpy(&header, buffer_.get() + begin_ + end, sizeof(header));
        begin = end;
        end += sizeof(header) + header.captured_bytes;
    }
    return {end == bytes ? bytes : begin, end - bytes};
}

void finish(std::span<const std::unique_ptr<PcapWriter>> writers) noexcept {
    constexpr int kNaps = 1000;
    for (int naps = 0; naps < kNaps; ++naps) {
        const auto left =
            std::count_if(writers.begin(), writers.end(), [](const auto& each) { return !each->flush(); });
        if (left == 0) {
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace cairn::port
