// Which names lead to which directories, for a second.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fs/rules/ids.hpp"
#include "lib/base/time.hpp"

namespace cairn::fs {

// Lets a warm path cost one request. If another client renames a directory, its old name may lead to it for up to
// kLifetime.
class DirectoryCache {
public:
    static constexpr Duration kLifetime = seconds(1);
    static constexpr std::size_t kEntries = 1024;

    // Returns nothing if the name is not known, or is known no more.
    [[nodiscard]] const FileId* find(const FileId& parent, std::string_view name, Instant now) const noexcept;
    void put(const FileId& parent, std::string_view name, const FileId& child, Instant now);
    void drop(const FileId& parent, std::string_view name) noexcept;
    void clear() noexcept { entries_.clear(); }

private:
    struct Entry {
        FileId parent{};
        FileId child{};
        std::string name{};
        Instant ends{};  // 0 if there is no entry
    };
    [[nodiscard]] static std::size_t place(const FileId& parent, std::string_view name) noexcept;
    [[nodiscard]] static bool is_of(const Entry& entry, const FileId& parent, std::string_view name) noexcept {
        return entry.parent == parent && entry.name == name;
    }

    std::vector<Entry> entries_;  // empty, or kEntries long
};

}  // namespace cairn::fs
