#include "lib/ibverbs/statistics.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "lib/base/blocked_signals.hpp"
#include "lib/base/secret.hpp"
#include "lib/broker/users.hpp"
#include "lib/ibverbs/adapter.hpp"
#include "lib/ibverbs/in_use.hpp"

namespace cairn::ibverbs {

namespace {

constexpr std::size_t kStackBytes = 256U << 10U;
constexpr int kWaiting = 8;
constexpr timeval kPatience{2, 0};

// The socket of this process; -1: there is none. A child of fork() has neither the thread nor the right to the socket:
// it begins anew.
int socket_of_process = -1;

void forget_statistics() noexcept {
    if (socket_of_process >= 0) {
        close(std::exchange(socket_of_process, -1));
    }
}

std::string write_text() {
    std::string text = fmt::format("{}\n", program_invocation_short_name);
    InUse::visit([&text](const std::string& device, Adapter& adapter) {
        worker::Worker& worker = adapter.worker();
        text += fmt::format("{} {}\n{}", device, worker.port().local_address().text(), worker.counters().text());
    });
    return text;
}

bool is_same_user(int connection) noexcept {
    ucred peer{};
    socklen_t bytes = sizeof(peer);
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           (broker::is_user(peer.uid, geteuid()) || broker::is_user(peer.uid, 0));
}

void answer(int connection) {
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    const std::string text = write_text();
    for (std::size_t sent = 0; sent < text.size();) {
        const ssize_t some = send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (some <= 0) {
            return;
        }
        sent += static_cast<std::size_t>(some);
    }
}

void* serve(void*) noexcept {
    pthread_setname_np(pthread_self(), "cairn-stat");
    for (;;) {
        const int connection = accept4(socket_of_process, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0) {
            const timespec pause{0, 100'000'000};  // no descriptor is left, perhaps
            nanosleep(&pause, nullptr);
            continue;
        }
        try {
            if (is_same_user(connection)) {
                answer(connection);
            }
        } catch (...) {  // no memory: an answer that ends early
        }
        close(connection);
    }
}

int open_socket() {
    const std::string name = fmt::format("{}{}.{:08x}", kStatisticsPrefix, getpid(), draw_secret()[0] & 0xffffffffU);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (bind(fd, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 || listen(fd, kWaiting) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

bool start() noexcept {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread{};
    const BlockedSignals blocked;
    const bool started = pthread_create(&thread, &attributes, serve, nullptr) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

}  // namespace

void show_statistics() {
    static const int registered = pthread_atfork(nullptr, nullptr, forget_statistics);
    static_cast<void>(registered);
    if (socket_of_process < 0) {
        socket_of_process = open_socket();
        if (socket_of_process >= 0 && !start()) {
            close(std::exchange(socket_of_process, -1));
        }
    }
}

}  // namespace cairn::ibverbs
