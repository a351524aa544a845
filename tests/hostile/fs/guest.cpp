#include "tests/hostile/fs/guest.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>

#include "lib/base/passed_fds.hpp"

namespace cairn::hostile {

namespace {

constexpr int kPatienceS = 10;
constexpr std::size_t kMostFds = 250;

}  // namespace

FsAttacker::FsAttacker(const FsOptions& given)
    : options(given),
      until(std::chrono::steady_clock::now() +
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(given.seconds))),
      chance(given.seed) {}

FsGuest::FsGuest(FsAttacker& attacker)
    : attacker_(attacker), socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, attacker.options.socket.c_str(), sizeof(address.sun_path) - 1);
    const timeval limit{kPatienceS, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
        socket_ = OwnedFd();
    } else {
        ++attacker.tally.connections;
    }
}

bool FsGuest::send(std::span<const std::uint8_t> bytes, std::span<const int> fds) noexcept {
    return send_with_fds<kMostFds>(socket_.get(), bytes, fds, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

FsGuest::Reply FsGuest::read() {
    Reply reply;
    reply.bytes.resize(fs::kMostHelloBytes);
    iovec part{reply.bytes.data(), reply.bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t bytes = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    reply.bytes.resize(static_cast<std::size_t>(bytes > 0 ? bytes : 0));
    take_fds(message, [&reply](int fd) { reply.fds.emplace_back(fd); });
    return reply;
}

void FsGuest::note_end(const Reply& reply) {
    if (const auto refusal = fs::parse_refusal(reply.bytes)) {
        ++attacker_.tally.refusals;
        attacker_.tally.last_refusal = refusal->text;
    } else {
        ++attacker_.tally.hung_up;
    }
    leave();
}

bool FsGuest::meet(std::uint64_t number) {
    if (!is_connected()) {
        return false;
    }
    (void)send(fs::bytes_of(fs::Hello{number}));
    const Reply reply = read();
    std::optional<fs::Welcome> welcome = fs::parse_welcome(reply.bytes);
    if (!welcome) {
        note_end(reply);
        return false;
    }
    welcome_ = std::move(*welcome);
    return true;
}

std::optional<FsChannel> FsGuest::channel(std::uint16_t shard) {
    if (!is_connected()) {
        return std::nullopt;
    }
    (void)send(fs::bytes_of(fs::ChannelRequest{shard}));
    Reply reply = read();
    if (!fs::parse_channel_request(reply.bytes) || reply.fds.size() != 2) {
        note_end(reply);
        return std::nullopt;
    }
    auto segment = fs::Segment::map(::dup(reply.fds[0].get()), welcome_.shape);
    if (!segment.ok()) {
        return std::nullopt;
    }
    ++attacker_.tally.channels;
    return FsChannel{std::move(segment).value(), std::move(reply.fds[1])};
}

bool FsGuest::has_news() const noexcept {
    pollfd one{socket_.get(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
}

}  // namespace cairn::hostile
