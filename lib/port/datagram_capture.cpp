#include "lib/port/datagram_capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

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

Result<std::unique_ptr<DatagramCapture>> DatagramCapture::open(const std::string& file_name) {
    std::signal(SIGPIPE, SIG_IGN);  // the file may be a pipe whose reader leaves
    auto writer = PcapWriter::open(file_name, {});
    if (!writer.ok()) {
        return writer.error();
    }
    return std::unique_ptr<DatagramCapture>(new DatagramCapture(file_name, std::move(writer).value()));
}

DatagramCapture::DatagramCapture(std::string file_name, std::unique_ptr<PcapWriter> writer)
    : file_name_(std::move(file_name)),
      writer_(std::move(writer)),
      ring_(std::make_unique_for_overwrite<std::uint8_t[]>(kRingBytes)) {
    thread_.emplace(*writer_, [this] { drain(); });
}

DatagramCapture::~DatagramCapture() {
    thread_.reset();
    fmt::print(stderr, "{}: {} datagrams written, {} missed\n", file_name_, writer_->frames_taken(),
               missed_ + writer_->frames_lost());
}

// Where a frame's header and bytes go, in one piece; nullptr: the file does not keep up.
std::uint8_t* DatagramCapture::room_for(std::size_t bytes) noexcept {
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

void DatagramCapture::record(Direction direction, const Path& path,
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
        at = std::copy(piece.begin(), piece.end(), at);
    }
    recorded_.store(begun_, std::memory_order_release);
}

void DatagramCapture::drain() noexcept {
    std::uint64_t from = drained_.load(std::memory_order_relaxed);
    const std::uint64_t to = recorded_.load(std::memory_order_acquire);
    while (from != to) {
        const std::size_t at = from % kRingBytes;
        Header header;
        std::memcpy(&header, ring_.get() + at, sizeof(header));
        if (header.at_beginning) {
            from += kRingBytes - at;
            continue;
        }
        writer_->add(std::span<const std::uint8_t>(ring_.get() + at + sizeof(header), header.bytes), header.when);
        from += rounded_up(sizeof(header) + header.bytes);
        drained_.store(from, std::memory_order_release);
    }
}

}  // namespace cairn::port
