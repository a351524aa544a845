// The ruler: the same operations by system calls.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>

#include "apps/fs/bench.hpp"

namespace cairn::fstool {

namespace {

[[nodiscard]] int error_of(long result) noexcept {
    return result < 0 ? errno : 0;
}

class KernelFiles final : public BenchFiles {
public:
    explicit KernelFiles(std::string path) : path_(std::move(path)), data_path_(path_ + "/data") {}

    int make_directory() override { return error_of(::mkdir(path_.c_str(), 0777)); }
    int remove_directory() override { return error_of(::rmdir(path_.c_str())); }
    int open_data(bool creates) override {
        data_ = ::open(data_path_.c_str(), creates ? O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC : O_RDWR | O_CLOEXEC, 0666);
        return error_of(data_);
    }
    int write_data(std::span<const std::uint8_t> from, std::uint64_t offset) override {
        return done(::pwrite(data_, from.data(), from.size(), static_cast<off_t>(offset)), from.size());
    }
    int read_data(std::span<std::uint8_t> to, std::uint64_t offset) override {
        return done(::pread(data_, to.data(), to.size(), static_cast<off_t>(offset)), to.size());
    }
    std::span<std::uint8_t> buffer(std::size_t bytes) override { return buffers_.emplace_back(bytes); }
    int close_data() override { return error_of(::close(data_)); }
    int remove_data() override { return error_of(::unlink(data_path_.c_str())); }

    int each(Each what, std::uint32_t files, std::uint32_t /*in_flight*/, std::uint32_t bytes) override {
        bytes_.resize(bytes);
        int error = 0;
        for (std::uint32_t i = 0; i != files && error == 0; ++i) {
            const std::string path = fmt::format("{}/{}", path_, bench_name(i));
            error = one(what, path.c_str());
        }
        return error;
    }

private:
    static int done(ssize_t bytes, std::size_t wanted) noexcept {
        return bytes < 0 ? errno : static_cast<std::size_t>(bytes) == wanted ? 0 : EIO;
    }
    int one(Each what, const char* path) {
        struct stat facts {};
        switch (what) {
            case Each::Create:
            case Each::Write:
                return use(::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), what);
            case Each::Open:
            case Each::Read:
                return use(::open(path, O_RDONLY | O_CLOEXEC), what);
            case Each::Stat:
                return error_of(::stat(path, &facts));
            case Each::Remove:
                break;
        }
        return error_of(::unlink(path));
    }
    int use(int fd, Each what) {
        if (fd < 0) {
            return errno;
        }
        int error = 0;
        if (what == Each::Write) {
            error = done(::pwrite(fd, bytes_.data(), bytes_.size(), 0), bytes_.size());
        } else if (what == Each::Read) {
            error = done(::pread(fd, bytes_.data(), bytes_.size(), 0), bytes_.size());
        }
        const int closed = error_of(::close(fd));
        return error != 0 ? error : closed;
    }

    std::string path_;
    std::string data_path_;
    int data_ = -1;
    std::vector<std::uint8_t> bytes_;
    std::deque<std::vector<std::uint8_t>> buffers_;
};

}  // namespace

std::unique_ptr<BenchFiles> bench_files_of_directory(const std::string& path) {
    return std::make_unique<KernelFiles>(path);
}

}  // namespace cairn::fstool
