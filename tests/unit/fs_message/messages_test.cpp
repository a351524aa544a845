// Requests and answers as bytes: written messages are parsed, and other bytes are refused.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "fs/channel/segment.hpp"
#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"
#include "fs/rules/names.hpp"

namespace cairn::fs {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr FileId kFile{0x0102030405060708, 0x1112131415161718};
constexpr FileId kOther{0x2122232425262728, 0x3132333435363738};
constexpr std::uint32_t kHeadBytes = 12;

// A request of each kind, and the lengths of its fields.
struct Sample {
    Request request;
    std::uint32_t bytes;
};
std::vector<Sample> samples() {
    const Grant grant{6, 0x4142434445464748};
    return {{WalkRequest{kFile, 5, "name"}, 16 + 4 + 6},
            {CreateRequest{kFile, 0120777, 6, true, "name", "target"}, 16 + 4 + 4 + 1 + 6 + 8},
            {StatRequest{kFile}, 16},
            {OpenRequest{kFile, 4, 5}, 28},
            {CloseRequest{kFile}, 16},
            {ReadRequest{kFile, grant, 1U << 20U, 4096, 8192}, 16 + 12 + 8 + 8},
            {WriteRequest{kFile, grant, 1U << 20U, 7, 4096, 8192}, 16 + 12 + 16 + 8},
            {ExtendRequest{kFile, grant, 1U << 20U, 7}, 16 + 12 + 16},
            {ReserveRequest{kFile, grant, 4096}, 16 + 12 + 8},
            {SetAttributesRequest{kFile, grant, kSetAll, 0755, 1, 2, 3, -4, -5}, 16 + 12 + 16 + 24},
            {RemoveRequest{kFile, true, "name"}, 16 + 1 + 6},
            {ListRequest{kFile, 77}, 24},
            {RenameRequest{kFile, kOther, true, "name", "other"}, 32 + 1 + 6 + 7},
            {LinkRequest{kFile, kOther, "name"}, 32 + 6},
            {ReadLinkRequest{kFile}, 16},
            {StatFsRequest{}, 0},
            {SyncRequest{}, 0},
            {CensusRequest{CensusKind::Names, {3, kFile, 77}}, 1 + 28},
            {ScrubRequest{{3, kFile, 77}, 256}, 28 + 4}};
}

Bytes request_bytes(const Request& request, const RequestHead& head = {0, RequestHead::kVersion, 3, 99, 12}) {
    Bytes bytes(kRequestBytes);
    bytes.resize(put_request(bytes, head, request));
    return bytes;
}

TEST(Requests, AreReadAsTheyWereWritten) {
    ASSERT_EQ(samples().size(), std::variant_size_v<Request>);
    for (const Sample& sample : samples()) {
        SCOPED_TRACE(name_of(sample.request));
        const Bytes bytes = request_bytes(sample.request);
        ASSERT_EQ(bytes.size(), kHeadBytes + sample.bytes);
        const std::optional<ParsedRequest> parsed = parse_request(bytes);
        ASSERT_TRUE(parsed.has_value());
        EXPECT_EQ(parsed->request.index(), sample.request.index());
        EXPECT_EQ(parsed->head.operation, sample.request.index());
        EXPECT_EQ(parsed->head.shard, 3);
        EXPECT_EQ(parsed->head.sequence, 99U);
        EXPECT_EQ(parsed->head.table, 12U);
        EXPECT_EQ(request_bytes(parsed->request, parsed->head), bytes);
    }
}

TEST(Requests, HaveTheirFieldsInTheOrderOfTheFormat) {
    EXPECT_EQ(request_bytes(WalkRequest{{1, 2}, 5, "ab"}, {0, RequestHead::kVersion, 0x0304, 0x05060708, 9}),
              (Bytes{0, 1, 4, 3, 8, 7, 6, 5, 9, 0, 0, 0, 1, 0, 0, 0, 0,   0,
                     0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 'a', 'b'}));
    const Bytes write = request_bytes(WriteRequest{{1, 2}, {3, 4}, 5, 6, 7, 8});
    const Bytes fields(write.begin() + kHeadBytes, write.end());
    EXPECT_EQ(fields, (Bytes{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0,
                             0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0}));
}

TEST(Requests, AreRefusedWhenBytesLackOrAreTooMany) {
    for (const Sample& sample : samples()) {
        SCOPED_TRACE(name_of(sample.request));
        Bytes bytes = request_bytes(sample.request);
        for (std::size_t length = 0; length != bytes.size(); ++length) {
            EXPECT_FALSE(parse_request(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length))))
                << length;
        }
        bytes.push_back(0);
        EXPECT_FALSE(parse_request(bytes));
    }
}

