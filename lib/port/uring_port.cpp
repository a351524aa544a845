#include "lib/port/uring_port.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "lib/base/assert.hpp"
#include "lib/base/secret.hpp"

namespace cairn::port {

namespace {

constexpr Duration kCoarse = milliseconds(2);  // sleeps from here on end with a tick of the kernel
constexpr std::uint32_t kPathsMax = 4096;
constexpr std::uint16_t kBurst = 128;  // segments that one GSO send takes at most

}  // namespace

Result<std::unique_ptr<UringPort>> UringPort::open(const UringPortConfig& config) {
    Result<UdpSocket> socket = UdpSocket::open({config.local, config.udp_port});
    if (!socket.ok()) {
        return socket.error();
    }
    const std::size_t bytes =
        config.buffers * kBufferBytes + config.batches * kBatchBytes + kPackets * kMaxUdpPayloadBytes;
    Result<mem::Region> memory = mem::Region::map(bytes, mem::PageWish::NoHuge);
    if (!memory.ok()) {
        return memory.error();
    }
    std::unique_ptr<DatagramCapture> capture;
    if (!config.pcap.empty()) {
        auto opened = DatagramCapture::open(config.pcap);
        if (!opened.ok()) {
            return opened.error();
        }
        capture = std::move(opened).value();
    }
    const int fd = socket.value().fd();
    std::unique_ptr<SocketIo> io;
    std::string refused;
    if (config.mode != SocketMode::Plain) {
        auto ring = SocketIo::make_ring(fd, config.mode, kSends);
        if (ring.ok()) {
            io = std::move(ring).value();
        } else {
            refused = ring.error().text();
        }
    }
    if (io == nullptr) {
        io = SocketIo::make_plain(fd);
    }
    std::unique_ptr<UringPort> made(
        new UringPort(config, std::move(socket).value(), std::move(io), std::move(memory).value()));
    made->io_refused_ = std::move(refused);
    made->capture_ = std::move(capture);
    return made;
}

UringPort::UringPort(const UringPortConfig& config, UdpSocket socket, std::unique_ptr<SocketIo> io, mem::Region memory)
    : config_(config),
      socket_(std::move(socket)),
      io_(std::move(io)),
      memory_(std::move(memory)),
      blocks_(std::size_t{config.buffers} + config.batches),
      paths_(kPathsMax, config.udp_port, draw_secret()),
      gso_(socket_.segments()),
      batches_(kSends),
      messages_(kSends),
      sending_(kPackets),
      send_pieces_(kPieces),
      staging_(kHeadroomBytes + kPackets * kStagedBytes) {
    std::uint8_t* at = memory_.bytes().data();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        Block& block = blocks_[i];
        block.batch = i >= config.buffers;
        block.data = at + kHeadroomBytes;
        at += block.batch ? kBatchBytes : kBufferBytes;
        (block.batch ? free_batches_ : free_buffers_).push_back(&block);
    }
    tail_copies_ = at;
    paths_.set_traffic_class(config.traffic_class);
}

UringPort::~UringPort() {
    exchange(nullptr);  // the last words: an endpoint that ended has told its peers
    if (epoll_fd_ >= 0) {
        close(epoll_fd_);
    }
}

Path* UringPort::open_path(const PathKey& key, Instant) noexcept {
    PathKey ours = key;
    ours.udp_source_port = config_.udp_port;  // the socket's: peers on sockets send from it, too
    Path* path = paths_.intern(ours);
    if (path != nullptr && !path->resolved()) {
        path->resolve({}, {});  // the kernel knows the neighbours
    }
    return path;
}

// A receive that blocks is one call where poll and receive are two; and its timeout needs no timer of its own, which
// costs a virtual machine more than the sleep itself.
void UringPort::wait(Duration most, int also) noexcept {
    if (sends_ != 0 && !backlog_) {
        exchange(nullptr);
    }
    if (arrival_.block != nullptr || most.ns <= 0) {
        return;
    }
    slept_ = true;
    if (most >= kCoarse && !backlog_ && groups_.empty() && also < 0 && arm_receive()) {
        socket_.set_receive_timeout(most);
        const ssize_t got = recvmsg(socket_.fd(), &receive_.header, 0);
        receive_.result = static_cast<std::int32_t>(got < 0 ? -errno : got);
        take_arrival(config_.local);
        return;
    }
    std::array<pollfd, 2 + kGroups> waiting{};
    waiting[0] = {socket_.fd(), static_cast<short>(backlog_ ? POLLIN | POLLOUT : POLLIN), 0};
    waiting[1] = {also, POLLIN, 0};  // a negative one is passed over
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        waiting[2 + i] = {groups_[i].second.fd(), POLLIN, 0};
    }
    const timespec timeout{most.ns / 1'000'000'000, most.ns % 1'000'000'000};
    ppoll(waiting.data(), 2 + groups_.size(), &timeout, nullptr);
}

int UringPort::descriptor() noexcept {
    if (epoll_fd_ < 0) {
        epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
        watch(socket_);
        for (const auto& [group, socket] : groups_) {
            watch(socket);
        }
    }
    return epoll_fd_;
}

// A socket that is closed leaves by itself.
void UringPort::watch(const UdpSocket& socket) noexcept {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_fd_ >= 0 && epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, socket.fd(), &event) != 0) {
        close(epoll_fd_);
        epoll_fd_ = -1;
    }
}

Status UringPort::join(const net::IpAddress& group) {
    if (groups_.size() == kGroups) {
        return Error{fmt::format("there are {} multicast groups already", kGroups), "use fewer, or more ports"};
    }
    if (group.is_v4() != config_.local.is_v4()) {
        return Error{fmt::format("{} and {} are of two families", group.text(), config_.local.text()),
                     "use a group of the port's family"};
    }
    Result<UdpSocket> opened = UdpSocket::open_group({config_.local, config_.udp_port}, group);
    if (!opened.ok()) {
        return opened.error();
    }
    groups_.emplace_back(group, std::move(opened).value());
    watch(groups_.back().second);
    return Nothing{};
}

void UringPort::leave(const net::IpAddress& group) noexcept {
    std::erase_if(groups_, [&group](const auto& each) noexcept { return each.first == group; });
}

std::size_t UringPort::buffers_in_use() const noexcept {
    return blocks_.size() - free_buffers_.size() - free_batches_.size() - (receive_block_ != nullptr ? 1U : 0U);
}

PortLimits UringPort::limits() const noexcept {
    const std::uint32_t below = config_.local.is_v4() ? 28 : 48;
    const std::uint32_t link = std::max(socket_.link_mtu_bytes(), below) - below;
    return {static_cast<std::uint16_t>(std::min<std::uint32_t>(link, kMaxUdpPayloadBytes)), kBurst, false, gso_};
}

std::string UringPort::describe() const {
    std::string text =
        fmt::format("{} port {}: UDP socket over {}, MTU {}, receive buffer {} KiB, {}", config_.local.text(),
                    config_.udp_port, io_->describe(), socket_.link_mtu_bytes(), socket_.receive_buffer_bytes() / 1024,
                    gso_ ? "batches by UDP_SEGMENT and UDP_GRO" : "one datagram per call");
    if (!io_refused_.empty()) {
        text += "; " + io_refused_;
    }
    return text;
}

std::string UringPort::counters_text() const {
    return telemetry::text_of(counters_.snapshot());
}

}  // namespace cairn::port
