// Calls that are executed once, however often they come; and malformed calls.
#include "fs/shard/grants.hpp"
#include "tests/unit/fs_shard/shard_fixture.hpp"

namespace cairn::fs {
namespace {

class ShardOnce : public ShardTest {
protected:
    // Makes a call with these numbers of the client.
    template <class Answer>
    test::Told<Answer> repeat(test::ShardClient& client, const Request& request, std::uint32_t sequence,
                              std::uint32_t slot = 0) {
        return rig.wait<Answer>(rig.send_as(client, request, slot, sequence));
    }
    // Restarts every second time.
    void restart_if(bool wanted) {
        if (wanted) {
            rig.restart();
        }
    }
};

TEST_F(ShardOnce, AFileIsMadeOnce) {
    for (const bool restarts : {false, true}) {
        const std::string name = restarts ? "one" : "two";
        const CreateRequest request{kRoot, 0100600, kReadWrite, true, name, {}};
        const auto first = rig.ask<WalkAnswer>(alice, request);
        restart_if(restarts);
        const auto again = repeat<WalkAnswer>(alice, request, alice.sequence);
        EXPECT_EQ(again.error, 0);
        EXPECT_TRUE(again.answer.was_made && again.answer.is_opened);
        EXPECT_EQ(again.answer.attributes.id, first.answer.attributes.id);
        EXPECT_EQ(again.answer.proof, first.answer.proof);
        EXPECT_EQ(repeat<WalkAnswer>(alice, request, alice.sequence, 1).error, EEXIST) << "another slot";
        EXPECT_EQ(repeat<WalkAnswer>(bob, request, alice.sequence).error, EEXIST) << "another client";
        EXPECT_EQ(repeat<WalkAnswer>(alice, request, alice.sequence + 1).error, EEXIST) << "another call";
        alice.sequence += 1;
        EXPECT_EQ(rig.shard().counters().repeated, 1U);
    }
}

// The answer was lost, and the shard lives on, as with two machines.
TEST_F(ShardOnce, AFileIsOpenedAndClosedOnce) {
    const FileId file = make(alice, "file", kFileMode);
    const WalkRequest walk{kRoot, kReadWrite, "file"};
    const auto opened = rig.ask<WalkAnswer>(alice, walk);
    EXPECT_EQ(repeat<WalkAnswer>(alice, walk, alice.sequence).answer.proof, opened.answer.proof);
    const OpenRequest open{file, kReadWrite};
    EXPECT_EQ(rig.ask<OpenAnswer>(alice, open).error, 0);
    EXPECT_EQ(repeat<OpenAnswer>(alice, open, alice.sequence).error, 0);
    EXPECT_EQ(error_of(root, RemoveRequest{kRoot, false, "file"}), 0);
    EXPECT_EQ(close(alice, file), 0);
    EXPECT_EQ(repeat<EmptyAnswer>(alice, CloseRequest{file}, alice.sequence).error, 0) << "it is closed";
    EXPECT_EQ(rig.ask<AttributesAnswer>(alice, StatRequest{file}).error, 0) << "once, and it was opened twice";
    EXPECT_EQ(close(alice, file), 0);
    EXPECT_EQ(rig.ask<AttributesAnswer>(alice, StatRequest{file}).error, ESTALE) << "nobody has it open any more";
    EXPECT_EQ(close(alice, file), EBADF);
}

TEST_F(ShardOnce, ANameIsTakenMovedAndLinkedOnce) {
    for (const bool restarts : {false, true}) {
        const FileId file = make(alice, "file");
        const RemoveRequest remove_it{kRoot, false, "file"};
        ASSERT_EQ(error_of(alice, LinkRequest{file, kRoot, "link"}), 0);
        restart_if(restarts);
        const auto linked = repeat<AttributesAnswer>(alice, LinkRequest{file, kRoot, "link"}, alice.sequence);
        EXPECT_EQ(linked.error, 0);
        EXPECT_EQ(linked.answer.attributes.links, 2U);
        ASSERT_EQ(error_of(alice, remove_it), 0);
        restart_if(restarts);
        EXPECT_EQ(repeat<EmptyAnswer>(alice, remove_it, alice.sequence).error, 0);
        EXPECT_EQ(stat(file).links, 1U);
        const RenameRequest rename_it{kRoot, kRoot, false, "link", "moved"};
        ASSERT_EQ(error_of(alice, rename_it), 0);
        make(bob, "link");
        restart_if(restarts);
        EXPECT_EQ(repeat<EmptyAnswer>(alice, rename_it, alice.sequence).error, 0);
        EXPECT_EQ(walk("moved"), file);
        ASSERT_EQ(remove(root, "moved"), 0);
        ASSERT_EQ(remove(root, "link"), 0);
    }
}

TEST_F(ShardOnce, BytesAreReservedOnce) {
    const Handle handle = make_open(alice, "file");
    const ReserveRequest request{handle.file, handle.grant, 10};
    ASSERT_EQ(error_of(alice, request), 0);
    for (const bool restarts : {false, true}) {
        const auto first = rig.ask<DataAnswer>(alice, request);
        restart_if(restarts);
        const auto again = repeat<DataAnswer>(alice, request, alice.sequence);
        EXPECT_EQ(again.error, 0);
        EXPECT_EQ(again.answer.offset, first.answer.offset);
        EXPECT_TRUE(again.answer.is_home);
        EXPECT_EQ(stat(handle.file).size, first.answer.size);
    }
    EXPECT_EQ(stat(handle.file).size, 30U);
    rig.pass(seconds(11));  // no other client had the file open before the restart
    ASSERT_EQ(remove(alice, "file"), 0);
    EXPECT_EQ(repeat<DataAnswer>(alice, request, alice.sequence - 1).error, ESTALE) << "is no kept call any more";
}

TEST_F(ShardOnce, AnAnswerIsKeptUntilTheNextOfItsSlot) {
    const CreateRequest one{kRoot, kFileMode, 0, true, "one", {}};
    ASSERT_EQ(error_of(alice, one), 0);
    const std::uint32_t sequence = alice.sequence;
    make(alice, "two");
    EXPECT_EQ(repeat<WalkAnswer>(alice, one, sequence).error, EEXIST);
    EXPECT_EQ(rig.store().tables().answers().size(), 1U);
    EXPECT_EQ(repeat<WalkAnswer>(alice, CreateRequest{kRoot, kFileMode, 0, true, "three", {}}, 1, 1023).error, 0);
    EXPECT_EQ(rig.store().tables().answers().size(), 2U);
    EXPECT_EQ(remove(alice, "none"), ENOENT);
    EXPECT_EQ(rig.store().tables().answers().size(), 2U) << "refusals change nothing";
}

TEST_F(ShardOnce, AnswersGoWithTheirClient) {
    for (std::uint32_t slot = 0; slot != kMostSlotsOfClient; ++slot) {
        const std::string name = std::to_string(slot);
        rig.send(alice, CreateRequest{kRoot, kFileMode, 0, true, name, {}}, slot);
    }
    make(bob, "bobs");
    EXPECT_EQ(rig.store().tables().answers().size(), kMostSlotsOfClient + 1);
    rig.forget(alice);
    rig.settle();
    EXPECT_EQ(rig.store().tables().answers().size(), 1U);
    rig.restart();
    EXPECT_EQ(rig.store().tables().answers().size(), 1U);
    EXPECT_EQ(repeat<WalkAnswer>(alice, CreateRequest{kRoot, kFileMode, 0, true, "7", {}}, 8, 7).error, EEXIST);
}

// A repetition need not be the same call.
TEST_F(ShardOnce, ARepeatedCallGivesNoRightsToOtherFiles) {
    make(bob, "secret", 0100600);
    make(alice, "hers");
    const auto again = [&](std::string_view name, std::uint32_t mode, std::uint32_t rights) {
        return repeat<WalkAnswer>(alice, CreateRequest{kRoot, mode, rights, true, name, {}}, alice.sequence).error;
    };
    EXPECT_EQ(again("secret", kFileMode, kMayRead), ENOENT);
    EXPECT_EQ(again("secret", kFileMode, 0), ENOENT);
    EXPECT_EQ(again("hers", kFileMode, kReadWrite), 0);
    EXPECT_EQ(again("hers", kFileMode, kReadWrite | kMayExecute), EINVAL);
    ASSERT_EQ(remove(root, "hers"), 0);
    make(bob, "hers", 0100600);
    EXPECT_EQ(again("hers", kFileMode, kMayRead), ENOENT) << "her file is gone again";
    make(alice, "directory", kDirectoryMode);
    EXPECT_EQ(again("directory", kDirectoryMode, kMayRead), 0);
    EXPECT_EQ(again("directory", kFileMode, kMayWrite), EISDIR);
    ASSERT_EQ(rename(alice, "directory", "moved"), 0);
    EXPECT_EQ(again("secret", kFileMode, kMayRead), ENOENT);
    // The outcome of this call is a number that the client chose.
    const FileId secret = walk("secret");
    const Handle handle = make_open(alice, "sized");
    ASSERT_EQ(resize(alice, handle.file, secret.random & (kLongest - 1)), 0);
    ASSERT_EQ(error_of(alice, ReserveRequest{handle.file, handle.grant, 0}), 0);
    EXPECT_EQ(again("secret", kFileMode, kMayRead), ENOENT);
    EXPECT_EQ(repeat<DataAnswer>(alice, ReserveRequest{secret, handle.grant, 0}, alice.sequence).error, EBADF);
}

TEST_F(ShardOnce, WhoDoesNotComeBackAfterARestartIsGone) {
    make(alice, "one");
    make(bob, "two");
    rig.restart();
    rig.pass(milliseconds(9'990));
    EXPECT_EQ(rig.store().tables().answers().size(), 2U);
    rig.send_bytes(bob, {});
    rig.pass(milliseconds(20));
    EXPECT_EQ(rig.store().tables().answers().size(), 1U);
    EXPECT_NE(rig.store().tables().answer({bob.number, 0}), nullptr);
    rig.pass(seconds(100));
    EXPECT_EQ(rig.store().tables().answers().size(), 1U) << "who called has come back";
}

TEST_F(ShardOnce, WhatIsNoRequestIsAnsweredToo) {
    std::vector<std::uint8_t> bytes(kRequestBytes);
    const RequestHead head{0, RequestHead::kVersion, 0, 1, 1};
    bytes.resize(put_request(bytes, head, WalkRequest{kRoot, 0, "name"}));
    for (std::size_t length = 0; length <= bytes.size(); ++length) {
        const CallToken token = rig.send_bytes(alice, std::span(bytes).first(length));
        EXPECT_FALSE(rig.is_answered(token));
        rig.end_turn();
        EXPECT_EQ(rig.error_of(token), length == bytes.size() ? ENOENT : kErrorMalformed);
    }
    EXPECT_EQ(rig.shard().counters().malformed, bytes.size());
    EXPECT_EQ(rig.shard().counters().calls, bytes.size() + 1);
}

TEST_F(ShardOnce, CallsForAnotherShardAreNotHandled) {
    std::vector<std::uint8_t> bytes(kRequestBytes);
    bytes.resize(put_request(bytes, {0, RequestHead::kVersion, 1, 1, 1}, StatRequest{kRoot}));
    const CallToken token = rig.send_bytes(alice, bytes);
    rig.end_turn();
    EXPECT_EQ(rig.error_of(token), kErrorOtherShard);
    EXPECT_EQ(rig.shard().counters().other_shard, 1U);
}

// An answer has the epoch of the table, so that a client notices an older one.
TEST_F(ShardOnce, AnswersSayWhichTableTheShardHas) {
    rig.facts.table = SlotTable(2);
    rig.facts.table.give(7, 1);
    rig.restart();
    const CallToken token = rig.send(alice, StatRequest{kRoot});
    rig.end_turn();
    AttributesAnswer answer;
    EXPECT_EQ(parse_answer(rig.answers().at(token), answer)->table, 2U);
}

TEST_F(ShardOnce, NamesOfAnotherShardAreItsAlone) {
    const FileId directory = make(alice, "directory", kDirectoryMode);
    rig.facts.table = SlotTable(2);
    if (directory.home_slot() % 2 == 1) {
        rig.facts.table.give(directory.home_slot(), 0);
    }
    rig.restart();
    int others = 0;
    for (int i = 0; i != 64; ++i) {
        const std::string name = std::to_string(i);
        const int error = error_of(alice, CreateRequest{directory, kFileMode, 0, true, name, {}});
        EXPECT_TRUE(error == 0 || error == kErrorOtherShard);
        others += error == 0 ? 0 : 1;
        EXPECT_EQ(error_of(alice, WalkRequest{directory, 0, name}), error);
        EXPECT_EQ(error_of(alice, LinkRequest{kRoot, directory, name}), error == 0 ? EEXIST : error);
    }
    EXPECT_GT(others, 10);
    EXPECT_LT(others, 54);
}

TEST_F(ShardOnce, FilesOfAnotherShardAreItsAlone) {
    const Handle handle = make_open(alice, "file");
    rig.facts.table = SlotTable(2);
    if (handle.file.home_slot() % 2 == 0) {
        rig.facts.table.give(handle.file.home_slot(), 1);
    }
    for (const FileId& file : {FileId{handle.file.place + 1, 0}, FileId{std::uint64_t{kSlots} << 48U, 1}}) {
        if (file.home_slot() < kSlots) {
            rig.restart();
        }
        const int error = file.home_slot() < kSlots ? kErrorOtherShard : ESTALE;
        EXPECT_EQ(error_of_stat(file), error);
        EXPECT_EQ(open(alice, file).error, error);
        EXPECT_EQ(chmod(alice, file, 0600), error);
        EXPECT_EQ(error_of(alice, ReadLinkRequest{file}), error);
        EXPECT_EQ(error_of(alice, ExtendRequest{file, handle.grant, 1}), error);
        EXPECT_EQ(error_of(alice, ReserveRequest{file, handle.grant, 1}), error);
    }
}

TEST_F(ShardOnce, ChunksOfAnotherShardAreItsAlone) {
    const Handle handle = make_open(alice, "file", 0100666);
    rig.facts.table = SlotTable(2);
    if (handle.file.home_slot() % 2 == 1) {
        rig.facts.table.give(handle.file.home_slot(), 0);
        rig.facts.table.give(static_cast<std::uint16_t>((handle.file.home_slot() + 1) % kSlots), 1);
    }
    rig.restart();
    EXPECT_EQ(write(alice, handle, 0, "mine"), 0);
    EXPECT_EQ(error_of(alice, WriteRequest{handle.file, handle.grant, kChunk, 0, 4, 0}), kErrorOtherShard);
    EXPECT_EQ(error_of(alice, ReadRequest{handle.file, handle.grant, kChunk, 4, 0}), kErrorOtherShard);
    EXPECT_EQ(read(alice, handle, 0, 9), "mine");
    // If a file's home is elsewhere, this shard has only chunks of it.
    const auto home = static_cast<std::uint64_t>(handle.file.home_slot() + 1) % kSlots;
    const FileId elsewhere{home << 48U | 5U, 1};
    const Grants grants(rig.facts.cluster_key);
    const Grant grant = grants.give(elsewhere, alice.number, kReadWrite);
    std::memcpy(alice.data.data(), "text", 4);
    const std::uint64_t mine = (rig.facts.table.owner(static_cast<std::uint16_t>((home + 1) % kSlots)) == 0 ? 1U : 2U);
    const auto put = [&](std::uint64_t generation) {
        return rig.ask<DataAnswer>(alice, WriteRequest{elsewhere, grant, mine * kChunk, generation, 4, 0});
    };
    const auto written = put(3);
    ASSERT_EQ(written.error, 0);
    EXPECT_FALSE(written.answer.is_home);
    EXPECT_EQ(written.answer.size, 0U);
    EXPECT_EQ(put(2).error, kErrorOtherGeneration);
    EXPECT_EQ(put(4).error, 0);
    const auto got = rig.ask<DataAnswer>(alice, ReadRequest{elsewhere, grant, mine * kChunk, 9, 0});
    EXPECT_EQ(got.answer.bytes, 9U) << "where the file ends its home knows";
    EXPECT_EQ(std::memcmp(alice.data.data(), "text\0\0\0\0\0", 9), 0);
}

}  // namespace
}  // namespace cairn::fs
