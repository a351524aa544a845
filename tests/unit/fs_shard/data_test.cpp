// Data of a shard: read, write, extend, reserve, and files that are cut.
#include "tests/unit/fs_shard/shard_fixture.hpp"

namespace cairn::fs {
namespace {

class ShardData : public ShardTest {
protected:
    int read_error(test::ShardClient& client, const Handle& handle, std::uint64_t offset, std::uint32_t bytes,
                   std::uint32_t at = 0) {
        return error_of(client, ReadRequest{handle.file, handle.grant, offset, bytes, at});
    }
    int write_error(test::ShardClient& client, const Handle& handle, std::uint64_t offset, std::uint32_t bytes,
                    std::uint32_t at = 0, std::uint64_t generation = 0) {
        return error_of(client, WriteRequest{handle.file, handle.grant, offset, generation, bytes, at});
    }
};

TEST_F(ShardData, WhatWasWrittenIsRead) {
    const Handle handle = make_open(alice, "file");
    EXPECT_EQ(read(alice, handle, 0, 10), "");
    std::memcpy(alice.data.data() + 100, "hello", 5);
    const auto told = rig.ask<DataAnswer>(alice, WriteRequest{handle.file, handle.grant, 3, 0, 5, 100});
    ASSERT_EQ(told.error, 0);
    EXPECT_EQ(told.answer.bytes, 5U);
    EXPECT_TRUE(told.answer.is_home);
    EXPECT_EQ(told.answer.size, 8U);
    EXPECT_EQ(told.answer.generation, 0U);
    const std::int64_t written_at = rig.wall_ns;
    EXPECT_EQ(stat(handle.file).modified_ns, written_at);
    EXPECT_EQ(read(alice, handle, 0, 100), std::string(3, '\0') + "hello");
    EXPECT_EQ(read(alice, handle, 7, 100), "o");
    EXPECT_EQ(read(alice, handle, 8, 100), "");
    EXPECT_EQ(read(alice, handle, kChunk * 5, 100), "");
    EXPECT_EQ(write(alice, handle, 0, "HE"), 0);
    EXPECT_EQ(stat(handle.file).size, 8U);
    rig.restart();
    EXPECT_EQ(read(alice, handle, 0, 100), std::string("HE\0hello", 8));
    const auto read_back = rig.ask<DataAnswer>(alice, ReadRequest{handle.file, handle.grant, 0, 100, 0});
    EXPECT_EQ(read_back.answer.size, 8U);
    EXPECT_TRUE(read_back.answer.is_home);
}

TEST_F(ShardData, HolesAreZeros) {
    const Handle handle = make_open(alice, "file");
    ASSERT_EQ(write(alice, handle, kChunk - 1, "x"), 0);
    ASSERT_EQ(write(alice, handle, 3 * kChunk + 5000, "y"), 0);
    EXPECT_EQ(stat(handle.file).size, 3 * kChunk + 5001U);
    EXPECT_EQ(rig.store().tables().chunks().size(), 2U);
    EXPECT_EQ(read(alice, handle, 0, kChunk), std::string(kChunk - 1, '\0') + "x");
    EXPECT_EQ(read(alice, handle, kChunk, kChunk), std::string(kChunk, '\0'));
    EXPECT_EQ(read(alice, handle, 3 * kChunk, kChunk), std::string(5000, '\0') + "y");
}

TEST_F(ShardData, RightsAreProved) {
    const Handle hers = make_open(alice, "file", 0100666);
    const Handle others = make_open(alice, "other", 0100666);
    const Handle his = open(bob, hers.file);
    const Handle reading = open(alice, hers.file, kMayRead);
    const Handle writing = open(alice, hers.file, kMayWrite);
    const auto is_refused = [this](test::ShardClient& client, const Handle& handle) {
        return read_error(client, handle, 0, 1) == EBADF && write_error(client, handle, 0, 1) == EBADF &&
               error_of(client, ExtendRequest{handle.file, handle.grant, 1}) == EBADF &&
               error_of(client, ReserveRequest{handle.file, handle.grant, 1}) == EBADF;
    };
    EXPECT_TRUE(is_refused(alice, {hers.file, {kReadWrite, hers.grant.proof + 1}}));
    EXPECT_TRUE(is_refused(alice, {hers.file, {kReadWrite, 0}}));
    EXPECT_TRUE(is_refused(alice, {hers.file, {kReadWrite, reading.grant.proof}}));
    EXPECT_TRUE(is_refused(alice, {hers.file, {7, hers.grant.proof}}));
    EXPECT_TRUE(is_refused(alice, {hers.file, others.grant}));
    EXPECT_TRUE(is_refused(alice, {hers.file, his.grant}));
    EXPECT_TRUE(is_refused(bob, hers));
    EXPECT_TRUE(is_refused(alice, {hers.file, open(alice, hers.file, 0).grant}));
    EXPECT_EQ(write_error(alice, reading, 0, 1), EBADF);
    EXPECT_EQ(read_error(alice, reading, 0, 1), 0);
    EXPECT_EQ(write_error(alice, writing, 0, 1), 0);
    EXPECT_EQ(read_error(alice, writing, 0, 1), EBADF);
    EXPECT_EQ(error_of(alice, ExtendRequest{hers.file, reading.grant, 9}), EBADF);
    EXPECT_EQ(error_of(alice, ReserveRequest{hers.file, reading.grant, 9}), EBADF);
    EXPECT_EQ(stat(hers.file).size, 1U);
    EXPECT_EQ(read_error(bob, his, 0, 1), 0);
}

TEST_F(ShardData, PiecesAreWithinAChunkAndTheDataAreas) {
    const Handle handle = make_open(alice, "file");
    const auto areas = static_cast<std::uint32_t>(alice.data.size());
    const auto both = [&](std::uint64_t offset, std::uint32_t bytes, std::uint32_t at) {
        const int read = read_error(alice, handle, offset, bytes, at);
        EXPECT_EQ(write_error(alice, handle, offset, bytes, at), read);
        return read;
    };
    EXPECT_EQ(both(0, 0, 0), EINVAL);
    EXPECT_EQ(both(0, kChunk + 1, 0), EINVAL);
    EXPECT_EQ(both(1, kChunk, 0), EINVAL);
    EXPECT_EQ(both(kChunk - 1, 2, 0), EINVAL);
    EXPECT_EQ(both(0, ~std::uint32_t{0}, 2), EINVAL);
    EXPECT_EQ(both(0, 1, areas), EINVAL);
    EXPECT_EQ(both(0, 2, areas - 1), EINVAL);
    EXPECT_EQ(both(0, 1, areas + 1), EINVAL);
    EXPECT_EQ(both(0, 2, ~std::uint32_t{0}), EINVAL);
    EXPECT_EQ(both(kLongest, 1, 0), EFBIG);
    EXPECT_EQ(both(1ULL << 63U, 1, 0), EFBIG);
    EXPECT_EQ(both((1ULL << 63U) - 1, 1, 0), EFBIG);
    EXPECT_EQ(both(~std::uint64_t{0}, 1, 0), EFBIG);
    EXPECT_EQ(stat(handle.file).size, 0U);
    EXPECT_EQ(both(0, kChunk, areas - kChunk), 0);
    EXPECT_EQ(both(0, 1, areas - 1), 0);
    EXPECT_EQ(both(kChunk - 1, 1, 0), 0);
    EXPECT_EQ(stat(handle.file).size, kChunk);
    EXPECT_EQ(both(kLongest - 1, 1, 0), 0);
    EXPECT_EQ(both(kLongest - kChunk, kChunk, 0), 0);
    EXPECT_EQ(stat(handle.file).size, kLongest);
    EXPECT_EQ(both(kLongest - 1, 2, 0), EINVAL);
}

TEST_F(ShardData, ExtendIsForChunksElsewhere) {
    const Handle handle = make_open(alice, "file");
    const auto extend = [&](std::uint64_t end, std::uint64_t generation) {
        return rig.ask<DataAnswer>(alice, ExtendRequest{handle.file, handle.grant, end, generation});
    };
    EXPECT_EQ(extend(100, 0).answer.size, 100U);
    EXPECT_EQ(extend(50, 0).answer.size, 100U);
    const std::int64_t written_at = rig.wall_ns;
    EXPECT_EQ(stat(handle.file).modified_ns, written_at);
    EXPECT_EQ(extend(kLongest + 1, 0).error, EFBIG);
    ASSERT_EQ(resize(alice, handle.file, 10), 0);
    EXPECT_EQ(extend(100, 0).error, kErrorOtherGeneration);
    EXPECT_EQ(stat(handle.file).size, 10U);
    const auto told = extend(kLongest, 1);
    EXPECT_EQ(told.answer.size, kLongest);
    EXPECT_EQ(told.answer.generation, 1U);
    EXPECT_TRUE(told.answer.is_home);
}

TEST_F(ShardData, ReserveTakesBytesBehindTheEnd) {
    const Handle handle = make_open(alice, "file");
    const auto reserve = [&](std::uint64_t bytes) {
        return rig.ask<DataAnswer>(alice, ReserveRequest{handle.file, handle.grant, bytes});
    };
    EXPECT_EQ(reserve(10).answer.offset, 0U);
    const auto told = reserve(5);
    EXPECT_EQ(told.answer.offset, 10U);
    EXPECT_EQ(told.answer.size, 15U);
    EXPECT_EQ(stat(handle.file).size, 15U);
    EXPECT_EQ(reserve(0).answer.offset, 15U);
    ASSERT_EQ(resize(alice, handle.file, kLongest - 3), 0);
    EXPECT_EQ(reserve(~std::uint64_t{0}).answer.offset, kLongest - 3) << "gets what there is";
    EXPECT_EQ(stat(handle.file).size, kLongest);
    EXPECT_EQ(reserve(1).error, EFBIG);
    EXPECT_EQ(reserve(0).error, 0);
}

TEST_F(ShardData, WhatWasCutOffIsZero) {
    const Handle handle = make_open(alice, "file");
    for (std::uint64_t chunk = 0; chunk != 4; ++chunk) {
        ASSERT_EQ(write(alice, handle, chunk * kChunk, std::string(kChunk, static_cast<char>('a' + chunk))), 0);
    }
    ASSERT_EQ(resize(alice, handle.file, kChunk + 5000), 0);
    EXPECT_EQ(stat(handle.file).generation, 1U);
    EXPECT_EQ(rig.store().tables().chunks().size(), 2U);
    EXPECT_EQ(read(alice, handle, kChunk, kChunk), std::string(5000, 'b'));
    ASSERT_EQ(resize(alice, handle.file, 4 * kChunk), 0);
    EXPECT_EQ(stat(handle.file).generation, 1U) << "of cuts alone";
    const auto check = [&] {
        EXPECT_EQ(read(alice, handle, 0, kChunk), std::string(kChunk, 'a'));
        EXPECT_EQ(read(alice, handle, kChunk, kChunk), std::string(5000, 'b') + std::string(kChunk - 5000, '\0'));
        EXPECT_EQ(read(alice, handle, 2 * kChunk, kChunk), std::string(kChunk, '\0'));
    };
    check();
    rig.restart();
    check();
    ASSERT_EQ(write(alice, handle, kChunk + 8000, "c"), 0);
    EXPECT_EQ(read(alice, handle, kChunk + 4999, 3002), "b" + std::string(3000, '\0') + "c");
    ASSERT_EQ(resize(alice, handle.file, kChunk), 0);
    EXPECT_EQ(rig.store().tables().chunks().size(), 1U);
    ASSERT_EQ(resize(alice, handle.file, 0), 0);
    EXPECT_EQ(rig.store().tables().chunks().size(), 0U);
    EXPECT_EQ(stat(handle.file).generation, 3U);
}

TEST_F(ShardData, ALateWriteDoesNothing) {
    const Handle handle = make_open(alice, "file");
    ASSERT_EQ(write(alice, handle, 0, "whole"), 0);
    ASSERT_EQ(write(alice, handle, kChunk, "second"), 0);
    ASSERT_EQ(resize(alice, handle.file, 2), 0);
    std::memcpy(alice.data.data(), "LATE", 4);
    EXPECT_EQ(write_error(alice, handle, 0, 4), kErrorOtherGeneration);
    EXPECT_EQ(write_error(alice, handle, kChunk, 4), kErrorOtherGeneration);
    EXPECT_EQ(stat(handle.file).size, 2U);
    EXPECT_EQ(read(alice, handle, 0, 9), "wh");
    rig.restart();
    EXPECT_EQ(write_error(alice, handle, kChunk, 4), kErrorOtherGeneration);
    EXPECT_EQ(write_error(alice, handle, kChunk, 4, 0, 1), 0);
    EXPECT_EQ(stat(handle.file).size, kChunk + 4);
}

// A client that claims a future generation would keep all others from writing.
TEST_F(ShardData, AGenerationThatIsStillToComeIsRefused) {
    const Handle handle = make_open(alice, "file");
    EXPECT_EQ(write_error(alice, handle, 0, 4, 0, 1), kErrorOtherGeneration);
    EXPECT_EQ(write_error(alice, handle, 0, 4, 0, ~std::uint64_t{0}), kErrorOtherGeneration);
    EXPECT_EQ(error_of(alice, ExtendRequest{handle.file, handle.grant, 9, 1}), kErrorOtherGeneration);
    EXPECT_EQ(stat(handle.file).size, 0U);
    EXPECT_EQ(write(alice, handle, 0, "text"), 0);
}

TEST_F(ShardData, AChunkThatWasNotCutKeepsItsOtherBytes) {
    const Handle handle = make_open(alice, "file");
    ASSERT_EQ(write(alice, handle, 0, "abcdef"), 0);
    ASSERT_EQ(write(alice, handle, 2 * kChunk, "end"), 0);
    ASSERT_EQ(resize(alice, handle.file, 2 * kChunk), 0);
    ASSERT_EQ(write(alice, handle, 2, "CD"), 0);
    EXPECT_EQ(read(alice, handle, 0, 6), "abCDef");
    ASSERT_EQ(write(alice, handle, 10'000, "x"), 0);
    EXPECT_EQ(read(alice, handle, 0, 6), "abCDef");
    rig.restart();
    EXPECT_EQ(read(alice, handle, 0, 6), "abCDef");
}

TEST_F(ShardData, DamageIsNotRead) {
    const Handle handle = make_open(alice, "file");
    ASSERT_EQ(write(alice, handle, 0, std::string(8192, 'a')), 0);
    const ChunkState* const chunk = rig.store().tables().chunk({handle.file, 0});
    rig.medium().memory()[std::size_t{chunk->extents[0].run.first} * kBlockBytes + 5000] ^= 1U;
    EXPECT_EQ(read_error(alice, handle, 0, 8192), EIO);
    EXPECT_EQ(read_error(alice, handle, 0, 4096), 0);
    EXPECT_EQ(rig.shard().counters().damaged, 1U);
}

// A turn removes a limited number of chunks. Other calls are served meanwhile, and the file has a length in between.
TEST_F(ShardData, LongFilesAreCutOverTurns) {
    const Handle handle = make_open(alice, "file");
    constexpr std::uint64_t kChunks = 1000;
    for (std::uint64_t chunk = 0; chunk != kChunks; ++chunk) {
        ASSERT_EQ(write(alice, handle, chunk * kChunk, "x"), 0);
    }
    SetAttributesRequest request{handle.file, handle.grant, kSetSize};
    request.size = kChunk + 1;
    const CallToken token = rig.send(alice, request);
    std::uint64_t size = kChunks * kChunk;
    int turns = 0;
    for (; !rig.is_answered(token); ++turns) {
        ASSERT_LT(turns, 100);
        const std::uint64_t now = stat(handle.file).size;
        EXPECT_LE(now, size);
        size = rig.store().tables().inode(handle.file)->inode.size;
        EXPECT_EQ(rig.store().tables().chunks().size(), (size + kChunk - 1) / kChunk);
        EXPECT_EQ(read(alice, handle, 0, 1), "x");
    }
    EXPECT_GT(turns, 2);
    const auto told = rig.told<AttributesAnswer>(token);
    EXPECT_EQ(told.error, 0);
    EXPECT_EQ(told.answer.attributes.size, kChunk + 1U);
    EXPECT_EQ(told.answer.attributes.links, 1U);
    rig.settle();
    EXPECT_FALSE(rig.is_answered(token)) << "once";
    EXPECT_EQ(rig.store().tables().chunks().size(), 2U);
}

// Missing chunks are not looked for: billions of them would keep the shard busy for minutes.
TEST_F(ShardData, HolesAreCutAtOnce) {
    const Handle handle = make_open(alice, "file");
    for (const std::uint64_t chunk : {0U, 7U, 50'000U, ~0U}) {
        ASSERT_EQ(write(alice, handle, chunk * kChunk, "x"), 0);
    }
    ASSERT_EQ(resize(alice, handle.file, kLongest), 0);
    ASSERT_EQ(resize(alice, handle.file, 7 * kChunk + 1), 0);
    EXPECT_EQ(stat(handle.file).generation, 1U) << "one change";
    EXPECT_EQ(rig.store().tables().chunks().size(), 2U);
    EXPECT_EQ(read(alice, handle, 7 * kChunk, 1), "x");
    ASSERT_EQ(resize(alice, handle.file, 7 * kChunk), 0);
    EXPECT_EQ(rig.store().tables().chunks().size(), 1U);
    ASSERT_EQ(resize(alice, handle.file, 0), 0);
    EXPECT_EQ(rig.store().tables().chunks().size(), 0U);
}

TEST_F(ShardData, AFileThatIsBeingCutIsRemoved) {
    const Handle handle = make_open(alice, "file");
    for (std::uint64_t chunk = 0; chunk != 700; ++chunk) {
        ASSERT_EQ(write(alice, handle, 2 * chunk * kChunk, "x"), 0);
    }
    const CallToken cut = rig.send(alice, SetAttributesRequest{handle.file, handle.grant, kSetSize});
    rig.send(alice, CloseRequest{handle.file}, 1);
    rig.send(alice, RemoveRequest{kRoot, false, "file"}, 2);
    rig.settle();
    EXPECT_EQ(rig.error_of(cut), ENOENT) << "its file went meanwhile";
    EXPECT_EQ(error_of_stat(handle.file), ESTALE);
    EXPECT_EQ(rig.store().tables().chunks().size(), 0U);
}

TEST_F(ShardData, LongFilesAreRemovedOverTurnsAlsoAfterARestart) {
    for (const bool restarts : {false, true}) {
        const Handle handle = make_open(alice, "file");
        for (std::uint64_t chunk = 0; chunk != 700; ++chunk) {
            ASSERT_EQ(write(alice, handle, chunk * kChunk, "x"), 0);
        }
        ASSERT_EQ(close(alice, handle.file), 0);
        ASSERT_EQ(remove(alice, "file"), 0);
        EXPECT_GT(rig.store().tables().chunks().size(), 400U);
        EXPECT_EQ(walk("file"), FileId{});
        if (restarts) {
            rig.restart();
            EXPECT_GT(rig.store().tables().chunks().size(), 300U);
            rig.pass(seconds(11));
        }
        rig.settle();
        EXPECT_EQ(rig.store().tables().chunks().size(), 0U);
        EXPECT_EQ(error_of_stat(handle.file), ESTALE);
    }
}

}  // namespace
}  // namespace cairn::fs
