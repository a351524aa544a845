// The content of a store of a file system, in the form of the model.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "fs/shard/attributes.hpp"
#include "fs/shard/shard.hpp"
#include "fs/store/checksum.hpp"
#include "tests/unit/fs_shard/posix_model.hpp"

namespace cairn::fs {

// Returns a shard's content, in the lines of the model.
inline std::vector<std::string> facts_of(const Store& store, bool with_directories_times) {
    const Tables& tables = store.tables();
    std::vector<std::string> lines;
    const auto add = [&](const std::string& path, const InodeState& state) {
        const Attributes attributes = attributes_of(state.inode);
        std::uint32_t sum = 0;
        std::vector<std::uint8_t> bytes(store.chunk_bytes());
        for (std::uint64_t at = 0; is_regular(attributes.mode) && at < attributes.size; at += bytes.size()) {
            const auto part = std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), attributes.size - at));
            EXPECT_TRUE(store.read({attributes.id, static_cast<std::uint32_t>(at / bytes.size())}, 0, part));
            sum = crc32c(sum, part);
        }
        lines.push_back(line_of(path, attributes, is_symlink(attributes.mode) ? state.target : "", sum,
                                with_directories_times || !is_directory(attributes.mode)));
    };
    std::vector<std::pair<std::string, FileId>> left{{"/", kRoot}};
    while (!left.empty()) {
        const auto [path, id] = left.back();
        left.pop_back();
        const InodeState* const state = tables.inode(id);
        if (state == nullptr) {
            lines.push_back(path + " has no inode");
            continue;
        }
        add(path, *state);
        const Names* const names = is_directory(state->inode.mode) ? tables.names(id) : nullptr;
        for (auto at = names == nullptr ? Names::Place{} : names->begin(); names != nullptr && at != names->end();
             ++at) {
            const DentryState& dentry = at->second->state;
            const InodeState* const child = tables.inode(dentry.child);
            const bool is_inner = is_directory(dentry.mode);
            if (is_inner && (child == nullptr || parent_of(*child) != id)) {
                lines.push_back(path + " is not the parent of its directory");
            }
            left.emplace_back(path + std::string(at->second->name()) + (is_inner ? "/" : ""), dentry.child);
        }
    }
    tables.inodes().for_each([&](const FileId& /*id*/, const InodeState& state) {
        if (state.inode.links == 0) {
            add("orphan", state);
        }
    });
    tables.answers().for_each([&](const AnswerId& id, const AnswerState& state) {
        lines.push_back("answer " + std::to_string(id.client) + " " + std::to_string(id.slot) + " " +
                        std::to_string(state.sequence));
    });
    std::sort(lines.begin(), lines.end());
    return lines;
}

}  // namespace cairn::fs
