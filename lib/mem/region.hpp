// Region: a block of memory from the kernel, on the largest pages that it gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"

namespace cairn::mem {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20U;

enum class PageKind : std::uint8_t {
    Huge,         // reserved huge pages (vm.nr_hugepages): never split, never swapped
    Transparent,  // ordinary memory, aligned and advised; the kernel backs it with huge pages where it can
    Plain,
};

// Returns "huge", "transparent" or "small".
[[nodiscard]] std::string_view name_of(PageKind kind) noexcept;

enum class PageWish : std::uint8_t {
    Best,      // huge pages, else transparent ones, else plain ones
    NoHuge,    // transparent pages, else plain ones: reserved pages are left to others
    HugeOnly,  // huge pages, else an Error
};

// Owns one mapping: private to the process, zeroed, at least page-aligned. Movable. The destructor unmaps it.
class Region {
public:
    // Maps `bytes`, rounded up to whole pages of the kind obtained. With `populate`, all pages are there at once, so
    // that no later access faults.
    static Result<Region> map(std::size_t bytes, PageWish wish = PageWish::Best, bool populate = false);

    Region(Region&& other) noexcept;
    Region& operator=(Region&& other) noexcept;
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    ~Region();

    [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return {data_, size_}; }
    [[nodiscard]] PageKind kind() const noexcept { return kind_; }
    // Returns a text for an application's start line: "64 MiB on transparent huge pages (...)".
    [[nodiscard]] std::string describe() const;

private:
    Region(std::uint8_t* data, std::size_t size, PageKind kind) noexcept : data_(data), size_(size), kind_(kind) {}

    std::uint8_t* data_;
    std::size_t size_;
    PageKind kind_;
};

// Returns true if advice can have an effect, by the text of /sys/kernel/mm/transparent_hugepage/enabled.
[[nodiscard]] bool offers_transparent_pages(std::string_view enabled_file) noexcept;

}  // namespace cairn::mem
