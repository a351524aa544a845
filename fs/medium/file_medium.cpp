// An ordinary file through the page cache, durable by msync.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "fs/medium/backends.hpp"
#include "fs/medium/backing_file.hpp"
#include "fs/medium/length.hpp"

namespace cairn::fs {

namespace {

class FileMedium final : public Medium {
public:
    FileMedium(std::span<std::uint8_t> memory, BackingFile file) noexcept
        : Medium(memory, Granularity::Page), file_(std::move(file)) {}
    FileMedium(const FileMedium&) = delete;
    FileMedium& operator=(const FileMedium&) = delete;
    ~FileMedium() override { ::munmap(memory().data(), memory().size()); }
    void keep() noexcept { file_.keep(); }

    void flush(const void* /*at*/, std::size_t /*bytes*/) noexcept override {}
    void fence() noexcept override { __sync_synchronize(); }  // TSan knows no std::atomic_thread_fence
    void copy_nt(void* to, const void* from, std::size_t bytes) noexcept override { std::memcpy(to, from, bytes); }
    Status sync() noexcept override {
        if (::msync(memory().data(), memory().size(), MS_SYNC) == 0) {
            return Nothing{};
        }
        return Error{fmt::format("cannot write '{}' to its disk: {}", file_.path(), std::strerror(errno)),
                     "repair the disk, then start again: what was stored since the last sync may be lost"};
    }
    [[nodiscard]] std::string describe() const override {
        return fmt::format("{} in the file '{}': survives a loss of power as far as it was synced (msync)",
                           length_text(memory().size()), file_.path());
    }

private:
    BackingFile file_;
};

}  // namespace

// Touches pages for reading. If they were touched for writing, the kernel would write all of them back at once.
Result<std::unique_ptr<Medium>> open_file(const std::string& path, std::size_t bytes) {
    Result<BackingFile> file = BackingFile::open(path, bytes, Devices::Refused);
    if (!file.ok()) {
        return file.error();
    }
    void* const mapped =
        ::mmap(nullptr, file.value().bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file.value().fd(), 0);
    if (mapped == MAP_FAILED) {
        return Error{fmt::format("cannot map '{}': {}", path, std::strerror(errno)),
                     "ask for less, or raise the memory limit (ulimit -v)"};
    }
    const std::span memory(static_cast<std::uint8_t*>(mapped), file.value().bytes());
    auto medium = std::make_unique<FileMedium>(memory, std::move(file).value());
    if (Status populated = populate(memory, Touch::Read, path); !populated.ok()) {
        return populated.error();
    }
    medium->keep();
    return std::unique_ptr<Medium>(std::move(medium));
}

}  // namespace cairn::fs
