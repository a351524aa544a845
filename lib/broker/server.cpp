#include "lib/broker/server.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "lib/base/monotonic_clock.hpp"
#include "lib/broker/mad_datagram.hpp"
#include "lib/broker/users.hpp"

namespace cairn::broker {

namespace {

// The source of an event of the epoll, in the low bits of its word, below the client's number.
enum class Source : std::uint8_t { Listener, OwnSocket, Connection, Process };
constexpr unsigned kSourceBits = 2;

constexpr std::uint64_t word_of(Source source, ClientId id = {}) noexcept {
    return id.value << kSourceBits | static_cast<std::uint64_t>(source);
}

constexpr int kServedAtOnce = 16;  // of one source, before others have their turn
constexpr Duration kListenerRest = milliseconds(100);
constexpr int kLongestMs = 1000;  // between two looks whether to end

// Returns whole milliseconds, rounded up.
int ms_until(Instant due, Instant now) noexcept {
    const std::int64_t ns = due == Instant::never() ? std::int64_t{kLongestMs} * 1'000'000 : (due - now).ns;
    return static_cast<int>(std::clamp<std::int64_t>((ns + 999'999) / 1'000'000, 0, kLongestMs));
}

}  // namespace

Result<std::unique_ptr<Server>> Server::make(const Place& place, OwnedFd listener, const HubConfig& config,
                                             std::uint32_t user) {
    OwnedFd epoll(epoll_create1(EPOLL_CLOEXEC));
    const bool made = epoll.is_open();
    std::unique_ptr<Server> server(new Server(place, std::move(listener), std::move(epoll), config, user));
    if (!made || !server->watch(server->listener_.get(), word_of(Source::Listener))) {
        return Error{fmt::format("cannot watch the socket of {}: {}", place.text(), std::strerror(errno)),
                     "raise the limit of open files (ulimit -n)"};
    }
    return server;
}

Server::Server(const Place& place, OwnedFd listener, OwnedFd epoll, const HubConfig& config, std::uint32_t user)
    : place_(place),
      listener_(std::move(listener)),
      group_(place),
      epoll_(std::move(epoll)),
      user_(user),
      hub_(*this, place.local, config, read_monotonic()) {}

Server::~Server() = default;

bool Server::watch(int fd, std::uint64_t what) noexcept {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = what;
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

// Runs the hub. A program that asked while the broker decided to end is still served.
void Server::run(const std::function<bool()>& ends) {
    std::array<epoll_event, 64> events;
    while (!ends() && !makes_room_) {
        const Instant now = read_monotonic();
        if (hub_.next_deadline() <= now) {
            hub_.on_timeout(now);
            close_ended();
            if (hub_.is_over(now) && serve_listener()) {
                hear_all();
                if (hub_.is_over(read_monotonic())) {
                    return;
                }
            }
        }
        wake_listener(now);
        const Instant due = std::min(hub_.next_deadline(), listener_rests_until_);
        const int count =
            epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), ms_until(due, read_monotonic()));
        for (int i = 0; i < count; ++i) {
            serve(events[static_cast<std::size_t>(i)].data.u64);
            close_ended();
        }
    }
}

void Server::serve(std::uint64_t what) {
    const ClientId id{what >> kSourceBits};
    switch (static_cast<Source>(what & ((1U << kSourceBits) - 1))) {
        case Source::Listener:
            (void)serve_listener();
            return;
        case Source::OwnSocket:
            return serve_own_socket();
        case Source::Connection:
            return serve_connection(id);
        case Source::Process:
            return lose(id);
    }
}

// Accepts connections. Returns whether all that wait have been accepted, or as many as there are descriptors for.
bool Server::serve_listener() {
    bool is_all = false;
    for (int served = 0; served < kServedAtOnce && !is_all; ++served) {
        OwnedFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket.is_open()) {
            is_all = true;
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                rest_listener(read_monotonic() + kListenerRest);
            }
        } else if (!is_user(peer_of(socket.get()).uid, user_)) {
            strangers_.push_back(std::move(socket));
        } else {
            connect(std::move(socket));
        }
    }
    if (!strangers_.empty() && (is_all || !hub_.is_unused())) {
        turn_away();
    }
    return is_all;
}

void Server::connect(OwnedFd socket) {
    const ClientId id{++last_id_};
    const int fd = socket.get();
    connections_[id].socket = std::move(socket);
    hub_.on_connected(id, read_monotonic());
    if (!watch(fd, word_of(Source::Connection, id))) {
        lose(id);
    }
    close_ended();
}

// Takes in all messages. A program that has asked needs the broker, even if its message is not read yet.
void Server::hear_all() {
    for (const auto& [id, connection] : connections_) {
        serve_connection(id);
    }
}

// Turns away the connections of other users. If no program needs this broker, it ends, which tells them. Messages of
// its own user are read first. Otherwise two brokers of different users could each end for the other, although programs
// of their own users came meanwhile.
void Server::turn_away() {
    if (hub_.is_unused()) {
        hear_all();
    }
    makes_room_ = hub_.is_unused();
    if (makes_room_) {
        return;
    }
    for (const OwnedFd& stranger : std::exchange(strangers_, {})) {
        hub_.counters().count(Counter::AnotherUser);
        (void)send_message(stranger.get(), Refused{Refusal::AnotherUser}, {}, false);
    }
}

// Stops watching the listener for a while. The connections that wait there would be reported again and again.
void Server::rest_listener(Instant until) noexcept {
    hub_.counters().count(Counter::NoDescriptor);
    listener_rests_until_ = until;
    epoll_event event{};
    event.data.u64 = word_of(Source::Listener);
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
}

void Server::wake_listener(Instant now) noexcept {
    if (listener_rests_until_ > now) {
        return;
    }
    listener_rests_until_ = Instant::never();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = word_of(Source::Listener);
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
}

void Server::serve_own_socket() {
    for (int served = 0; served < kServedAtOnce; ++served) {
        if (!strays_.read(group_.sockets().front().fd(), [this](const Stray& stray) { hub_.on_stray(stray); })) {
            return;
        }
    }
}

void Server::serve_connection(ClientId id) {
    Packet packet;
    for (int served = 0; served < kServedAtOnce; ++served) {
        const auto found = connections_.find(id);
        if (found == connections_.end() || found->second.ended) {
            return;
        }
        switch (receive_packet(found->second.socket.get(), packet, false)) {
            case Received::Nothing:
                return;
            case Received::NoDescriptor:
                hub_.counters().count(Counter::NoDescriptor);
                return lose(id);
            case Received::End:
                return lose(id);
            case Received::Packet:
                take(id, found->second, packet);
        }
    }
}

// Takes in a message with its descriptors. Sockets carries as many sockets as it says. Another message may carry the
// process that sent it.
void Server::take(ClientId id, Connection& connection, Packet& packet) {
    std::optional<Message> said = parse_message(packet.bytes);
    if (said && std::holds_alternative<Sockets>(*said)) {
        if (packet.fds.size() != std::get<Sockets>(*said).count) {
            said.reset();
        }
        for (OwnedFd& fd : packet.fds) {
            connection.brought.push_back(std::move(fd));
        }
    } else if (packet.fds.size() == 1 && !connection.process.is_open()) {
        connection.process = std::move(packet.fds.front());
        (void)watch(connection.process.get(), word_of(Source::Process, id));  // if refused, its socket shows the end
    }
    packet.fds.clear();
    hub_.on_message(id, said, read_monotonic());
}

void Server::lose(ClientId id) {
    if (const auto found = connections_.find(id); found != connections_.end() && !found->second.ended) {
        hub_.on_lost(id, read_monotonic());
        end(id);
    }
}

// Forgets the process. The client holds the descriptor of its process, too, so closing it here does not take it out of
// the epoll.
void Server::forget(Connection& connection) noexcept {
    if (connection.process.is_open()) {
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.process.get(), nullptr);
    }
}

