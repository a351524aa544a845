#include "lib/broker/membership.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "lib/base/blocked_signals.hpp"
#include "lib/base/thread_limits.hpp"
#include "lib/broker/meeting.hpp"

namespace cairn::broker {

namespace {

constexpr Duration kFirstAgain = milliseconds(50);
constexpr int kHeardAtOnce = 64;  // datagrams, before others have their turn

Error no_descriptor(int reason) {
    return {fmt::format("cannot make a descriptor: {}", std::strerror(reason)),
            "raise the limit of open files (ulimit -n)"};
}

// The memberships of this process, for its children. Never ended: threads may outlive static objects.
struct Members {
    std::mutex mutex;
    std::vector<Membership*> all;
};
Members& members() {
    static Members* const made = new Members;
    return *made;
}

}  // namespace

// Ends the membership in a child of fork(), which is no member. It must not keep the sockets open after its parent has
// gone.
struct ForkedChild {
    static void prepare() noexcept { members().mutex.lock(); }
    static void release() noexcept { members().mutex.unlock(); }
    static void forget() noexcept {
        Nowhere nowhere;
        for (Membership* const each : members().all) {
            each->forget_in_child(nowhere);
        }
        members().all.clear();
        release();
    }
    static void watch() {
        static const int watched = pthread_atfork(prepare, release, forget);
        static_cast<void>(watched);
    }
};

Result<Joined> Membership::join(const MembershipConfig& config) {
    ForkedChild::watch();
    Meeting met = ask_for_slot({config.place, config.program, config.patience});
    if (const Refusal* const why = std::get_if<Refusal>(&met)) {
        if (*why == Refusal::PortTaken || *why == Refusal::NoResources) {
            const Error said = explain(config.place, *why);
            return Joined{nullptr, *why == Refusal::PortTaken ? said.what : said.text()};
        }
        return explain(config.place, *why);
    }
    if (const NoBroker* const none = std::get_if<NoBroker>(&met)) {
        return Joined{nullptr, none->why};
    }
    Welcome& welcome = std::get<Welcome>(met);
    std::unique_ptr<Membership> made(new Membership(config));
    if (const Status begun = made->begin(std::move(welcome.connection), welcome.slot, std::move(welcome.sockets));
        !begun.ok()) {
        return begun.error();
    }
    return Joined{std::move(made), {}};
}

Status Membership::begin(OwnedFd connection, Slot slot, std::vector<OwnedFd> held) {
    slot_ = slot;
    held_ = std::move(held);
    connection_ = std::move(connection);
    end_event_ = OwnedFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    const int own = fcntl(held_.at(slot.value).get(), F_DUPFD_CLOEXEC, 0);
    if (!end_event_.is_open() || own < 0) {
        return no_descriptor(errno);
    }
    Result<port::UdpSocket> socket = port::UdpSocket::adopt(own, {config_.place.local, config_.place.udp_port});
    if (!socket.ok()) {
        return socket.error();
    }
    auto queues = port::SocketQueues::lend({config_.place.local, config_.place.udp_port, 1, config_.pcap},
                                           std::move(socket).value(), slot.value);
    if (!queues.ok()) {
        return queues.error();
    }
    queues_ = std::move(queues).value();
    voice_.begin(connection_.get(), queues_->outbox_wakeup());
    const std::lock_guard hold(members().mutex);
    try {
        const BlockedSignals blocked;
        thread_ = std::thread([this] { run(); });
        members().all.push_back(this);
    } catch (const std::system_error& refused) {
        return Error{fmt::format("cannot start a thread: {}", refused.what()), remedy_for_threads()};
    }
    return Nothing{};
}

Membership::~Membership() {
    {
        const std::lock_guard hold(members().mutex);
        std::erase(members().all, this);
    }
    ends_.store(true, std::memory_order_release);
    const std::uint64_t one = 1;
    static_cast<void>(write(end_event_.get(), &one, sizeof(one)));
    if (thread_.joinable()) {
        thread_.join();
    }
    voice_.say_farewell();
}

void Membership::forget_in_child(Nowhere& nowhere) noexcept {
    for (const OwnedFd& each : held_) {
        nowhere.replace(each.get());
    }
    nowhere.replace(connection_.get());
    voice_.forget_in_child();
    nowhere.replace(queues_->lent_socket());
}

void Membership::run() noexcept {
    pthread_setname_np(pthread_self(), "cairn-broker");
    while (!ends_.load(std::memory_order_acquire)) {
        sleep(connection_.is_open() ? -1 : static_cast<int>(again_.ns / 1'000'000));
        if (ends_.load(std::memory_order_acquire)) {
            return;
        }
        if (connection_.is_open()) {
            hear();
            voice_.go_on();
        } else {
            come_back();
        }
        speak();
    }
}

void Membership::sleep(int timeout_ms) noexcept {
    Wakeup& outbox = queues_->outbox_wakeup();
    outbox.begin_sleep();
    if (queues_->outbox_empty()) {
        const short wanted = static_cast<short>(voice_.waits_for_room() ? POLLIN | POLLOUT : POLLIN);
        std::array<pollfd, 3> waiting{
            {{end_event_.get(), POLLIN, 0}, {outbox.fd(), POLLIN, 0}, {connection_.get(), wanted, 0}}};
        poll(waiting.data(), waiting.size(), timeout_ms);  // passes over a negative descriptor
    }
    outbox.end_sleep();
}

// Takes in messages of the broker. A message other than an answer or a forwarded datagram ends the connection.
void Membership::hear() noexcept {
    Packet packet;
    for (int heard = 0; heard < kHeardAtOnce; ++heard) {
        const Received got = receive_packet(connection_.get(), packet, false);
        if (got == Received::Nothing) {
            return;
        }
        const std::optional<Message> said = got == Received::Packet ? parse_message(packet.bytes) : std::nullopt;
        if (const Claimed* const claimed = said ? std::get_if<Claimed>(&*said) : nullptr) {
            voice_.hear(*claimed);
        } else if (const Stray* const stray = said ? std::get_if<Stray>(&*said) : nullptr) {
            bring(*stray);
        } else {
            lose_connection();
            return;
        }
    }
}

// Brings a datagram to the port. It is lost if the port does not keep up.
void Membership::bring(const Stray& stray) noexcept {
    static_cast<void>(queues_->bring([&stray](port::HandedOver& to) noexcept {
        to.remote = stray.remote;
        to.udp_source_port = stray.udp_source_port;
        to.index = stray.index;
        to.ecn = stray.ecn;
        to.len = static_cast<std::uint16_t>(stray.bytes.size());
        std::copy(stray.bytes.begin(), stray.bytes.end(), to.bytes.begin());
    }));
}

void Membership::lose_connection() noexcept {
    voice_.end();
    connection_ = OwnedFd();
    again_ = Duration{};
}

// Sends the broker the datagrams that came here and are for other programs. They are lost while there is no broker, or
// if it does not keep up.
void Membership::speak() noexcept {
    const auto lead = [this](const port::HandedOver& datagram) noexcept {
        voice_.lead({datagram.remote, datagram.udp_source_port, datagram.index, datagram.ecn,
                     std::span(datagram.bytes).first(datagram.len)});
    };
    while (queues_->take_out(lead)) {
    }
}

void Membership::come_back() noexcept {
    std::vector<int> fds;
    for (const OwnedFd& each : held_) {
        fds.push_back(each.get());
    }
    Meeting met = broker::come_back({config_.place, config_.program, config_.patience}, slot_, fds);
    Welcome* const welcome = std::get_if<Welcome>(&met);
    if (welcome == nullptr) {
        again_ = std::min(std::max(again_ * 2, kFirstAgain), config_.again_most);
        return;
    }
    connection_ = std::move(welcome->connection);
    voice_.begin(connection_.get(), queues_->outbox_wakeup());
}

}  // namespace cairn::broker
