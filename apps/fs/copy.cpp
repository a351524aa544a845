// Commands that move data: cat, cp.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "apps/fs/session.hpp"

namespace cairn::fstool {

namespace {

constexpr std::size_t kBlockBytes = 4U << 20U;

// A file to read or to write, here or in the file system. Functions return an errno.
class End {
public:
    explicit End(Session& session) noexcept : session_(session) {}
    End(const End&) = delete;
    End& operator=(const End&) = delete;
    ~End() { (void)close(); }

    int open(const std::string& path, int flags, std::uint32_t mode) {
        if (path == "-") {
            fd_ = (flags & O_ACCMODE) == O_RDONLY ? STDIN_FILENO : STDOUT_FILENO;
            return 0;
        }
        if (!path.starts_with(kPrefix)) {
            fd_ = ::open(path.c_str(), flags | O_CLOEXEC, mode);
            owns_fd_ = fd_ >= 0;
            return owns_fd_ ? 0 : errno;
        }
        const fs::Outcome<fs::File*> opened = session_.fs.open(inner_path(path), flags, mode).wait();
        file_ = opened.value;
        return opened.error;
    }
    // Returns how many bytes it read; 0 at the end.
    fs::Outcome<std::uint64_t> read(std::span<std::uint8_t> to) {
        fs::Outcome<std::uint64_t> got;
        if (file_ != nullptr) {
            got = session_.fs.pread(*file_, to, at_).wait();
        } else {
            const ssize_t bytes = ::read(fd_, to.data(), to.size());
            got = bytes < 0 ? fs::Outcome<std::uint64_t>(fs::Failure{errno}) : static_cast<std::uint64_t>(bytes);
        }
        at_ += static_cast<std::int64_t>(got.value);
        return got;
    }
    int write(std::span<const std::uint8_t> from) {
        while (!from.empty()) {
            fs::Outcome<std::uint64_t> put;
            if (file_ != nullptr) {
                put = session_.fs.pwrite(*file_, from, at_).wait();
            } else {
                const ssize_t bytes = ::write(fd_, from.data(), from.size());
                put = bytes < 0 ? fs::Outcome<std::uint64_t>(fs::Failure{errno}) : static_cast<std::uint64_t>(bytes);
            }
            if (!put.ok() || put.value == 0) {
                return put.ok() ? EIO : put.error;
            }
            at_ += static_cast<std::int64_t>(put.value);
            from = from.subspan(put.value);
        }
        return 0;
    }
    // Returns the permissions of the file.
    fs::Outcome<std::uint32_t> mode() {
        if (file_ != nullptr) {
            const fs::Outcome<fs::Attributes> found = session_.fs.stat(*file_).wait();
            return found.ok() ? fs::Outcome<std::uint32_t>(found.value.mode) : fs::Failure{found.error};
        }
        struct stat facts {};
        return ::fstat(fd_, &facts) == 0 ? fs::Outcome<std::uint32_t>(facts.st_mode) : fs::Failure{errno};
    }
    int close() {
        int error = 0;
        if (file_ != nullptr) {
            error = session_.fs.close(*std::exchange(file_, nullptr)).wait().error;
        } else if (std::exchange(owns_fd_, false)) {
            error = ::close(fd_) == 0 ? 0 : errno;
        }
        return error;
    }

private:
    Session& session_;
    fs::File* file_ = nullptr;
    int fd_ = -1;
    bool owns_fd_ = false;
    std::int64_t at_ = 0;
};

// Copies the bytes. Both files are open. Prints an error, and returns false.
bool pump(Session& session, End& from, const std::string& source, End& to, const std::string& target) {
    const auto room = std::make_unique<std::uint8_t[]>(kBlockBytes);
    for (;;) {
        const fs::Outcome<std::uint64_t> got = from.read({room.get(), kBlockBytes});
        if (!session.check("read", source, got.error)) {
            return false;
        }
        if (got.value == 0) {
            return true;
        }
        if (!session.check("write", target, to.write({room.get(), got.value}))) {
            return false;
        }
    }
}

bool is_directory(Session& session, const std::string& path) {
    std::error_code none;
    return path.starts_with(kPrefix) ? session.is_directory(inner_path(path))
                                     : path != "-" && std::filesystem::is_directory(path, none);
}

void copy_file(Session& session, const std::string& source, const std::string& target) {
    End from(session);
    End to(session);
    if (!session.check("open", source, from.open(source, O_RDONLY, 0))) {
        return;
    }
    const fs::Outcome<std::uint32_t> mode = from.mode();
    const std::uint32_t permissions = mode.ok() && S_ISREG(mode.value) ? mode.value & 0777U : 0666U;
    if (session.check("create", target, to.open(target, O_WRONLY | O_CREAT | O_TRUNC, permissions)) &&
        pump(session, from, source, to, target)) {
        (void)session.check("close", target, to.close());
    }
}

int make_directory(Session& session, const std::string& path) {
    if (path.starts_with(kPrefix)) {
        const int error = session.fs.mkdir(inner_path(path)).wait().error;
        return error == EEXIST && session.is_directory(inner_path(path)) ? 0 : error;
    }
    std::error_code error;
    std::filesystem::create_directory(path, error);
    return error.value();
}

// Writes the names of a directory, here or in the file system, to `names`. Returns an errno.
int names_of(Session& session, const std::string& path, std::vector<std::string>& names) {
    if (path.starts_with(kPrefix)) {
        return for_each_name(session.fs, inner_path(path),
                             [&](const fs::DirectoryEntry& entry) { names.emplace_back(entry.name); });
    }
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
        names.push_back(entry.path().filename().string());
    }
    return error.value();
}

void copy_any(Session& session, const std::string& source, const std::string& target) {
    if (!is_directory(session, source)) {
        copy_file(session, source, target);
        return;
    }
    std::vector<std::string> names;
    if (!session.options.recursive) {
        session.complain("copy without -r", source, EISDIR);
    } else if (session.check("read directory", source, names_of(session, source, names)) &&
               session.check("create directory", target, make_directory(session, target))) {
        for (const std::string& name : names) {
            copy_any(session, joined(source, name), joined(target, name));
        }
    }
}

}  // namespace

void write_out(Session& session) {
    for (const std::string& path : session.options.paths) {
        const std::string source = path == "-" || path.starts_with(kPrefix) ? path : std::string(kPrefix) + path;
        End from(session);
        End to(session);
        if (session.check("open", path, from.open(source, O_RDONLY, 0)) && to.open("-", O_WRONLY, 0) == 0) {
            (void)pump(session, from, path, to, "-");
        }
    }
}

void copy(Session& session) {
    std::vector<std::string> sources = session.options.paths;
    const std::string target = sources.back();
    sources.pop_back();
    const bool is_into = is_directory(session, target);
    if (sources.size() > 1 && !is_into) {
        session.complain("use as target", target, ENOTDIR);
        return;
    }
    for (const std::string& source : sources) {
        copy_any(session, source, session.target_of(inner_path(source), target, is_into));
    }
}

}  // namespace cairn::fstool
