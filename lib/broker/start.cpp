#include "lib/broker/start.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "lib/base/blocked_signals.hpp"

namespace cairn::broker {

namespace {

// The new process has a copy of the handlers and the descriptors, and all of the memory.
constexpr int kShared = CLONE_VM | CLONE_VFORK;
constexpr std::size_t kStackBytes = 64U << 10U;

// The data of the two processes on the way to the program. They share this process's memory, and must not use more of
// it.
struct Way {
    const char* program;
    char* const* arguments;
    char* const* environment;
    int listener;
    std::uint8_t* stack_end;  // of the second one
    volatile int failed;      // errno
};

void leave_descriptors(int listener) noexcept {
    if (listener != kListenerFd) {
        dup2(listener, kListenerFd);  // without O_CLOEXEC
    } else {
        fcntl(listener, F_SETFD, 0);
    }
    if (syscall(SYS_close_range, kListenerFd + 1, ~0U, 0U) != 0) {
        const long most = sysconf(_SC_OPEN_MAX);
        for (int fd = kListenerFd + 1; fd < most; ++fd) {
            close(fd);
        }
    }
    const int nothing = open("/dev/null", O_RDWR);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (nothing < 0 || dup2(nothing, fd) < 0) {
            close(fd);
        }
    }
    if (nothing > kListenerFd) {
        close(nothing);
    }
}

int become_program(void* argument) {
    auto& way = *static_cast<Way*>(argument);
    setsid();
    struct sigaction as_usual {};
    as_usual.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) {
        sigaction(signal, &as_usual, nullptr);
    }
    leave_descriptors(way.listener);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(way.program, way.arguments, way.environment);
    way.failed = errno;
    _exit(127);
}

// Starts the program and ends. The program has no parent among this process's descendants then.
int leave_child(void* argument) {
    auto& way = *static_cast<Way*>(argument);
    if (clone(become_program, way.stack_end, kShared, argument) < 0) {
        way.failed = errno;
    }
    _exit(0);
}

// Keeps the program's handlers from running in the processes that share its memory.
class Undisturbed {
public:
    Undisturbed() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_); }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;
    ~Undisturbed() { pthread_setcancelstate(cancel_state_, nullptr); }

private:
    int cancel_state_ = 0;
    BlockedSignals signals_;
};

// Runs the processes. The child sends no signal when it ends, so no wait() of the program sees it.
int run_way(Way& way) {
    void* const stacks =
        mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
        return errno;
    }
    auto* const first = static_cast<std::uint8_t*>(stacks);
    way.stack_end = first + 2 * kStackBytes;
    {
        const Undisturbed now;
        const int child = clone(leave_child, first + kStackBytes, kShared, &way);
        way.failed = child < 0 ? errno : way.failed;
        int status = 0;
        while (child > 0 && waitpid(child, &status, static_cast<int>(__WCLONE)) < 0 && errno == EINTR) {
        }
    }
    munmap(stacks, 2 * kStackBytes);
    return way.failed;
}

}  // namespace

std::string find_program() {
    const char* const wanted = secure_getenv("CAIRN_BROKER");
    if (wanted != nullptr) {
        return std::strcmp(wanted, "off") == 0 ? std::string() : std::string(wanted);
    }
    Dl_info here{};
    if (dladdr(reinterpret_cast<const void*>(&run_way), &here) == 0 || here.dli_fname == nullptr) {
        return {};
    }
    const std::string library = here.dli_fname;
    const std::size_t slash = library.rfind('/');
    return (slash == std::string::npos ? std::string(".") : library.substr(0, slash)) + "/cairn-broker";
}

Status start_program(const std::string& program, const Place& place, const OwnedFd& listener) {
    std::string address = place.local.text();
    std::string udp_port = fmt::format("--udp-port={}", place.udp_port);
    std::string listens = fmt::format("--listener={}", kListenerFd);
    std::string name = program;
    std::array<char*, 5> arguments{name.data(), address.data(), udp_port.data(), listens.data(), nullptr};
    const char* const libraries = secure_getenv("LD_LIBRARY_PATH");
    std::string path = fmt::format("LD_LIBRARY_PATH={}", libraries == nullptr ? "" : libraries);
    std::array<char*, 2> environment{libraries == nullptr ? nullptr : path.data(), nullptr};
    Way way{name.c_str(), arguments.data(), environment.data(), listener.get(), nullptr, 0};
    if (const int failed = run_way(way); failed != 0) {
        return Error{fmt::format("cannot start '{}': {}", program, std::strerror(failed)),
                     "put it beside the library, or name it by CAIRN_BROKER"};
    }
    return Nothing{};
}

}  // namespace cairn::broker
