#include "lib/port/datagram_capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "lib/base/user_memory.hpp"

namespace cairn::port {

namespace {

// Headers stay aligned, and one fits before the ring's end.
std::size_t rounded_up(std::size_t bytes) noexcept {
    return (bytes + 15) / 16 * 16;
}

Instant unix_now() noexcept {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()};
}

}  // namespace

Result<std::unique_ptr<DatagramCapture>> DatagramCapture::open(const std::string& file_name, std::size_t lanes) {
    std::signal(SIGPIPE, SIG_IGN);  // the file may be a pipe whose reader leaves
    auto writer = PcapWriter::open(file_name, {});
    if (!writer.ok()) {
        return writer.error();
    }
    return std::unique_ptr<DatagramCapture>(new DatagramCapture(file_name, std::move(writer).value(), lanes));
}

DatagramCapture::DatagramCapture(std::string file_name, std::unique_ptr<PcapWriter> writer, std::size_t lanes)
    : file_name_(std::move(file_name)), writer_(std::move(writer)) {
    while (lanes_.size() < lanes) {
        lanes_.push_back(std::make_unique<Lane>());
    }
    thread_.emplace(*writer_, [this] { drain(); });
}

DatagramCapture::~DatagramCapture() {
    thread_.reset();
    std::uint64_t missed = writer_->frames_lost();
    for (const auto& lane : lanes_) {
        missed += lane->missed();
    }
    fmt::print(stderr, "{}: {} datagrams written, {} missed\n", file_name_, writer_->frames_taken(), missed);
}

// The oldest of all lanes first: the file is in the order of time but where a lane was recorded in meanwhile.
// mutants: port-datagram-capture-drain
void DatagramCapture::drain() noexcept {
    for (const auto& lane : lanes_) {
        lane->begin_drain();
    }
    for (;;) {
        Lane* from = nullptr;
        std::optional<Lane::Frame> oldest;
        for (const auto& lane : lanes_) {
            const std::optional<Lane::Frame> frame = lane->front();
            if (frame.has_value() && (!oldest.has_value() || frame->when < oldest->when)) {
                oldest = frame;
                from = lane.get();
            }
        }
        if (from == nullptr) {
            return;
        }
        writer_->add(oldest->bytes, oldest->when);
        from->pop();
    }
}

DatagramCapture::Lane::Lane() : ring_(std::make_unique_for_overwrite<std::uint8_t[]>(kRingBytes)) {}

// Where a frame's header and bytes go, in one piece; nullptr: the file does not keep up.
// mutants: port-datagram-capture-lane-room-for
std::uint8_t* DatagramCapture::Lane::room_for(std::size_t bytes) noexcept {
    const std::size_t wanted = rounded_up(sizeof(Header) + bytes);
    const std::size_t at = begun_ % kRingBytes;
    const std::size_t to_end = kRingBytes - at;
    const std::size_t skipped = wanted > to_end ? to_end : 0;
    if (begun_ + skipped + wanted - drained_.load(std::memory_order_acquire) > kRingBytes) {
        return nullptr;
    }
    if (skipped != 0) {
        Header header;
        header.at_beginning = true;
        std::memcpy(ring_.get() + at, &header, sizeof(header));
    }
    begun_ += skipped + wanted;
    return ring_.get() + (at + skipped) % kRingBytes;
}

void DatagramCapture::Lane::record(Direction direction, const Path& path,
                                   std::span<const std::span<const std::uint8_t>> pieces, std::uint16_t ip_id,
                                   std::uint8_t ecn) noexcept {
    std::size_t bytes = 0;
    for (const auto& piece : pieces) {
        bytes += piece.size();
    }
    const std::size_t lower = path.lower_bytes();
    std::uint8_t* at = room_for(lower + bytes);
    if (at == nullptr) {
        ++missed_;
        return;
    }
    const Header header{unix_now(), static_cast<std::uint32_t>(lower + bytes), false};
    std::memcpy(at, &header, sizeof(header));
    at += sizeof(header);
    path.describe_lower_headers(direction, at, static_cast<std::uint16_t>(bytes), ip_id, ecn);
    at += lower;
    for (const auto& piece : pieces) {
        // What has vanished since it was sealed is recorded as what stood in the ring.
        (void)UserMemory::run([piece, at]() noexcept { std::copy(piece.begin(), piece.end(), at); });
        at += piece.size();
    }
    recorded_.store(begun_, std::memory_order_release);
}

DatagramCapture::Lane::Header DatagramCapture::Lane::header_at(std::uint64_t position) const noexcept {
    Header header;
    std::memcpy(&header, ring_.get() + position % kRingBytes, sizeof(header));
    return header;
}

std::optional<DatagramCapture::Lane::Frame> DatagramCapture::Lane::front() noexcept {
    std::uint64_t from = drained_.load(std::memory_order_relaxed);
    if (from == drain_to_) {
        return std::nullopt;
    }
    if (header_at(from).at_beginning) {
        from += kRingBytes - from % kRingBytes;
        drained_.store(from, std::memory_order_release);
    }
    const Header header = header_at(from);
    return Frame{header.when, {ring_.get() + from % kRingBytes + sizeof(header), header.bytes}};
}

void DatagramCapture::Lane::pop() noexcept {
    const std::uint64_t from = drained_.load(std::memory_order_relaxed);
    drained_.store(from + rounded_up(sizeof(Header) + header_at(from).bytes), std::memory_order_release);
}

}  // namespace cairn::port
