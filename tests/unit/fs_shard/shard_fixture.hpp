// Clients of a shard, and their most frequent calls.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "fs/rules/ranges.hpp"
#include "tests/support/shard_host.hpp"

namespace cairn::fs {

constexpr std::uint32_t kFileMode = 0100644;
constexpr std::uint32_t kDirectoryMode = 0040755;
constexpr std::uint32_t kChunk = test::ShardRig::kChunkBytes;
constexpr std::uint64_t kLongest = longest_file(kChunk);
constexpr std::uint32_t kReadWrite = kMayRead | kMayWrite;

// A file that a client has open.
struct Handle {
    FileId file{};
    Grant grant{};
    int error = 0;
};

class ShardTest : public testing::Test {
protected:
    explicit ShardTest(Granularity granularity = Granularity::CacheLine) : rig(granularity) {}
    ~ShardTest() override {
        rig.settle();
        rig.store().check();
    }

    int error_of(test::ShardClient& client, const Request& request) { return rig.error_of(client, request); }
    FileId make(test::ShardClient& client, std::string_view name, std::uint32_t mode = kFileMode,
                const FileId& directory = kRoot) {
        const auto told = rig.ask<WalkAnswer>(client, CreateRequest{directory, mode, 0, true, name, {}});
        EXPECT_EQ(told.error, 0) << name;
        return told.answer.attributes.id;
    }
    FileId make_link(test::ShardClient& client, std::string_view name, std::string_view target) {
        const auto told = rig.ask<WalkAnswer>(client, CreateRequest{kRoot, 0120777, 0, true, name, target});
        EXPECT_EQ(told.error, 0) << name;
        return told.answer.attributes.id;
    }
    Handle open(test::ShardClient& client, const FileId& file, std::uint32_t rights = kReadWrite) {
        const auto told = rig.ask<OpenAnswer>(client, OpenRequest{file, rights});
        return {file, {rights, told.answer.proof}, told.error};
    }
    Handle make_open(test::ShardClient& client, std::string_view name, std::uint32_t mode = kFileMode) {
        return open(client, make(client, name, mode));
    }
    int close(test::ShardClient& client, const FileId& file) { return error_of(client, CloseRequest{file}); }
    Attributes stat(const FileId& file) {
        const auto told = rig.ask<AttributesAnswer>(root, StatRequest{file});
        EXPECT_EQ(told.error, 0);
        return told.answer.attributes;
    }
    int error_of_stat(const FileId& file) { return error_of(root, StatRequest{file}); }
    FileId walk(std::string_view name, const FileId& directory = kRoot) {
        return rig.ask<WalkAnswer>(root, WalkRequest{directory, 0, name}).answer.attributes.id;
    }
    int remove(test::ShardClient& client, std::string_view name, bool is_directory = false,
               const FileId& directory = kRoot) {
        return error_of(client, RemoveRequest{directory, is_directory, name});
    }
    int rename(test::ShardClient& client, std::string_view name, std::string_view to, bool no_replace = false,
               const FileId& from_directory = kRoot, const FileId& to_directory = kRoot) {
        return error_of(client, RenameRequest{from_directory, to_directory, no_replace, name, to});
    }
    int chmod(test::ShardClient& client, const FileId& file, std::uint32_t mode) {
        return error_of(client, SetAttributesRequest{file, {}, kSetMode, mode});
    }
    int resize(test::ShardClient& client, const FileId& file, std::uint64_t size, const Grant& grant = {}) {
        SetAttributesRequest request{file, grant, kSetSize};
        request.size = size;
        return error_of(client, request);
    }
    // Writes within a chunk. Returns an errno.
    int write(test::ShardClient& client, const Handle& handle, std::uint64_t offset, std::string_view text) {
        std::memcpy(client.data.data(), text.data(), text.size());
        return error_of(client, WriteRequest{handle.file, handle.grant, offset, stat(handle.file).generation,
                                             static_cast<std::uint32_t>(text.size()), 0});
    }
    // Reads within a chunk; to the end of the file at most.
    std::string read(test::ShardClient& client, const Handle& handle, std::uint64_t offset, std::uint32_t bytes) {
        std::fill(client.data.begin(), client.data.end(), std::uint8_t{0xa5});
        const auto told = rig.ask<DataAnswer>(client, ReadRequest{handle.file, handle.grant, offset, bytes, 4096});
        EXPECT_EQ(told.error, 0);
        EXPECT_LE(told.answer.bytes, bytes);
        EXPECT_EQ(client.data[4095], 0xa5);
        EXPECT_EQ(client.data[4096 + told.answer.bytes], 0xa5);
        return {reinterpret_cast<const char*>(client.data.data()) + 4096, told.answer.bytes};
    }

    test::ShardRig rig;
    test::ShardClient root{1, 0, 0};
    test::ShardClient alice{2, 1000, 1000, {50}};
    test::ShardClient bob{3, 1001, 1001, {50}};
};

}  // namespace cairn::fs
