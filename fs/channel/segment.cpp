#include "fs/channel/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSlotBytes = sizeof(SlotHead) + kRequestBytes + kAnswerBytes;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::size_t round_up(std::size_t bytes) noexcept {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// Where the data begin, on a page.
std::size_t data_at(const ChannelShape& shape) noexcept {
    return round_up(sizeof(SegmentHead) + shape.slots * kSlotBytes);
}

Error failed(const char* what) {
    return Error{fmt::format("a client's segment cannot be {}: {}", what, std::strerror(errno)),
                 "free memory, or choose fewer slots or less data of each"};
}

}  // namespace

std::size_t Segment::bytes_of(const ChannelShape& shape) noexcept {
    return data_at(shape) + std::size_t{shape.slots} * shape.data_bytes;
}

// mutants: fs-segment-create
Result<Segment> Segment::create(const ChannelShape& shape) {
    CAIRN_ASSERT(shape.is_valid());
    const std::size_t bytes = bytes_of(shape);
    const int fd = memfd_create("cairn-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return failed("made");
    }
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0 || fcntl(fd, F_ADD_SEALS, kSeals) != 0) {
        const Error error = failed("made");
        ::close(fd);
        return error;
    }
    Result<Segment> segment = map(fd, shape);
    if (segment.ok()) {
        new (segment.value().memory_.data()) SegmentHead;
        for (std::uint32_t slot = 0; slot != shape.slots; ++slot) {
            new (&segment.value().slot(slot)) SlotHead;
        }
    }
    return segment;
}

// A segment that can be cut would end its user by SIGBUS.
// mutants: fs-segment-map
Result<Segment> Segment::map(int fd, const ChannelShape& shape) {
    const std::size_t bytes = bytes_of(shape);
    struct stat facts {};
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &facts) != 0 ||
        facts.st_size != static_cast<off_t>(bytes)) {
        ::close(fd);
        return Error{fmt::format("a segment of {} bytes that cannot be cut was expected", bytes),
                     "run daemons and clients of one version"};
    }
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) {
        const Error error = failed("mapped");
        ::close(fd);
        return error;
    }
    return Segment(fd, shape, {static_cast<std::uint8_t*>(memory), bytes});
}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), shape_(other.shape_), memory_(std::exchange(other.memory_, {})) {}

Segment::~Segment() {
    if (!memory_.empty()) {
        munmap(memory_.data(), memory_.size());
    }
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

SlotHead& Segment::slot(std::uint32_t slot) const noexcept {
    CAIRN_ASSERT(slot < shape_.slots);
    return *reinterpret_cast<SlotHead*>(memory_.data() + sizeof(SegmentHead) + slot * kSlotBytes);
}

std::span<std::uint8_t> Segment::request(std::uint32_t slot) const noexcept {
    CAIRN_ASSERT(slot < shape_.slots);
    return memory_.subspan(sizeof(SegmentHead) + slot * kSlotBytes + sizeof(SlotHead), kRequestBytes);
}

std::span<std::uint8_t> Segment::answer(std::uint32_t slot) const noexcept {
    CAIRN_ASSERT(slot < shape_.slots);
    return memory_.subspan(sizeof(SegmentHead) + slot * kSlotBytes + sizeof(SlotHead) + kRequestBytes, kAnswerBytes);
}

std::span<std::uint8_t> Segment::data(std::uint32_t slot) const noexcept {
    CAIRN_ASSERT(slot < shape_.slots);
    return memory_.subspan(data_at(shape_) + std::size_t{slot} * shape_.data_bytes, shape_.data_bytes);
}

}  // namespace cairn::fs
