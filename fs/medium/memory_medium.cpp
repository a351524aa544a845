// Anonymous memory, which does not persist.
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "fs/medium/backends.hpp"
#include "fs/medium/length.hpp"
#include "lib/mem/region.hpp"

namespace cairn::fs {

namespace {

class MemoryMedium final : public Medium {
public:
    MemoryMedium(mem::Region region, std::size_t bytes) noexcept
        : Medium(region.bytes().first(bytes), Granularity::None), region_(std::move(region)) {}

    void flush(const void* /*at*/, std::size_t /*bytes*/) noexcept override {}
    void fence() noexcept override { __sync_synchronize(); }  // TSan knows no std::atomic_thread_fence
    void copy_nt(void* to, const void* from, std::size_t bytes) noexcept override { std::memcpy(to, from, bytes); }
    Status sync() noexcept override { return Nothing{}; }
    [[nodiscard]] std::string describe() const override { return region_.describe() + ": lost when this process ends"; }

private:
    mem::Region region_;
};

}  // namespace

Result<std::unique_ptr<Medium>> make_memory(std::size_t bytes) {
    if (Status judged = judge_length("memory", bytes); !judged.ok()) {
        return judged.error();
    }
    Result<mem::Region> region = mem::Region::map(bytes, mem::PageWish::Best, true);
    if (!region.ok()) {
        return region.error();
    }
    return std::unique_ptr<Medium>(std::make_unique<MemoryMedium>(std::move(region).value(), bytes));
}

}  // namespace cairn::fs
