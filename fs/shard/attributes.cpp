#include "fs/shard/attributes.hpp"

#include <cstring>

namespace cairn::fs {

Attributes attributes_of(const Inode& inode) noexcept {
    return {inode.id,         inode.mode,        inode.uid,        inode.gid,         inode.links,  inode.size,
            inode.generation, inode.modified_ns, inode.changed_ns, inode.accessed_ns, inode.born_ns};
}

Inode copy_of(const InodeState& state) noexcept {
    Inode inode = state.inode;
    inode.target = state.target;
    return inode;
}

std::string_view text_of(const FileId& parent) noexcept {
    return {reinterpret_cast<const char*>(&parent), sizeof(parent)};
}

std::optional<FileId> parent_of(const InodeState& directory) noexcept {
    FileId parent;
    if (!is_directory(directory.inode.mode) || directory.target.size() != sizeof(parent)) {
        return std::nullopt;
    }
    std::memcpy(&parent, directory.target.data(), sizeof(parent));
    return parent;
}

}  // namespace cairn::fs
