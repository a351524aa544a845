// Private namespaces: a /sys/class and a /dev with our devices in addition to all that is there.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>
#include <string_view>

#include "apps/run/user_namespace.hpp"
#include "apps/run/view.hpp"
#include "lib/base/owned_fd.hpp"

namespace cairn::launch {

namespace {

constexpr const char* kRemedy = "--view shim needs no namespaces";

Error refused(const std::string& what) {
    return Error{fmt::format("private namespaces are refused: {}: {}", what, std::strerror(errno)), kRemedy};
}

bool write_text(const char* path, const std::string& text) noexcept {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    const bool written = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (fd >= 0) {
        const int before = errno;
        close(fd);
        errno = before;
    }
    return written;
}

// Makes a mount namespace. A user that may not have one may have one in a user namespace of its own, and keeps its
// number there.
Status unshare_mounts(bool asked_for) {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(CLONE_NEWNS) == 0) {
        return Nothing{};
    }
    if (errno != EPERM) {
        return refused("unshare");
    }
    if (const char* const reason = judge_user_namespace(standing_of_process(), asked_for)) {
        return Error{fmt::format("private namespaces are refused: a user namespace would not do: {}", reason), kRemedy};
    }
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        return refused("unshare");
    }
    // The kernel lets an ordinary user map its group only after this. The file is missing if it is not needed.
    if (!write_text("/proc/self/setgroups", "deny") && errno != ENOENT) {
        return refused("/proc/self/setgroups");
    }
    if (!write_text("/proc/self/uid_map", fmt::format("{0} {0} 1", user)) ||
        !write_text("/proc/self/gid_map", fmt::format("{0} {0} 1", group))) {
        return refused("/proc/self/uid_map");
    }
    return Nothing{};
}

// A folder that another one is mounted on.
struct Covered {
    OwnedFd folder;
    OwnedFd copy;  // a copy of the folder, with all that is mounted in it, which is mounted nowhere yet; not open if
                   // the kernel cannot make it
};

// Keeps a node together with its folder. The kernel looks for pseudo-terminals next to the node that is opened, which
// has to stand in its own folder.
bool keep_with_folder(const Covered& covered, const char* name, const std::string& path) noexcept {
    const std::string hidden = fmt::format(".beside-{}", name);
    const std::string folder = path.substr(0, path.rfind('/') + 1) + hidden;
    return mkdir(folder.c_str(), 0755) == 0 &&
           move_mount(covered.copy.get(), "", AT_FDCWD, folder.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0 &&
           symlink(fmt::format("{}/{}", hidden, name).c_str(), path.c_str()) == 0;
}

// Makes the entry `name` of the covered folder appear at `path`.
bool keep(const Covered& covered, const char* name, const std::string& path) noexcept {
    struct stat facts {};
    if (fstatat(covered.folder.get(), name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT;  // it was removed meanwhile
    }
    if (S_ISLNK(facts.st_mode)) {
        std::array<char, PATH_MAX> target{};
        return readlinkat(covered.folder.get(), name, target.data(), target.size() - 1) > 0 &&
               symlink(target.data(), path.c_str()) == 0;
    }
    if (S_ISCHR(facts.st_mode) && std::string_view(name) == "ptmx" && covered.copy.is_open()) {
        return keep_with_folder(covered, name, path);
    }
    const bool made = S_ISDIR(facts.st_mode) ? mkdir(path.c_str(), 0755) == 0 : mknod(path.c_str(), S_IFREG, 0) == 0;
    const std::string source = fmt::format("/proc/self/fd/{}/{}", covered.folder.get(), name);
    return made && (mount(source.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) == 0 || errno == ENOENT);
}

// Covers a folder with an empty one. All entries but `names` appear in that one again.
Status cover(const char* folder, const std::vector<std::string_view>& names) {
    const Covered covered{OwnedFd(open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC)),
                          OwnedFd(open_tree(AT_FDCWD, folder, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE))};
    if (!covered.folder.is_open()) {
        return refused(folder);
    }
    const int listed = openat(covered.folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(listed < 0 ? nullptr : fdopendir(listed), closedir);
    if (entries == nullptr || mount("cairn", folder, "tmpfs", MS_NOSUID, "mode=755") != 0) {
        return refused(fmt::format("a mount on {}", folder));
    }
    while (const dirent* const entry = readdir(entries.get())) {
        const std::string_view name = entry->d_name;
        const bool is_ours = std::find(names.begin(), names.end(), name) != names.end();
        if (name != "." && name != ".." && !is_ours &&
            !keep(covered, entry->d_name, fmt::format("{}/{}", folder, name))) {
            return refused(fmt::format("a mount on {}/{}", folder, name));
        }
    }
    return Nothing{};
}

Status fill(const ViewPlan& plan) {
    for (const ViewFile& file : plan.files) {
        const std::string path = fmt::format("/sys/class/{}", file.path);
        if (!write_view_file(path, file.text)) {
            return refused(path);
        }
    }
    for (const std::string& node : plan.nodes) {
        const std::string path = fmt::format("/dev/infiniband/{}", node);
        if (!write_view_file(path, "") || mount("/dev/null", path.c_str(), nullptr, MS_BIND, nullptr) != 0) {
            return refused(path);
        }
    }
    return Nothing{};
}

}  // namespace

Status enter_namespaces(const ViewPlan& plan, bool asked_for) {
    if (Status unshared = unshare_mounts(asked_for); !unshared.ok()) {
        return unshared;
    }
    // Later mounts outside still appear in here. Mounts in here do not appear outside.
    if (mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
        return refused("a mount on /");
    }
    const mode_t mask = umask(022);
    Status done = cover("/sys/class", {kDeviceClass, kVerbsClass});
    if (done.ok()) {
        done = cover("/dev", {"infiniband"});
    }
    if (done.ok()) {
        done = fill(plan);
    }
    umask(mask);
    return done;
}

// Tries it in a child, which reports the result through a pipe. Some programs that start this one ignore the ends of
// their children: waitpid() returns no status then.
Status probe_namespaces(const ViewPlan& plan, bool asked_for) {
    constexpr std::string_view kEntered = "entered";
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return refused("pipe");
    }
    const pid_t child = fork();
    if (child < 0) {
        const int reason = errno;
        close(ends[0]);
        close(ends[1]);
        return no_process(reason);
    }
    if (child == 0) {
        const Status entered = enter_namespaces(plan, asked_for);
        const std::string text = entered.ok() ? std::string(kEntered) : entered.error().what;
        _exit(write(ends[1], text.data(), text.size()) < 0 ? 1 : 0);
    }
    close(ends[1]);
    std::array<char, 1024> text{};
    ssize_t got = 0;
    while ((got = read(ends[0], text.data(), text.size() - 1)) < 0 && errno == EINTR) {
    }
    close(ends[0]);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    if (text.data() == kEntered) {
        return Nothing{};
    }
    return Error{got > 0 ? text.data() : "private namespaces are refused", kRemedy};
}

}  // namespace cairn::launch
