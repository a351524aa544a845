#include "lib/port/datagram_capture.hpp"

#include <fmt/format.h>

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

Result<std::unique_ptr<DatagramCapture>> DatagramCapture::open(const std::string& file_name) {
    std::signal(SIGPIPE, SIG_IGN);  // the file may be a pipe whose reader leaves
    auto writer = PcapWriter::open(file_name, {});
    if (!writer.ok()) {
        return writer.error();
    }
    return std::unique_ptr<DatagramCapture>(new DatagramCapture(file_name, std::move(writer).value()));
}

DatagramCapture::DatagramCapture(std::string file_name, std::unique_ptr<PcapWriter> writer)
    : file_name_(std::move(file_name)), writer_(std::move(writer)) {}

DatagramCapture::~DatagramCapture() {
    writer_->flush();
    fmt::print(stderr, "{}: {} datagrams written, {} missed\n", file_name_, writer_->frames_taken(),
               writer_->frames_lost());
}

void DatagramCapture::record(Direction direction, const Path& path,
                             std::span<const std::span<const std::uint8_t>> pieces, std::uint16_t ip_id,
                             std::uint8_t ecn) noexcept {
    std::array<std::span<const std::uint8_t>, 4> frame;
    CAIRN_ASSERT(pieces.size() < frame.size());
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        bytes += pieces[i].size();
        frame[i + 1] = pieces[i];
    }
    std::array<std::uint8_t, Path::kLowerBytesV6> lower;
    path.describe_lower_headers(direction, lower.data(), static_cast<std::uint16_t>(bytes), ip_id, ecn);
    frame[0] = std::span(lower).first(path.lower_bytes());
    writer_->add(std::span(frame).first(pieces.size() + 1), unix_now());
}

}  // namespace cairn::port
