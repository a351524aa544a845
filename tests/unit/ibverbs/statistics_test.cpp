// Reading statistics disturbs no other program.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "lib/base/owned_fd.hpp"
#include "lib/ibverbs/statistics.hpp"
#include "tests/support/user_namespace.hpp"
#include "tests/support/verbs_devices.hpp"

namespace cairn::test {
namespace {

std::string find_socket(pid_t of = getpid()) {
    const std::string begin = std::string("@") + ibverbs::kStatisticsPrefix + std::to_string(of) + ".";
    std::ifstream all("/proc/net/unix");
    for (std::string line; std::getline(all, line);) {
        if (const std::size_t at = line.find(begin); at != std::string::npos) {
            return line.substr(at + 1);
        }
    }
    return {};
}

std::string ask(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), address.sun_path + 1);
    const OwnedFd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), bytes), 0);
    std::string answer;
    std::array<char, 4096> some{};
    for (ssize_t got = 1; got > 0;) {
        got = read(connection.get(), some.data(), some.size());
        answer.append(some.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    return answer;
}

// Counts the threads of this process with this name. For a moment the kernel also shows a joined thread, with a flag
// that says that it exits.
int count_threads(const std::string& name) {
    int count = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
        constexpr unsigned kExits = 4;
        std::string all;
        std::getline(std::ifstream(each.path() / "stat"), all);
        const std::size_t end = all.rfind(')');
        std::istringstream behind(end == std::string::npos ? std::string() : all.substr(end + 1));
        std::string state;
        std::array<long, 5> skipped{};
        unsigned flags = 0;
        behind >> state >> skipped[0] >> skipped[1] >> skipped[2] >> skipped[3] >> skipped[4] >> flags;
        count += all.find("(" + name + ")") != std::string::npos && (flags & kExits) == 0 ? 1 : 0;
    }
    return count;
}

TEST(Statistics, AnAdapterEndsWithItsLastDeviceWhoeverAsksMeanwhile) {
    configure_devices();
    ASSERT_EQ(ibv_close_device(open_device("left")), 0);
    const std::string name = find_socket();
    ASSERT_NE(name, "");
    std::atomic<bool> ends{false};
    std::atomic<int> shown{0};
    {
        std::vector<std::jthread> askers;
        for (int i = 0; i < 2; ++i) {
            askers.emplace_back([&] {
                while (!ends.load()) {
                    shown += ask(name).find("left 127.") != std::string::npos ? 1 : 0;
                }
            });
        }
        for (int i = 0; i < 200 || shown.load() == 0; ++i) {
            ibv_context* const context = open_device("left");
            ASSERT_NE(context, nullptr);
            ASSERT_EQ(ibv_close_device(context), 0);
            ASSERT_EQ(count_threads("cairn-helper"), 0) << "closed " << i << " times";
        }
        ends.store(true);
    }
}

// The kernel names the asking process by the number of the program's own user.
TEST(Statistics, ItTellsNothingToWhomItCannotTellFromOthers) {
    configure_devices();
    for (const std::uint32_t uid : {65534U, geteuid()}) {
        const Sockets between;
        const pid_t program = fork();
        if (program == 0) {
            const bool there = become_in_user_namespace(uid);
            const bool opened = there && open_device("spare") != nullptr;
            const int outcome = !there ? kNoUserNamespace : opened ? 0 : 1;
            static_cast<void>(write(between.ends[1], &outcome, sizeof(outcome)));
            pause();
            _exit(0);
        }
        int outcome = -1;
        EXPECT_EQ(read(between.ends[0], &outcome, sizeof(outcome)), static_cast<ssize_t>(sizeof(outcome)));
        const std::string name = outcome == 0 ? find_socket(program) : "";
        const std::string answer = name.empty() ? "" : ask(name);
        kill(program, SIGKILL);
        waitpid(program, nullptr, 0);
        if (outcome == kNoUserNamespace) {
            GTEST_SKIP() << "needs a user namespace";
        }
        ASSERT_EQ(outcome, 0);
        ASSERT_NE(name, "");
        EXPECT_EQ(answer.find("spare 127.") != std::string::npos, uid != 65534U) << uid;
    }
}

}  // namespace
}  // namespace cairn::test
