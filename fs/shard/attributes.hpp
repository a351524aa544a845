// Attributes of files, between store, rules and messages.
#pragma once

#include <optional>

#include "fs/message/answers.hpp"
#include "fs/rules/access.hpp"
#include "fs/store/tables.hpp"

namespace cairn::fs {

// The bits of a mode: type and permissions.
constexpr std::uint32_t kModeBits = 0177777U;

[[nodiscard]] constexpr bool is_directory(std::uint32_t mode) noexcept {
    return (mode & 0170000U) == 0040000U;
}
[[nodiscard]] constexpr bool is_regular(std::uint32_t mode) noexcept {
    return (mode & 0170000U) == 0100000U;
}
[[nodiscard]] constexpr bool is_symlink(std::uint32_t mode) noexcept {
    return (mode & 0170000U) == 0120000U;
}
[[nodiscard]] constexpr std::uint32_t type_of(std::uint32_t mode) noexcept {
    return mode & 0170000U;
}

[[nodiscard]] inline Owned owned(const Inode& inode) noexcept {
    return {inode.mode, inode.uid, inode.gid};
}
[[nodiscard]] Attributes attributes_of(const Inode& inode) noexcept;

// Returns a copy to change and to put into a record. Its target refers to the state.
[[nodiscard]] Inode copy_of(const InodeState& state) noexcept;

// Returns the text of a directory's inode. It names the parent directory; a symbolic link has its target there.
[[nodiscard]] std::string_view text_of(const FileId& parent) noexcept;  // refers to the argument
[[nodiscard]] std::optional<FileId> parent_of(const InodeState& directory) noexcept;

}  // namespace cairn::fs