TEST(Requests, OfAnotherVersionOrOperationAreRefused) {
    for (unsigned value = 0; value != 256; ++value) {
        Bytes bytes = request_bytes(SyncRequest{});
        bytes[1] = static_cast<std::uint8_t>(value);
        EXPECT_EQ(parse_request(bytes).has_value(), value == RequestHead::kVersion);
        bytes = request_bytes(SyncRequest{});
        bytes[0] = static_cast<std::uint8_t>(value);
        // Two kinds have no fields.
        EXPECT_EQ(parse_request(bytes).has_value(), value == 15 || value == 16) << value;
    }
}

TEST(Requests, HaveBooleansOfOneBit) {
    const Bytes sound = request_bytes(RemoveRequest{kFile, true, "name"});
    for (unsigned value = 0; value != 256; ++value) {
        Bytes bytes = sound;
        bytes[kHeadBytes + 16] = static_cast<std::uint8_t>(value);
        EXPECT_EQ(parse_request(bytes).has_value(), value < 2);
    }
}

TEST(Requests, ThatDoNotFitAreNotWritten) {
    for (const Sample& sample : samples()) {
        const Bytes whole = request_bytes(sample.request);
        for (std::size_t length = 0; length != whole.size(); ++length) {
            Bytes room(length);
            EXPECT_EQ(put_request(room, {}, sample.request), 0U);
        }
    }
    const std::string longest(0xffff, 'x');
    Bytes room(1U << 20U);
    EXPECT_NE(put_request(room, {}, WalkRequest{kFile, 0, longest}), 0U);
    EXPECT_EQ(put_request(room, {}, WalkRequest{kFile, 0, longest + "x"}), 0U) << "a length has 16 bits";
}

TEST(Requests, FitIntoAChannelWithTheLongestNamesThatThereAre) {
    const std::string name(kLongestName, 'n');
    const std::string target(kLongestPath, 't');
    EXPECT_FALSE(request_bytes(CreateRequest{kFile, 0, 0, true, name, target}).empty());
    EXPECT_FALSE(request_bytes(RenameRequest{kFile, kOther, true, name, name}).empty());
    Bytes room(kAnswerBytes);
    EXPECT_NE(put_answer(room, {}, WalkAnswer{true, true, true, 1, {}, target}), 0U);
    EXPECT_NE(put_answer(room, {}, TextAnswer{target}), 0U);
}

TEST(Requests, HaveNamesForCounters) {
    EXPECT_EQ(name_of(WalkRequest{}), "walk");
    EXPECT_EQ(name_of(SetAttributesRequest{}), "setattr");
    EXPECT_EQ(name_of(SyncRequest{}), "sync");
    EXPECT_EQ(name_of(ScrubRequest{}), "scrub");
}

// Checks that each answer is parsed as it was written, and refused if a byte is missing or added.
template <class Answer>
void read_back(const Answer& answer, std::uint32_t wanted_bytes) {
    Bytes bytes(kAnswerBytes);
    bytes.resize(put_answer(bytes, {0, 77}, answer));
    ASSERT_EQ(bytes.size(), 8 + wanted_bytes);
    Answer read;
    const std::optional<AnswerHead> head = parse_answer(bytes, read);
    ASSERT_TRUE(head.has_value());
    EXPECT_EQ(head->error, 0);
    EXPECT_EQ(head->table, 77U);
    Bytes again(bytes.size());
    EXPECT_EQ(put_answer(again, *head, read), bytes.size());
    EXPECT_EQ(again, bytes);
    for (std::size_t length = 0; length != bytes.size(); ++length) {
        EXPECT_FALSE(parse_answer(std::span(bytes).first(length), read)) << length;
        Bytes room(length);
        EXPECT_EQ(put_answer(room, {0, 77}, answer), 0U);
    }
    bytes.push_back(0);
    EXPECT_FALSE(parse_answer(bytes, read));
}

