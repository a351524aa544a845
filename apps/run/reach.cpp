// Finds a program, and reads from the kernel, its file and the loader how it is loaded.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "apps/run/program.hpp"

namespace cairn::launch {

namespace {

constexpr int kMostInterpreters = 5;  // in a row; the kernel follows no more
constexpr const char* kUsualPath = "/usr/local/bin:/usr/bin:/bin";

// A file's bytes, as far as they can be read.
class MappedFile {
public:
    explicit MappedFile(const std::string& path) noexcept {
        const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat facts {};
        if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_size > 0) {
            void* const at = mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
            if (at != MAP_FAILED) {
                bytes_ = {static_cast<const std::uint8_t*>(at), static_cast<std::size_t>(facts.st_size)};
            }
        }
        can_read_ = fd >= 0;
        if (fd >= 0) {
            close(fd);
        }
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() {
        if (!bytes_.empty()) {
            munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
        }
    }

    [[nodiscard]] bool can_read() const noexcept { return can_read_; }
    [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return bytes_; }
    [[nodiscard]] std::string_view text() const noexcept {
        return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
    }

private:
    std::span<const std::uint8_t> bytes_{};
    bool can_read_ = false;
};

bool is_program(const std::string& path) noexcept {
    struct stat facts {};
    return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode) && access(path.c_str(), X_OK) == 0;
}

Result<std::string> find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        if (is_program(name)) {
            return name;
        }
        struct stat facts {};
        if (stat(name.c_str(), &facts) != 0) {
            return Error{fmt::format("cannot run {}: {}", name, std::strerror(errno)), "give a program's path"};
        }
        return Error{fmt::format("cannot run {}: it is not an executable file", name), "give a program's path"};
    }
    const char* const listed = std::getenv("PATH");
    std::string_view path = listed == nullptr ? kUsualPath : listed;
    for (bool more = true; more;) {
        const std::size_t end = std::min(path.find(':'), path.size());
        const std::string folder(path.substr(0, end));
        const std::string candidate = folder.empty() ? "./" + name : fmt::format("{}/{}", folder, name);
        if (!name.empty() && is_program(candidate)) {
            return candidate;
        }
        more = end < path.size();
        path.remove_prefix(more ? end + 1 : path.size());
    }
    return Error{fmt::format("there is no program '{}' in PATH", name), "install it, or give its path"};
}

bool gains_rights(const std::string& path) noexcept {
    struct stat facts {};
    if (stat(path.c_str(), &facts) != 0) {
        return false;
    }
    const bool other_user = (facts.st_mode & S_ISUID) != 0 && facts.st_uid != getuid();
    const bool other_group =
        (facts.st_mode & S_ISGID) != 0 && (facts.st_mode & S_IXGRP) != 0 && facts.st_gid != getgid();
    const bool capabilities = getuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
    return other_user || other_group || capabilities;
}

// Returns the output of the command; nothing if it cannot be run.
std::string output_of(const char* const* command, char* const* environment) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) {
        return {};
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    const int refused =
        posix_spawn(&child, command[0], &actions, nullptr, const_cast<char* const*>(command), environment);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string text;
    std::array<char, 4096> part{};
    ssize_t got = 0;
    while ((got = read(ends[0], part.data(), part.size())) > 0 || (got < 0 && errno == EINTR)) {
        text.append(part.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    }
    close(ends[0]);
    while (refused == 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return text;
}

// Asks the loader for the libraries that it would load with ours in front. It runs nothing of the program.
std::vector<Loaded> ask_loader(const std::string& loader, const std::string& path, const Libraries& libraries) {
    const char* const before = std::getenv("LD_LIBRARY_PATH");
    const std::string searched = libraries.search_path(before == nullptr ? "" : before);
    const std::array<const char*, 6> command{loader.c_str(), "--library-path", searched.c_str(),
                                             "--list",       path.c_str(),     nullptr};
    return parse_loader_listing(output_of(command.data(), environ));
}

}  // namespace

Result<std::string> reach_program(const std::string& name, const Libraries& libraries) {
    Result<std::string> found = find_program(name);
    if (!found.ok()) {
        return found;
    }
    ProgramFacts program;
    program.path = found.value();
    for (int i = 0; i < kMostInterpreters; ++i) {
        const MappedFile file(program.path);
        if (!file.can_read()) {
            return found;  // the program may be run all the same, but its libraries are not known
        }
        const std::string interpreter(interpreter_of_script(file.text()));
        if (interpreter.empty()) {
            program.file = parse_elf(file.bytes());
            program.gains_rights = gains_rights(program.path);
            const ElfFacts* const facts = std::get_if<ElfFacts>(&program.file);
            if (facts != nullptr && !facts->interpreter.empty()) {
                program.loaded = ask_loader(std::string(facts->interpreter), program.path, libraries);
            }
            const Status reached = judge_program(program, libraries);
            return reached.ok() ? found : Result<std::string>(reached.error());
        }
        if (!is_program(interpreter)) {
            return Error{fmt::format("{} is a script of {}, which is not there", program.path, interpreter),
                         "install its interpreter, or correct its first line"};
        }
        program.path = interpreter;
    }
    return Error{fmt::format("{} is a script of a script of a script, and so on", found.value()),
                 "give a program's path"};
}

}  // namespace cairn::launch
