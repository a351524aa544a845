#include "apps/run/stat.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "lib/base/monotonic_clock.hpp"
#include "lib/base/owned_fd.hpp"
#include "lib/ibverbs/statistics.hpp"

namespace cairn::launch {

namespace {

constexpr Duration kPatience = seconds(2);           // for all answers together
constexpr std::size_t kMostBytes = 1U << 20U;        // of an answer
constexpr std::size_t kMostOfUser = 256;             // sockets that root asks: as many programs share an address
constexpr std::string_view kListens = " 00010000 ";  // flags

struct Answer {
    int pid = 0;
    OwnedFd socket;
    std::string text;
};

// The programs that were asked. They are of this user or, if it is root, of all.
struct Asked {
    std::vector<Answer> answers;
    std::map<uid_t, std::size_t> of_user;
};

// Asks the program that has the name, if it has `pid` or `pid` is 0. Returns false if no socket is left for more.
bool ask(const std::string& name, int pid, Asked& asked) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (name.size() >= sizeof(address.sun_path)) {
        return true;
    }
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    Answer answer;
    answer.socket = OwnedFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!answer.socket.is_open()) {
        fmt::print(stderr, "cairn-run: not all programs are shown: no socket: {}\n", std::strerror(errno));
        return false;
    }
    ucred peer{};
    socklen_t peer_bytes = sizeof(peer);
    if (connect(answer.socket.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
        getsockopt(answer.socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0 ||
        (peer.uid != geteuid() && geteuid() != 0) || (pid != 0 && peer.pid != pid)) {
        return true;
    }
    const std::size_t count = ++asked.of_user[peer.uid];
    if (count <= kMostOfUser) {
        answer.pid = peer.pid;
        asked.answers.push_back(std::move(answer));
    } else if (count == kMostOfUser + 1) {
        fmt::print(stderr, "cairn-run: uid {} has more than {} sockets: the others are not asked\n", peer.uid,
                   kMostOfUser);
    }
    return true;
}

// Reads the bytes that have come. An answer that has ended has no socket.
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

}  // namespace

std::string show_answer(int pid, std::string_view said) {
    std::string shown = fmt::format("{} ", pid);
    std::string_view rest = said.empty() ? "does not answer" : said;
    rest.remove_suffix(rest.ends_with('\n') ? 1 : 0);
    for (const char each : rest) {
        if (each == '\n') {
            shown += "\n  ";
        } else {
            shown += each >= ' ' && each <= '~' ? each : '?';
        }
    }
    return shown + '\n';
}

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
    Asked asked;
    for (const std::string& name : listening_sockets(table, ibverbs::kStatisticsPrefix)) {
        if (!ask(name, pid, asked)) {
            break;
        }
    }
    std::vector<Answer>& answers = asked.answers;
    collect(answers);
    std::sort(answers.begin(), answers.end(), [](const Answer& a, const Answer& b) { return a.pid < b.pid; });
    for (const Answer& each : answers) {
        fmt::print("{}", show_answer(each.pid, each.text));
    }
    if (answers.empty()) {
        fmt::print("{}\n", pid == 0 ? std::string("no program of yours uses the library")
                                    : fmt::format("process {} does not use the library", pid));
    }
    return answers.empty() && pid != 0 ? 1 : 0;
}

}  // namespace cairn::launch