TEST(Answers, AreReadAsTheyWereWritten) {
    const Attributes attributes{kFile, 0100644, 1, 2, 3, 4, 5, -6, -7, -8, -9};
    read_back(WalkAnswer{true, false, true, 11, attributes, "target"}, 3 + 8 + 80 + 8);
    read_back(AttributesAnswer{attributes}, 80);
    read_back(OpenAnswer{attributes, 11}, 88);
    read_back(DataAnswer{1, true, 2, 3, 4}, 4 + 1 + 24);
    read_back(TextAnswer{"target"}, 8);
    read_back(StatFsAnswer{1, 2, 3, 4, 5, 6}, 48);
    read_back(EmptyAnswer{}, 0);
    Bytes bytes(kAnswerBytes);
    bytes.resize(put_answer(bytes, {}, AttributesAnswer{attributes}));
    AttributesAnswer answer;
    ASSERT_TRUE(parse_answer(bytes, answer));
    EXPECT_EQ(answer.attributes.id, kFile);
    EXPECT_EQ(answer.attributes.links, 3U);
    EXPECT_EQ(answer.attributes.size, 4U);
    EXPECT_EQ(answer.attributes.modified_ns, -6);
    EXPECT_EQ(answer.attributes.born_ns, -9);
}

TEST(Answers, OfAnErrorHaveNoFields) {
    Bytes bytes(kAnswerBytes);
    bytes.resize(put_error(bytes, {kErrorOtherShard, 5}));
    ASSERT_EQ(bytes.size(), 8U);
    DataAnswer answer;
    const std::optional<AnswerHead> head = parse_answer(bytes, answer);
    ASSERT_TRUE(head.has_value());
    EXPECT_EQ(head->error, kErrorOtherShard);
    EXPECT_EQ(head->table, 5U);
    bytes.push_back(0);
    EXPECT_FALSE(parse_answer(bytes, answer));
}

Bytes list_of(std::size_t room, std::uint32_t names, bool is_end, std::uint16_t& count) {
    Bytes bytes(room);
    ListWriter list(bytes, {0, 3});
    for (std::uint32_t i = 0; i != names; ++i) {
        const std::string name = "name" + std::to_string(i);
        if (!list.add({kFile, 0040000, i + 1, name})) {
            break;
        }
    }
    count = list.count();
    bytes.resize(list.finish(is_end));
    return bytes;
}

TEST(Lists, AreReadNameByName) {
    std::uint16_t count = 0;
    const Bytes bytes = list_of(kAnswerBytes, 3, true, count);
    ListReader reader(bytes);
    ASSERT_TRUE(reader.head().has_value());
    EXPECT_EQ(reader.head()->table, 3U);
    EXPECT_EQ(reader.facts().count, 3);
    EXPECT_TRUE(reader.facts().is_end);
    for (std::uint32_t i = 0; i != 3; ++i) {
        EXPECT_FALSE(reader.is_whole());
        const std::optional<ListedName> name = reader.next();
        ASSERT_TRUE(name.has_value());
        EXPECT_EQ(name->name, "name" + std::to_string(i));
        EXPECT_EQ(name->cursor, i + 1U);
        EXPECT_EQ(name->mode, 0040000U);
        EXPECT_EQ(name->child, kFile);
    }
    EXPECT_FALSE(reader.next().has_value());
    EXPECT_TRUE(reader.is_whole());
}

TEST(Lists, HaveAsManyNamesAsFit) {
    for (std::size_t room = 11; room != 200; ++room) {
        std::uint16_t count = 0;
        const Bytes bytes = list_of(room, 1000, false, count);
        EXPECT_EQ(count, (room - 11) / 35);  // 30 bytes plus a name of five
        EXPECT_LE(bytes.size(), room);
        ListReader reader(bytes);
        std::uint16_t read = 0;
        while (reader.next()) {
            ++read;
        }
        EXPECT_EQ(read, count);
        EXPECT_TRUE(reader.is_whole());
        EXPECT_FALSE(reader.facts().is_end);
    }
}

