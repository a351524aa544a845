// The content of a store, as texts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fs/store/checksum.hpp"
#include "fs/store/store.hpp"
#include "lib/sim/random.hpp"

namespace cairn::fs {

constexpr std::size_t kStoreBytes = 16U << 20U;

// All objects as texts. Equal facts mean equal objects.
using Facts = std::map<std::string, std::string>;

inline std::string text_of(const FileId& id) {
    return std::to_string(id.place) + "." + std::to_string(id.random);
}
inline std::string text_of(std::span<const std::uint8_t> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::string text_of(const Inode& inode, std::string_view target) {
    std::string text;
    for (const std::uint64_t each :
         {std::uint64_t{inode.mode}, std::uint64_t{inode.uid}, std::uint64_t{inode.gid}, std::uint64_t{inode.links},
          inode.size, inode.generation, static_cast<std::uint64_t>(inode.modified_ns),
          static_cast<std::uint64_t>(inode.changed_ns), static_cast<std::uint64_t>(inode.accessed_ns),
          static_cast<std::uint64_t>(inode.born_ns), inode.leases}) {
        text += std::to_string(each) + " ";
    }
    return text + std::string(target);
}
inline std::string name_of(const ChunkId& id) {
    return "chunk " + text_of(id.file) + " " + std::to_string(id.index);
}
inline std::string text_of_chunk(std::uint64_t generation, std::span<const std::uint8_t> content) {
    return std::to_string(generation) + " " + std::to_string(crc32c(1, content)) + " " +
           std::to_string(crc32c(77, content));
}

// Returns the content of a store. A damaged chunk has no content.
inline Facts facts_of(const Store& store) {
    Facts facts;
    const Tables& tables = store.tables();
    tables.inodes().for_each([&](const FileId& id, const InodeState& state) {
        facts["inode " + text_of(id)] = text_of(state.inode, state.target);
    });
    tables.directories().for_each([&](const FileId& parent, const Names& names) {
        for (const auto& [hash, named] : names) {
            facts["name " + text_of(parent) + " " + std::string(named->name())] =
                text_of(named->state.child) + " " + std::to_string(named->state.mode);
        }
    });
    std::vector<std::uint8_t> content(store.chunk_bytes());
    tables.chunks().for_each([&](const ChunkId& id, const ChunkState& state) {
        facts[name_of(id)] = store.read(id, 0, content) ? text_of_chunk(state.generation, content) : "damaged";
    });
    tables.answers().for_each([&](const AnswerId& id, const AnswerState& state) {
        facts["answer " + std::to_string(id.client) + " " + std::to_string(id.slot)] =
            std::to_string(state.sequence) + " " + std::to_string(state.result);
    });
    tables.intents().for_each([&](std::uint64_t number, const IntentState& state) {
        facts["intent " + std::to_string(number)] = text_of(state.said);
    });
    return facts;
}

}  // namespace cairn::fs
