// The folder that the shim leads programs to, and the process that removes it.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "apps/run/view.hpp"

namespace cairn::launch {

namespace {

constexpr std::string_view kPrefix = "cairn-run.";
constexpr std::size_t kDrawnChars = 6;  // after it, drawn by mkdtemp()
constexpr int kLookEvery_ms = 1000;
constexpr int kMostTries = 10;

bool is_usable(const char* folder) noexcept {
    struct stat facts {};
    return folder != nullptr && *folder == '/' && stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode) &&
           access(folder, W_OK | X_OK) == 0;
}

std::string runtime_folder() {
    const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
    return is_usable(runtime) ? runtime : "/tmp";
}

// Locks the folder. The process that keeps a folder has it locked, so a folder that can be locked has no such process.
int lock_folder(const std::string& path) noexcept {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat facts {};
    if (fd >= 0 && (fstat(fd, &facts) != 0 || facts.st_uid != geteuid() || flock(fd, LOCK_EX | LOCK_NB) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

void remove_folder(const std::string& path) noexcept {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

// Returns whether the folder may be ours. Users may give their folders such names, and have other files in there than
// fill() makes.
bool may_be_ours(const std::filesystem::path& folder) {
    const std::string name = folder.filename().string();
    if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kDrawnChars) {
        return false;
    }
    std::error_code refused;
    bool has_view = false;
    for (std::filesystem::directory_iterator each(folder, refused), end; !refused && each != end;
         each.increment(refused)) {
        const std::string inside = each->path().filename().string();
        if (inside != "sys" && inside != "dev") {
            return false;
        }
        has_view = has_view || std::filesystem::is_directory(each->path() / "class/infiniband", refused);
    }
    return has_view && !refused;
}

void remove_stale_folders(const std::string& in) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(in, ignored)) {
        if (!may_be_ours(entry.path())) {
            continue;
        }
        if (const int fd = lock_folder(entry.path().string()); fd >= 0) {
            remove_folder(entry.path().string());
            close(fd);
        }
    }
}

// Waits until the process has ended, and removes the folder. It keeps nothing else of the starting process: no
// descriptor, no terminal, no working folder.
[[noreturn]] void keep_until_end(pid_t process, int process_fd, int folder_fd, const std::string& folder) {
    setsid();
    prctl(PR_SET_NAME, "cairn-run-keep");
    for (int signal = 1; signal < SIGRTMIN; ++signal) {
        std::signal(signal, SIG_IGN);
    }
    const int lock = fcntl(folder_fd, F_DUPFD, 3);
    const int watched = fcntl(process_fd, F_DUPFD, 3);
    dup2(lock, STDIN_FILENO);
    dup2(watched, STDOUT_FILENO);
    syscall(SYS_close_range, watched < 0 ? 1 : 2, ~0U, 0);
    static_cast<void>(chdir("/"));
    pollfd end{watched < 0 ? -1 : STDOUT_FILENO, POLLIN, 0};
    while (poll(&end, 1, watched < 0 ? kLookEvery_ms : -1) <= 0) {
        if (watched < 0 && kill(process, 0) != 0 && errno == ESRCH) {
            break;  // on a kernel that has no descriptors of processes
        }
    }
    remove_folder(folder);
    _exit(0);
}

// Starts the process that keeps the folder, so that the program does not find it among its children. Returns an errno
// value.
int start_keeper(int folder_fd, const std::string& folder) noexcept {
    const pid_t process = getpid();
    const int process_fd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    const pid_t between = fork();
    if (between == 0) {
        const pid_t keeper = fork();
        if (keeper == 0) {
            keep_until_end(process, process_fd, folder_fd, folder);
        }
        _exit(keeper < 0 ? errno : 0);
    }
    const int reason = errno;
    int status = 0;
    while (between > 0 && waitpid(between, &status, 0) < 0 && errno == EINTR) {
    }
    if (process_fd >= 0) {
        close(process_fd);
    }
    return between < 0 ? reason : WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

bool fill(const std::string& folder, const ViewPlan& plan) {
    for (const ViewFile& file : plan.files) {
        if (!write_view_file(fmt::format("{}/sys/class/{}", folder, file.path), file.text)) {
            return false;
        }
    }
    std::error_code refused;
    std::filesystem::create_directories(folder + "/dev/infiniband", refused);
    for (const std::string& node : plan.nodes) {
        if (symlink("/dev/null", fmt::format("{}/dev/infiniband/{}", folder, node).c_str()) != 0) {
            return false;
        }
    }
    return !refused;
}

}  // namespace

Result<std::string> make_shim_folder(const ViewPlan& plan) {
    const std::string in = runtime_folder();
    remove_stale_folders(in);
    std::string folder;
    int fd = -1;
    for (int tries = 0; fd < 0 && tries < kMostTries;
         ++tries) {  // another process may take it for stale before it is locked
        folder = fmt::format("{}/{}XXXXXX", in, kPrefix);
        if (mkdtemp(folder.data()) == nullptr) {
            break;
        }
        fd = lock_folder(folder);
    }
    if (fd < 0) {
        return Error{fmt::format("cannot make a folder in {}: {}", in, std::strerror(errno)),
                     "set XDG_RUNTIME_DIR to a folder of yours"};
    }
    if (!fill(folder, plan)) {
        Error error{fmt::format("cannot write to {}: {}", folder, std::strerror(errno)),
                    "set XDG_RUNTIME_DIR to a folder with room"};
        remove_folder(folder);
        return error;
    }
    if (const int reason = start_keeper(fd, folder); reason != 0) {
        remove_folder(folder);
        return no_process(reason);
    }
    close(fd);
    return folder;
}

}  // namespace cairn::launch