TEST(Censuses, AreReadThingByThing) {
    Bytes bytes(kAnswerBytes);
    CensusWriter writer(bytes, {0, 3});
    const CountedFile file{kFile, kOther, 0100644, 2, 77, true};
    EXPECT_TRUE(writer.add(file));
    EXPECT_TRUE(writer.add(file));
    const CensusCursor next{255, kOther, ~std::uint64_t{0}};
    bytes.resize(writer.finish({0, true, next, 5, 6}));
    ASSERT_EQ(bytes.size(), 8 + 2 + 1 + 28 + 8 + 2 * 49U);
    CensusReader reader(bytes);
    ASSERT_TRUE(reader.head().has_value());
    EXPECT_EQ(reader.facts().count, 2);
    EXPECT_TRUE(reader.facts().is_end);
    EXPECT_EQ(reader.facts().next, next);
    EXPECT_EQ(reader.facts().under_way, 5U);
    EXPECT_EQ(reader.facts().blocks, 6U);
    for (int i = 0; i != 2; ++i) {
        EXPECT_FALSE(reader.is_whole());
        const auto read = reader.next<CountedFile>();
        ASSERT_TRUE(read.has_value());
        EXPECT_EQ(read->id, kFile);
        EXPECT_EQ(read->parent, kOther);
        EXPECT_EQ(read->links, 2U);
        EXPECT_EQ(read->size, 77U);
        EXPECT_TRUE(read->is_open);
    }
    EXPECT_FALSE(reader.next<CountedFile>().has_value());
    EXPECT_TRUE(reader.is_whole());
    for (std::size_t length = 0; length != bytes.size(); ++length) {
        CensusReader part({bytes.data(), length});
        while (part.next<CountedFile>()) {
        }
        EXPECT_FALSE(part.is_whole()) << length;
    }
}

TEST(Censuses, HaveAsManyThingsAsFit) {
    Bytes bytes(47 + 3 * 24 + 23);
    CensusWriter writer(bytes, {0, 3});
    EXPECT_TRUE(writer.add(CountedChunk{kFile, 1, 2}));
    EXPECT_FALSE(writer.add(CountedName{kFile, kOther, 0, std::string_view("a name that is as long as the room")}));
    EXPECT_TRUE(writer.add(CountedChunk{kFile, 2, 2}));
    EXPECT_TRUE(writer.add(CountedChunk{kFile, 3, 2}));
    EXPECT_FALSE(writer.add(CountedChunk{kFile, 4, 2}));
    bytes.resize(writer.finish({}));
    CensusReader reader(bytes);
    for (std::uint32_t index = 1; index != 4; ++index) {
        EXPECT_EQ(reader.next<CountedChunk>()->index, index);
    }
    EXPECT_TRUE(reader.is_whole());
}

TEST(Lists, ThatEndTooEarlyOrGoOnAreNotWhole) {
    std::uint16_t count = 0;
    Bytes bytes = list_of(kAnswerBytes, 3, true, count);
    const auto is_whole = [](std::span<const std::uint8_t> list) {
        ListReader reader(list);
        while (reader.next()) {
        }
        EXPECT_FALSE(reader.next().has_value());
        return reader.is_whole();
    };
    ASSERT_TRUE(is_whole(bytes));
    for (std::size_t length = 0; length != bytes.size(); ++length) {
        EXPECT_FALSE(is_whole(std::span(bytes).first(length))) << length;
    }
    bytes.push_back(0);
    EXPECT_FALSE(is_whole(bytes));
    Bytes error(kAnswerBytes);
    error.resize(put_error(error, {2, 3}));
    ListReader reader(error);
    ASSERT_TRUE(reader.head().has_value());
    EXPECT_EQ(reader.head()->error, 2);
    EXPECT_FALSE(reader.next().has_value());
    EXPECT_TRUE(reader.is_whole());
}

}  // namespace
}  // namespace cairn::fs
