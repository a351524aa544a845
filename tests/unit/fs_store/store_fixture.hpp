// A store in memory.
#pragma once

#include "fs/store/store.hpp"
#include "tests/support/recording_medium.hpp"
#include "tests/unit/fs_store/store_model.hpp"

namespace cairn::fs {

constexpr ChunkId kChunk{{1, 2}, 3};

class StoreTest : public testing::Test {
protected:
    void SetUp() override { store = Store::format(*medium, {StoreShape::kLeastChunkBytes, 5, 6}).value(); }
    void reopen() {
        store.reset();
        medium = test::RecordingMedium::restart(medium->crash_none());
        auto opened = Store::open(*medium);
        ASSERT_TRUE(opened.ok()) << opened.error().text();
        store = std::move(opened).value();
        store->check();
    }
    bool write(const ChunkId& chunk, std::uint32_t offset, std::span<const std::uint8_t> bytes,
               std::uint64_t generation = 0) {
        auto pending = store->begin_write(chunk, generation, offset, static_cast<std::uint32_t>(bytes.size()));
        if (!pending) {
            return false;
        }
        store->data().fill(*pending, 0, bytes);
        Change change;
        store->finish_write(*pending, change);
        return store->apply(change, Need::Grows);
    }
    std::vector<std::uint8_t> read(const ChunkId& chunk, std::uint32_t offset, std::size_t bytes) {
        std::vector<std::uint8_t> content(bytes, 0xee);
        EXPECT_TRUE(store->read(chunk, offset, content));
        return content;
    }
    bool put(const Record& record, Need need = Need::Grows) {
        Change change;
        change.put(record);
        return store->apply(change, need);
    }
    // Puts one of 1000 files again and again, each time with another size.
    bool put_one_of_1000(std::uint64_t i) {
        Inode inode;
        inode.id = {i % 1000, 1};
        inode.size = i;
        return put(inode);
    }
    static std::vector<std::uint8_t> filled(std::size_t bytes, std::uint8_t with) {
        return std::vector<std::uint8_t>(bytes, with);
    }

    std::unique_ptr<test::RecordingMedium> medium = test::RecordingMedium::of_zeros(kStoreBytes);
    std::unique_ptr<Store> store;
};

}  // namespace cairn::fs
