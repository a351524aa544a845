#include "fs/medium/file_blocks.hpp"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>

namespace cairn::fs {

namespace {

constexpr std::uint32_t kExtents = 64;  // per call

// A head, and its extents.
struct Extents {
    alignas(struct fiemap) std::byte memory[sizeof(struct fiemap) + kExtents * sizeof(struct fiemap_extent)]{};

    [[nodiscard]] struct fiemap& head() noexcept { return *reinterpret_cast<struct fiemap*>(memory); }
};

// Flags of an extent that has no blocks yet, or whose blocks are replaced when they are written.
constexpr std::uint32_t kNotItsOwn = FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_SHARED;

}  // namespace

bool has_all_blocks(int fd, std::size_t bytes) noexcept {
    std::uint64_t covered = 0;
    while (covered < bytes) {
        Extents memory;
        struct fiemap& found = memory.head();
        found.fm_start = covered;
        found.fm_length = bytes - covered;
        found.fm_extent_count = kExtents;
        if (::ioctl(fd, FS_IOC_FIEMAP, &found) != 0) {
            return false;
        }
        const std::uint64_t before = covered;
        for (std::uint32_t at = 0; at < found.fm_mapped_extents; ++at) {
            const struct fiemap_extent& extent = found.fm_extents[at];
            if (extent.fe_logical > covered || (extent.fe_flags & kNotItsOwn) != 0) {
                return false;
            }
            covered = extent.fe_logical + extent.fe_length;
        }
        if (covered == before) {
            return false;
        }
    }
    return true;
}

}  // namespace cairn::fs
