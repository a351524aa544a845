#include "fs/client/daemon_socket.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lib/base/passed_fds.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint32_t kLeastChunkBytes = 4096;
constexpr std::uint32_t kMostChunkBytes = 1U << 30U;

Error unreachable(const std::string& path, int error) {
    return {fmt::format("no daemon answers at '{}': {}", path, std::strerror(error)),
            "start cairn-fsd, or name its socket by CAIRN_FS_SOCKET"};
}

// Takes as many descriptors of a message as `to` has room for, and closes the others.
void take_descriptors(msghdr& message, std::span<OwnedFd> to) {
    std::size_t taken = 0;
    take_fds(message, [&taken, to](int fd) {
        OwnedFd descriptor(fd);
        if (taken != to.size()) {
            to[taken++] = std::move(descriptor);
        }
    });
}

}  // namespace

Result<DaemonSocket> DaemonSocket::connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof(address.sun_path)) {
        return unreachable(path, ENAMETOOLONG);
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    OwnedFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!socket.is_open()) {
        return unreachable(path, errno);
    }
    const timeval limit{kPatience.ns / 1'000'000'000, 0};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
        ::setsockopt(socket.get(), SOL_SOCKET, option, &limit, sizeof(limit));
    }
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        return unreachable(path, errno);
    }
    return DaemonSocket(std::move(socket), path);
}

Result<Welcome> DaemonSocket::meet(std::uint64_t client) {
    Packet packet;
    if (const Status sent = send(bytes_of(Hello{client})); !sent.ok()) {
        return sent.error();
    }
    if (const Status received = receive(packet); !received.ok()) {
        return received.error();
    }
    std::optional<Welcome> welcome = parse_welcome(packet.bytes);
    if (!welcome || !std::has_single_bit(welcome->chunk_bytes) || welcome->chunk_bytes < kLeastChunkBytes ||
        welcome->chunk_bytes > kMostChunkBytes) {
        return refused(packet.bytes);
    }
    return std::move(*welcome);
}

Result<std::string> DaemonSocket::ask_counters() {
    Packet packet;
    if (const Status sent = send(bytes_of(CountersRequest{})); !sent.ok()) {
        return sent.error();
    }
    if (const Status received = receive(packet); !received.ok()) {
        return received.error();
    }
    std::optional<CountersAnswer> answer = parse_counters_answer(packet.bytes);
    if (!answer) {
        return refused(packet.bytes);
    }
    return std::move(answer->text);
}

Result<ChannelParts> DaemonSocket::ask_channel(std::uint16_t shard, const ChannelShape& shape) {
    Packet packet;
    if (const Status sent = send(bytes_of(ChannelRequest{shard})); !sent.ok()) {
        return sent.error();
    }
    if (const Status received = receive(packet); !received.ok()) {
        return received.error();
    }
    const std::optional<ChannelRequest> answer = parse_channel_request(packet.bytes);
    if (!answer || answer->shard != shard || !packet.descriptors[1].is_open()) {
        return refused(packet.bytes);
    }
    Result<Segment> segment = Segment::map(packet.descriptors[0].release(), shape);
    if (!segment.ok()) {
        return segment.error();
    }
    return ChannelParts{std::move(segment).value(), std::move(packet.descriptors[1])};
}

Result<std::optional<SharedMemory>> DaemonSocket::ask_buffers() {
    Packet packet;
    if (const Status sent = send(bytes_of(BuffersRequest{})); !sent.ok()) {
        return sent.error();
    }
    if (const Status received = receive(packet); !received.ok()) {
        return received.error();
    }
    const std::optional<BuffersRequest> answer = parse_buffers_request(packet.bytes);
    if (!answer || (answer->bytes != 0 && !packet.descriptors[0].is_open())) {
        return refused(packet.bytes);
    }
    if (answer->bytes == 0) {
        return std::optional<SharedMemory>{};
    }
    Result<SharedMemory> memory = SharedMemory::map(
        packet.descriptors[0].release(), static_cast<std::size_t>(answer->bytes), SharedMemory::Pages::AsTouched);
    if (!memory.ok()) {
        return memory.error();
    }
    return std::optional<SharedMemory>(std::move(memory).value());
}

// A daemon sends nothing unasked, so a readable socket means its end.
bool DaemonSocket::has_hung_up() const noexcept {
    if (!socket_.is_open()) {
        return true;
    }
    pollfd look{socket_.get(), POLLIN, 0};
    return ::poll(&look, 1, 0) > 0;
}

Status DaemonSocket::send(std::span<const std::uint8_t> bytes) {
    if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
        return unreachable(path_, errno);
    }
    return Nothing{};
}

Status DaemonSocket::receive(Packet& packet) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(2 * sizeof(int))> control{};
    iovec part{packet.room.data(), packet.room.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t bytes = 0;
    do {
        bytes = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    } while (bytes < 0 && errno == EINTR);
    if (bytes < 0) {
        return unreachable(path_, errno == EAGAIN ? ETIMEDOUT : errno);
    }
    take_descriptors(message, packet.descriptors);
    if (bytes == 0) {
        return unreachable(path_, ECONNRESET);
    }
    packet.bytes = std::span<const std::uint8_t>(packet.room).first(static_cast<std::size_t>(bytes));
    return Nothing{};
}

Error DaemonSocket::refused(std::span<const std::uint8_t> bytes) const {
    if (const std::optional<Refusal> refusal = parse_refusal(bytes)) {
        return {fmt::format("the daemon at '{}' refuses: {}", path_, refusal->text), ""};
    }
    return {fmt::format("what answers at '{}' is no daemon of this version", path_),
            "run daemons and clients of one version"};
}

}  // namespace cairn::fs