void Server::close_ended() {
    for (const ClientId id : std::exchange(ended_, {})) {
        const auto found = connections_.find(id);
        forget(found->second);
        connections_.erase(found);
    }
}

Instant Server::read_clock() {
    return read_monotonic();
}

Hands::Opening Server::open() {
    if (!group_.open()) {
        return Opening::Taken;
    }
    (void)watch(group_.sockets().front().fd(), word_of(Source::OwnSocket));
    return Opening::Open;
}

Hands::Growth Server::grow() {
    return group_.grow();
}

std::optional<std::uint16_t> Server::adopt(ClientId client) {
    const bool had_none = group_.sockets().empty();
    if (!group_.adopt(std::exchange(connections_.at(client).brought, {}))) {
        return std::nullopt;
    }
    if (had_none) {
        (void)watch(group_.sockets().front().fd(), word_of(Source::OwnSocket));
    }
    return static_cast<std::uint16_t>(group_.sockets().size());
}

void Server::drain(Slot slot) {
    group_.drain(slot.value);
}

bool Server::send(ClientId client, const Message& message) {
    return send_message(connections_.at(client).socket.get(), message, {}, false);
}

bool Server::send_sockets(ClientId client) {
    std::vector<int> fds;
    for (const port::UdpSocket& socket : group_.sockets()) {
        fds.push_back(socket.fd());
    }
    return broker::send_sockets(connections_.at(client).socket.get(), fds, false);
}

void Server::end(ClientId client) {
    Connection& connection = connections_.at(client);
    if (!std::exchange(connection.ended, true)) {
        ended_.push_back(client);
    }
}

void Server::send_mad(const Will& will) {
    if (will.remote.is_v4() != place_.local.is_v4()) {
        return;
    }
    const MadDatagram datagram({place_.local, will.remote, place_.udp_port},
                               mad_header(std::exchange(psn_, psn_.next())), will.mad);
    sockaddr_storage to{};
    const socklen_t length = port::to_sockaddr(will.remote, place_.udp_port, to);
    (void)sendto(group_.sockets().front().fd(), datagram.bytes().data(), kMadDatagramBytes, MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&to), length);
}

}  // namespace cairn::broker
