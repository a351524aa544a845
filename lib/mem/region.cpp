#include "lib/mem/region.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace cairn::mem {

namespace {

// Linux 5.14 has it. Older kernels refuse it with EINVAL, and pages come on first use.
constexpr int kAdvisePopulateWrite = 23;

struct Mapping {
    std::uint8_t* data = nullptr;  // nullptr: the kernel refused, errno has the reason
    std::size_t size = 0;
};

// Room for rounding up and for alignment must exist. Otherwise the sums below would wrap.
constexpr bool is_mappable(std::size_t bytes) noexcept {
    return bytes != 0 && bytes <= (std::size_t{1} << 46U);
}

std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
    return (bytes + unit - 1) / unit * unit;
}

std::uint8_t* map_anonymous(std::size_t size, int flags) noexcept {
    void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return data == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(data);
}

bool populate_pages(const Mapping& mapping) noexcept {
    return ::madvise(mapping.data, mapping.size, kAdvisePopulateWrite) == 0 || errno == EINVAL;
}

// Reserved pages are populated in any case. Under a cgroup limit the mapping succeeds and the first access would be a
// SIGBUS. Populating turns that into an error from which the caller can fall back.
Mapping map_huge(std::size_t bytes) noexcept {
    Mapping mapping{nullptr, round_up(bytes, kHugePageBytes)};
    mapping.data = map_anonymous(mapping.size, MAP_HUGETLB);
    if (mapping.data != nullptr && !populate_pages(mapping)) {
        const int reason = errno;
        ::munmap(mapping.data, mapping.size);
        mapping.data = nullptr;
        errno = reason;
    }
    return mapping;
}

// Maps a huge page more than asked for and gives back the memory outside the aligned part.
Mapping map_aligned(std::size_t bytes) noexcept {
    Mapping mapping{nullptr, round_up(bytes, kHugePageBytes)};
    std::uint8_t* const raw = map_anonymous(mapping.size + kHugePageBytes, 0);
    if (raw == nullptr) {
        return mapping;
    }
    const std::size_t misfit = reinterpret_cast<std::uintptr_t>(raw) % kHugePageBytes;
    const std::size_t before = misfit == 0 ? 0 : kHugePageBytes - misfit;
    mapping.data = raw + before;
    if (before != 0) {
        ::munmap(raw, before);
    }
    ::munmap(mapping.data + mapping.size, kHugePageBytes - before);
    return mapping;
}

// madvise() succeeds also in a process whose parent disabled such pages, so prctl() is asked first.
bool transparent_pages_offered() {
    if (::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1) {
        return false;
    }
    std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return offers_transparent_pages(text);
}

Error refused(std::size_t bytes, std::string_view pages, int reason, std::string_view remedy) {
    return {fmt::format("no {} bytes of memory on {}: {}", bytes, pages, std::strerror(reason)), std::string(remedy)};
}

}  // namespace

std::string_view name_of(PageKind kind) noexcept {
    constexpr std::array<std::string_view, 3> kNames{"huge", "transparent", "small"};
    return kNames[static_cast<std::size_t>(kind)];
}

bool offers_transparent_pages(std::string_view enabled_file) noexcept {
    return enabled_file.find("[always]") != std::string_view::npos ||
           enabled_file.find("[madvise]") != std::string_view::npos;
}

Result<Region> Region::map(std::size_t bytes, PageWish wish, bool populate) {
    if (!is_mappable(bytes)) {
        return Error{fmt::format("a memory region of {} bytes", bytes), "ask for 1 byte to 64 TiB"};
    }
    if (wish != PageWish::NoHuge) {
        const Mapping huge = map_huge(bytes);
        if (huge.data != nullptr) {
            return Region(huge.data, huge.size, PageKind::Huge);
        }
        if (wish == PageWish::HugeOnly) {
            return refused(bytes, "reserved huge pages", errno, "reserve some: sysctl vm.nr_hugepages=N");
        }
    }
    Mapping mapping;
    PageKind kind = PageKind::Plain;
    if (bytes >= kHugePageBytes && transparent_pages_offered()) {
        mapping = map_aligned(bytes);
        if (mapping.data != nullptr && ::madvise(mapping.data, mapping.size, MADV_HUGEPAGE) == 0) {
            kind = PageKind::Transparent;
        }
    } else {
        mapping.size = round_up(bytes, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
        mapping.data = map_anonymous(mapping.size, 0);
    }
    if (mapping.data == nullptr) {
        return refused(bytes, "pages of any kind", errno, "ask for less, or raise the memory limit (ulimit -v)");
    }
    Region region(mapping.data, mapping.size, kind);
    if (populate && !populate_pages(mapping)) {
        return refused(bytes, "pages of any kind", errno, "ask for less, or free memory");
    }
    return region;
}

Region::Region(Region&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), kind_(other.kind_) {}

Region& Region::operator=(Region&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(kind_, other.kind_);
    return *this;
}

Region::~Region() {
    if (data_ != nullptr) {
        ::munmap(data_, size_);
    }
}

std::string Region::describe() const {
    std::string_view pages;
    switch (kind_) {
        case PageKind::Huge:
            pages = "reserved huge pages";
            break;
        case PageKind::Transparent:
            pages = "transparent huge pages (none reserved; sysctl vm.nr_hugepages reserves some)";
            break;
        case PageKind::Plain:
            pages = "plain pages (no huge ones to be had)";
            break;
    }
    constexpr std::size_t kMiB = std::size_t{1} << 20U;
    return size_ >= kMiB ? fmt::format("{} MiB on {}", size_ / kMiB, pages)
                         : fmt::format("{} KiB on {}", size_ / 1024, pages);
}

}  // namespace cairn::mem
