// Persistent memory by libpmem: DAX devices, files under DAX, and files that are used as if they were.
#include <fmt/format.h>
#include <libpmem.h>

#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "fs/medium/backends.hpp"
#include "fs/medium/backing_file.hpp"
#include "fs/medium/length.hpp"
#include "fs/medium/pmem_verdict.hpp"

namespace cairn::fs {

namespace {

// Owns a mapping of libpmem.
class PmemMapping {
public:
    PmemMapping(void* data, std::size_t bytes) noexcept : memory_(static_cast<std::uint8_t*>(data), bytes) {}
    PmemMapping(PmemMapping&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
    PmemMapping& operator=(PmemMapping&& other) = delete;
    PmemMapping(const PmemMapping&) = delete;
    PmemMapping& operator=(const PmemMapping&) = delete;
    ~PmemMapping() {
        if (!memory_.empty()) {
            ::pmem_unmap(memory_.data(), memory_.size());
        }
    }
    [[nodiscard]] std::span<std::uint8_t> memory() const noexcept { return memory_; }

private:
    std::span<std::uint8_t> memory_;
};

// libpmem flushes any memory with instructions that suit the CPU. The verdict says whether they make it durable.
class PmemMedium final : public Medium {
public:
    PmemMedium(PmemMapping mapping, PmemVerdict verdict, BackingFile file) noexcept
        : Medium(mapping.memory(), verdict == PmemVerdict::Byte ? Granularity::Byte : Granularity::CacheLine),
          file_(std::move(file)),
          mapping_(std::move(mapping)),
          verdict_(verdict) {}

    void flush(const void* at, std::size_t bytes) noexcept override { ::pmem_flush(at, bytes); }
    void fence() noexcept override { ::pmem_drain(); }
    // From 256 bytes on, libpmem stores past the caches. For fewer bytes, it stores and flushes.
    void copy_nt(void* to, const void* from, std::size_t bytes) noexcept override {
        ::pmem_memcpy(to, from, bytes, PMEM_F_MEM_NODRAIN);
    }
    Status sync() noexcept override { return Nothing{}; }
    [[nodiscard]] std::string describe() const override;

private:
    BackingFile file_;
    PmemMapping mapping_;  // ends before the lock does
    PmemVerdict verdict_;
};

std::string PmemMedium::describe() const {
    const std::string length = length_text(memory().size());
    if (verdict_ == PmemVerdict::Fake) {
        return fmt::format(
            "FAKE persistent memory, {} in the ordinary file '{}': survives the death of this process, "
            "NOT a loss of power",
            length, file_.path());
    }
    return fmt::format("persistent memory, {} of '{}': survives a loss of power{}", length, file_.path(),
                       verdict_ == PmemVerdict::Byte ? ", and so do the caches (eADR)" : "");
}

// Returns an environment variable that makes libpmem take any file for persistent memory, or not flush. libpmem read
// them when it was loaded, so its answers are no evidence then.
const char* misleading_variable() noexcept {
    for (const char* const name : {"PMEM_IS_PMEM_FORCE", "PMEM_NO_FLUSH"}) {
        if (std::getenv(name) != nullptr) {
            return name;
        }
    }
    return nullptr;
}

struct Mapped {
    PmemMapping mapping;
    PmemFacts facts;
};

Result<Mapped> map(const BackingFile& file) {
    std::size_t bytes = 0;
    int is_pmem = 0;
    void* const data = ::pmem_map_file(file.path().c_str(), 0, 0, 0, &bytes, &is_pmem);
    if (data == nullptr) {
        return Error{fmt::format("libpmem cannot map '{}': {}", file.path(), ::pmem_errormsg()),
                     "name a DAX device, or a file in a file system that is mounted with DAX"};
    }
    Mapped mapped{PmemMapping(data, bytes), {is_pmem != 0, ::pmem_has_auto_flush() == 1}};
    if (file.bytes() != 0 && file.bytes() != bytes) {
        return Error{fmt::format("'{}' has {}, not {}", file.path(), length_text(bytes), length_text(file.bytes())),
                     "leave the length (--capacity) out: a DAX device is taken whole"};
    }
    if (Status judged = judge_length(fmt::format("'{}'", file.path()), bytes); !judged.ok()) {
        return judged.error();
    }
    return mapped;
}

}  // namespace

Result<std::unique_ptr<Medium>> open_pmem(const std::string& path, std::size_t bytes, PmemChoice choice) {
    if (const char* const name = misleading_variable(); name != nullptr) {
        return Error{fmt::format("'{}' is not opened as persistent memory while {} is set", path, name),
                     fmt::format("unset {}; say --allow-fake-pmem if that is what you want", name)};
    }
    Result<BackingFile> file = BackingFile::open(path, bytes, Devices::Taken);
    if (!file.ok()) {
        return file.error();
    }
    Result<Mapped> mapped = map(file.value());
    if (!mapped.ok()) {
        return mapped.error();
    }
    const PmemVerdict verdict = judge_pmem(mapped.value().facts, choice);
    if (verdict == PmemVerdict::Refused) {
        return Error{fmt::format("'{}' is no persistent memory", path),
                     "name a DAX device or a file in a file system mounted with DAX; or say --data-path; or "
                     "--allow-fake-pmem, and a loss of power destroys it"};
    }
    if (Status populated = populate(mapped.value().mapping.memory(), Touch::Write, path); !populated.ok()) {
        return populated.error();
    }
    file.value().keep();
    return std::unique_ptr<Medium>(
        std::make_unique<PmemMedium>(std::move(mapped.value().mapping), verdict, std::move(file).value()));
}

}  // namespace cairn::fs
