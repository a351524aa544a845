#include "lib/port/datagram_capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::port {

namespace {

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
    return std::unique_ptr<DatagramCapture>(new DatagramCapture(std::move(writer).value(), lanes));
}

DatagramCapture::DatagramCapture(std::unique_ptr<PcapWriter> first, std::size_t lanes) {
    writers_.push_back(std::move(first));
    while (writers_.size() < lanes) {
        writers_.push_back(writers_.front()->beside());
    }
    for (const auto& writer : writers_) {
        lanes_.emplace_back(*writer);
    }
}

DatagramCapture::~DatagramCapture() {
    finish(writers_);
    std::uint64_t taken = 0;
    std::uint64_t lost = 0;
    for (const auto& writer : writers_) {
        taken += writer->frames_taken();
        lost += writer->frames_lost();
    }
    fmt::print(stderr, "{}: {} datagrams written, {} missed\n", writers_.front()->path(), taken, lost);
}

void DatagramCapture::Lane::record(Direction direction, const Path& path,
                                   std::span<const std::span<const std::uint8_t>> pieces, std::uint16_t ip_id,
                                   std::uint8_t ecn) noexcept {
    constexpr std::size_t kMostPieces = 3;
    constexpr std::size_t kMostLower = 64;
    CAIRN_ASSERT(pieces.size() <= kMostPieces);
    std::size_t bytes = 0;
    for (const auto& piece : pieces) {
        bytes += piece.size();
    }
    std::array<std::uint8_t, kMostLower> lower;
    path.describe_lower_headers(direction, lower.data(), static_cast<std::uint16_t>(bytes), ip_id, ecn);
    std::array<std::span<const std::uint8_t>, 1 + kMostPieces> frame;
    frame[0] = std::span(lower).first(path.lower_bytes());
    std::copy(pieces.begin(), pieces.end(), frame.begin() + 1);
    writer_.add(std::span(frame).first(1 + pieces.size()), unix_now());
}

}  // namespace cairn::port
