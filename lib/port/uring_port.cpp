#include "lib/port/uring_port.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "lib/base/assert.hpp"
#include "lib/base/secret.hpp"

namespace cairn::port {

namespace {

constexpr std::uint32_t kPathsMax = 4096;
constexpr std::uint16_t kBurst = 128;  // segments that one GSO send takes at most

}  // namespace

Result<std::unique_ptr<UringPort>> UringPort::open(const UringPortConfig& config) {
    auto queues = SocketQueues::open({config.local, config.udp_port, 1, config.pcap});
    if (!queues.ok()) {
        return queues.error();
    }
    return open(config, std::move(queues).value(), 0);
}

Result<std::unique_ptr<UringPort>> UringPort::open(const UringPortConfig& config, std::shared_ptr<SocketQueues> queues,
                                                   std::uint32_t worker) {
    const std::size_t bytes = BlockPool::bytes_of(config.buffers, config.batches) + kPackets * kMaxUdpPayloadBytes;
    Result<mem::Region> memory = mem::Region::map(bytes, mem::PageWish::NoHuge);
    if (!memory.ok()) {
        return memory.error();
    }
    UringPortConfig own = config;
    own.local = queues->local();
    own.udp_port = queues->udp_port();
    SocketQueue queue(std::move(queues), worker);
    const int fd = queue.socket().fd();
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
    std::unique_ptr<UringPort> made(new UringPort(own, std::move(queue), std::move(io), std::move(memory).value()));
    made->io_refused_ = std::move(refused);
    return made;
}

namespace {

// Needs no question to a neighbour, since the kernel resolves addresses.
Path* made_ready(Path* path) noexcept {
    if (path != nullptr && !path->resolved()) {
        path->resolve({}, {});
    }
    return path;
}

}  // namespace

UringPort::UringPort(const UringPortConfig& config, SocketQueue queue, std::unique_ptr<SocketIo> io, mem::Region memory)
    : config_(config),
      queue_(std::move(queue)),
      io_(std::move(io)),
      memory_(std::move(memory)),
      tail_copies_(memory_.bytes().data() + BlockPool::bytes_of(config.buffers, config.batches)),
      blocks_(config.buffers, config.batches, memory_.bytes().data()),
      paths_(kPathsMax, config.udp_port, draw_secret()),
      capture_(queue_.capture()),
      gso_(queue_.socket().segments()),
      batches_(kSends),
      messages_(kSends),
      sending_(kPackets),
      send_pieces_(kPieces),
      staging_(BlockPool::kHeadroomBytes + kPackets * kStagedBytes) {
    paths_.set_traffic_class(config.traffic_class);
}

UringPort::~UringPort() {
    exchange(nullptr);  // an endpoint that ended has sent notices to its peers
}

Path* UringPort::open_path(const PathKey& key, Instant) noexcept {
    PathKey ours = key;
    ours.udp_source_port = config_.udp_port;  // the socket's: peers on sockets send from it, too
    return made_ready(paths_.intern(ours));
}

Path* UringPort::path_back(const WayBack& way, Instant) noexcept {
    return made_ready(paths_.admit(way.key));
}

// A blocking receive is one call, poll and receive are two. The receive's timeout also needs no timer of its own, which
// costs a virtual machine more than the sleep itself. If another worker may hand something over, poll is needed.
void UringPort::wait(Duration most, int also) noexcept {
    if (sends_ != 0 && !backlog_) {
        exchange(nullptr);
    }
    epoll_.want_room(backlog_);
    queue_.begin_sleep();
    if (arrival_.block != nullptr || !queue_.empty() || most.ns <= 0) {
        return;
    }
    slept_ = true;
    if (most >= kCoarseSleep && !backlog_ && groups_.empty() && also < 0 && queue_.is_alone() && arm_receive()) {
        queue_.socket().set_receive_timeout(most);
        const ssize_t got = recvmsg(queue_.socket().fd(), &receive_.header, 0);
        receive_.result = static_cast<std::int32_t>(got < 0 ? -errno : got);
        take_arrival(config_.local);
        return;
    }
    std::array<pollfd, 3 + GroupSockets::kMost> waiting{};
    waiting[0] = {queue_.socket().fd(), static_cast<short>(backlog_ ? POLLIN | POLLOUT : POLLIN), 0};
    waiting[1] = {also, POLLIN, 0};  // poll ignores a negative one
    waiting[2] = {queue_.wakeup_fd(), POLLIN, 0};
    nfds_t count = 3;
    for (const auto& [group, socket] : groups_.entries()) {
        waiting[count++] = {socket.fd(), POLLIN, 0};
    }
    const timespec timeout{most.ns / 1'000'000'000, most.ns % 1'000'000'000};
    ppoll(waiting.data(), count, &timeout, nullptr);
}

int UringPort::descriptor() noexcept {
    if (epoll_.fd() < 0) {
        epoll_.open(queue_.socket().fd());
        if (!queue_.is_alone()) {
            epoll_.add(queue_.wakeup_fd());
        }
        for (const auto& [group, socket] : groups_.entries()) {
            epoll_.add(socket.fd());
        }
    }
    return epoll_.fd();
}

Status UringPort::join(const net::IpAddress& group) {
    const auto joined = groups_.join({config_.local, config_.udp_port}, group);
    if (!joined.ok()) {
        return joined.error();
    }
    epoll_.add(joined.value()->fd());
    return Nothing{};
}

void UringPort::leave(const net::IpAddress& group) noexcept {
    groups_.leave(group);
}

std::size_t UringPort::buffers_in_use() const noexcept {
    return blocks_.in_use() - (receive_block_ != nullptr ? 1U : 0U);
}

PortLimits UringPort::limits() const noexcept {
    const std::uint32_t below = config_.local.is_v4() ? 28 : 48;
    const std::uint32_t link = std::max(queue_.socket().link_mtu_bytes(), below) - below;
    return {static_cast<std::uint16_t>(std::min<std::uint32_t>(link, kMaxUdpPayloadBytes)), kBurst, false, gso_,
            memory_.kind()};
}

std::string UringPort::describe() const {
    std::string text = fmt::format("{} port {}: UDP socket over {}, MTU {}, receive buffer {} KiB, {}",
                                   config_.local.text(), config_.udp_port, io_->describe(),
                                   queue_.socket().link_mtu_bytes(), queue_.socket().receive_buffer_bytes() / 1024,
                                   gso_ ? "batches by UDP_SEGMENT and UDP_GRO" : "one datagram per call");
    text += queue_.is_alone() ? "" : ", " + queue_.describe();
    if (!io_refused_.empty()) {
        text += "; " + io_refused_;
    }
    return text;
}

}  // namespace cairn::port
