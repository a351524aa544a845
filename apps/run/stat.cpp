#include "apps/run/stat.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "lib/base/monotonic_clock.hpp"
#include "lib/base/owned_fd.hpp"
#include "lib/ibverbs/statistics.hpp"

namespace cairn::launch {

namespace {

constexpr Duration kPatience = seconds(2);           // for all answers together
constexpr std::size_t kMostBytes = 1U << 20U;        // of an answer
constexpr std::string_view kListens = " 00010000 ";  // flags

struct Answer {
    int pid = 0;
    OwnedFd socket;
    std::string text;
};

// Programs of others are passed over; root asks all. nullopt: it is none that is asked, or it has gone.
std::optional<Answer> ask(const std::string& name, int pid) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (name.size() >= sizeof(address.sun_path)) {
        return std::nullopt;
    }
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    Answer answer;
    answer.socket = OwnedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ucred peer{};
    socklen_t peer_bytes = sizeof(peer);
    if (connect(answer.socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
        getsockopt(answer.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0 ||
        (peer.uid != geteuid() && geteuid() != 0) || (pid != 0 && peer.pid != pid)) {
        return std::nullopt;
    }
    answer.pid = peer.pid;
    return answer;
}

// Reads what has come. An answer that has ended has no socket.
void read_some(Answer& answer) {
    std::array<char, 4096> part{};
    const ssize_t got = recv(answer.socket.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (got > 0) {
        answer.text.append(part.data(), static_cast<std::size_t>(got));
    }
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) || answer.text.size() >= kMostBytes) {
        answer.socket = OwnedFd();
    }
}

// Reads all answers at once, until the last has ended or time is up.
void collect(std::vector<Answer>& answers) {
    const Instant until = read_monotonic() + kPatience;
    for (Instant now = read_monotonic(); now < until; now = read_monotonic()) {
        std::vector<pollfd> waiting;
        for (const Answer& each : answers) {
            waiting.push_back({each.socket.get(), POLLIN, 0});  // a negative one is passed over
        }
        const bool any = std::any_of(waiting.begin(), waiting.end(), [](const pollfd& each) { return each.fd >= 0; });
        if (!any || ::poll(waiting.data(), waiting.size(), static_cast<int>((until - now).ns / 1'000'000) + 1) <= 0) {
            return;
        }
        for (std::size_t i = 0; i < answers.size(); ++i) {
            if (waiting[i].revents != 0) {
                read_some(answers[i]);
            }
        }
    }
}

// Whoever answers may write anything, and it goes to a terminal.
void print(const Answer& answer) {
    std::string text = answer.text.empty() ? "does not answer\n" : answer.text;
    std::replace_if(
        text.begin(), text.end(),
        [](char each) { return each != '\n' && std::iscntrl(static_cast<unsigned char>(each)); }, '?');
    fmt::print("{} {}{}", answer.pid, text, text.back() == '\n' ? "" : "\n");
}

}  // namespace

// mutants: run-listening-sockets
std::vector<std::string> listening_sockets(std::string_view table, std::string_view prefix) {
    std::vector<std::string> names;
    while (!table.empty()) {
        const std::size_t end = std::min(table.find('\n'), table.size());
        const std::string_view line = table.substr(0, end);
        table.remove_prefix(std::min(end + 1, table.size()));
        const std::size_t at = line.rfind('@');
        const bool listens = line.find(kListens) < at;
        if (at != std::string_view::npos && listens && line.substr(at + 1).starts_with(prefix)) {
            names.emplace_back(line.substr(at + 1));
        }
    }
    return names;
}

int show_counters(int pid) {
    std::ifstream file("/proc/net/unix");
    const std::string table((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::vector<Answer> answers;
    for (const std::string& name : listening_sockets(table, ibverbs::kStatisticsPrefix)) {
        if (std::optional<Answer> answer = ask(name, pid)) {
            answers.push_back(std::move(*answer));
        }
    }
    collect(answers);
    std::sort(answers.begin(), answers.end(), [](const Answer& a, const Answer& b) { return a.pid < b.pid; });
    std::for_each(answers.begin(), answers.end(), print);
    if (answers.empty()) {
        fmt::print("{}\n", pid == 0 ? std::string("no program of yours uses the library")
                                    : fmt::format("process {} does not use the library", pid));
    }
    return answers.empty() && pid != 0 ? 1 : 0;
}

}  // namespace cairn::launch
