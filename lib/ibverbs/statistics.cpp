#include "lib/ibverbs/statistics.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/base/secret.hpp"

namespace cairn::ibverbs {

namespace {

constexpr std::size_t kStackBytes = 256U << 10U;
constexpr int kWaiting = 8;
constexpr timeval kPatience{2, 0};

struct Shown {
    std::string device;
    std::weak_ptr<Adapter> adapter;
};

// Of this process. A child of fork() has neither the thread nor the right to the socket: it begins anew.
struct Statistics {
    std::mutex mutex;
    std::vector<Shown> shown;
    int socket = -1;
};
Statistics* statistics_of_process = nullptr;

void forget_statistics() noexcept {
    if (statistics_of_process != nullptr && statistics_of_process->socket >= 0) {
        close(statistics_of_process->socket);
    }
    statistics_of_process = nullptr;  // its mutex may be held by nobody who is here
}

std::string text_of(Statistics& statistics) {
    std::vector<std::pair<std::string, std::shared_ptr<Adapter>>> adapters;
    {
        const std::lock_guard hold(statistics.mutex);
        for (const Shown& each : statistics.shown) {
            if (std::shared_ptr<Adapter> adapter = each.adapter.lock()) {
                adapters.emplace_back(each.device, std::move(adapter));
            }
        }
    }
    std::string text = fmt::format("{}\n", program_invocation_short_name);
    for (const auto& [device, adapter] : adapters) {
        worker::Worker& worker = adapter->worker();
        text += fmt::format("{} {}\n{}", device, worker.port().local_address().text(), worker.counters().text());
    }
    return text;
}

bool is_same_user(int connection) noexcept {
    ucred peer{};
    socklen_t bytes = sizeof(peer);
    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

void answer(Statistics& statistics, int connection) {
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    const std::string text = text_of(statistics);
    for (std::size_t sent = 0; sent < text.size();) {
        const ssize_t some = send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (some <= 0) {
            return;
        }
        sent += static_cast<std::size_t>(some);
    }
}

void* serve(void* given) noexcept {
    Statistics& statistics = *static_cast<Statistics*>(given);
    pthread_setname_np(pthread_self(), "cairn-stat");
    for (;;) {
        const int connection = accept4(statistics.socket, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0) {
            const timespec pause{0, 100'000'000};  // no descriptor is left, perhaps
            nanosleep(&pause, nullptr);
            continue;
        }
        try {
            if (is_same_user(connection)) {
                answer(statistics, connection);
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

bool start(Statistics& statistics) noexcept {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's signals are for its own threads
    pthread_t thread{};
    const bool started = pthread_create(&thread, &attributes, serve, &statistics) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    return started;
}

// Called by one thread at a time: by who opens an adapter.
Statistics& statistics() {
    static const int registered = pthread_atfork(nullptr, nullptr, forget_statistics);
    static_cast<void>(registered);
    if (statistics_of_process == nullptr) {
        statistics_of_process = new Statistics;
        statistics_of_process->socket = open_socket();
        if (statistics_of_process->socket >= 0 && !start(*statistics_of_process)) {
            close(std::exchange(statistics_of_process->socket, -1));
        }
    }
    return *statistics_of_process;
}

}  // namespace

void show_statistics(const std::string& device, const std::shared_ptr<Adapter>& adapter) {
    static std::mutex one_at_a_time;
    const std::lock_guard only(one_at_a_time);
    Statistics& of = statistics();
    const std::lock_guard hold(of.mutex);
    std::erase_if(of.shown, [](const Shown& each) { return each.adapter.expired(); });
    of.shown.push_back({device, adapter});
}

}  // namespace cairn::ibverbs
