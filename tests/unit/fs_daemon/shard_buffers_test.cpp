// Data in a client's own buffers, which a shard reads and writes there.
#include <sched.h>

#include <atomic>

#include "tests/support/process.hpp"
#include "tests/unit/fs_daemon/tenant_fixture.hpp"

namespace cairn::fs {
namespace {

class ShardTenantBuffers : public ShardTenantTest {
protected:
    static constexpr std::uint32_t kBytes = 64U << 10U;
    static constexpr std::uint32_t kPiece = 10'000;  // whole blocks, and parts of blocks at both ends

    void SetUp() override {
        ASSERT_TRUE(buffers->make(kBytes).ok());
        const auto person = std::make_shared<const Person>(Person{0, 0, 1});
        tenant->open_channel({kClient, 0, person, Segment::create(kShape).value(), buffers});
        turn();
        channel = std::make_unique<Channel>(heard.back());
        heard.clear();
        const auto made =
            call<WalkAnswer>(*channel, CreateRequest{kRoot, S_IFREG | 0600, kReadWrite, true, "file", ""});
        file = made.attributes.id;
        grant = {kReadWrite, made.proof};
    }
    [[nodiscard]] WriteRequest write_from(std::uint32_t at, std::uint32_t bytes) const {
        return {file, grant, 100, 0, bytes, at};
    }
    [[nodiscard]] ReadRequest read_to(std::uint32_t at, std::uint32_t bytes) const {
        return {file, grant, 100, bytes, at};
    }
    int error_of_call(const Request& request) {
        const std::uint32_t slot = ask(*channel, request);
        for (int i = 0; i != 100 && !channel->end.answer(slot); ++i) {
            turn();
        }
        AnswerHead head;
        FieldReader in(*channel->end.answer(slot));
        AnswerHead::fields(in, head);
        channel->end.give_back(slot);
        return head.error;
    }

    static constexpr std::uint32_t kReadWrite = kMayRead | kMayWrite;
    std::shared_ptr<ClientBuffers> buffers = std::make_shared<ClientBuffers>();
    std::unique_ptr<Channel> channel;
    FileId file{};
    Grant grant{};
};

TEST_F(ShardTenantBuffers, AreReadFromAndWrittenTo) {
    const std::span<std::uint8_t> memory = buffers->memory();
    for (std::uint32_t i = 0; i != kPiece; ++i) {
        memory[5000 + i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    }
    EXPECT_EQ(call<DataAnswer>(*channel, write_from(kBuffersAt + 5000, kPiece)).bytes, kPiece);
    EXPECT_EQ(call<DataAnswer>(*channel, read_to(kBuffersAt + 40'000, kPiece)).bytes, kPiece);
    EXPECT_TRUE(std::ranges::equal(memory.subspan(5000, kPiece), memory.subspan(40'000, kPiece)));
    EXPECT_EQ(memory[39'999], 0);
    EXPECT_EQ(memory[40'000 + kPiece], 0);
}

TEST_F(ShardTenantBuffers, NothingBeyondThemIsTouched) {
    const std::uint32_t end = kBuffersAt + kBytes;
    EXPECT_EQ(error_of_call(write_from(end - kPiece, kPiece)), 0);
    const std::uint32_t slots = kShape.slots * kShape.data_bytes;
    for (const std::uint32_t at : {end - kPiece + 1, end, end + 1, ~0U, ~0U - kPiece + 1, kBuffersAt - 1,
                                   kBuffersAt - kPiece, slots - kPiece + 1, slots}) {
        EXPECT_EQ(error_of_call(write_from(at, kPiece)), EINVAL) << at;
        EXPECT_EQ(error_of_call(read_to(at, kPiece)), EINVAL) << at;
    }
    EXPECT_EQ(error_of_call(read_to(slots - kPiece, kPiece)), 0);
}

TEST_F(ShardTenantBuffers, OfAnotherClientAreNotReached) {
    const auto other = open(kClient + 1, 0);
    const auto opened = call<OpenAnswer>(*other, OpenRequest{file, kReadWrite});
    const std::uint32_t slot = ask(*other, WriteRequest{file, {kReadWrite, opened.proof}, 0, 0, 100, kBuffersAt});
    turn();
    AnswerHead head;
    FieldReader in(*other->end.answer(slot));
    AnswerHead::fields(in, head);
    EXPECT_EQ(head.error, EINVAL) << "it has none";
}

TEST_F(ShardTenantBuffers, StayWhileACallMayNameThem) {
    SetAttributesRequest cut = long_file(*channel);
    cut.size = 0;
    (void)ask(*channel, cut);
    turn();
    ASSERT_TRUE(tenant->is_unanswered());
    const std::weak_ptr<ClientBuffers> watched = buffers;
    buffers.reset();
    tenant->drain(kClient);
    turn();
    EXPECT_FALSE(watched.expired()) << "a call is unanswered";
    for (int i = 0; i != 10'000 && told(ShardNews::What::Drained) == 0; ++i) {
        turn();
    }
    EXPECT_EQ(told(ShardNews::What::Drained), 1);
    EXPECT_TRUE(watched.expired());
}

// A checksum is that of the stored bytes, whatever the client writes to its memory a moment later.
TEST_F(ShardTenantBuffers, AClientThatScribblesSpoilsNoBlock) {
    const std::span<std::uint8_t> memory = buffers->memory().first(kPiece);
    const cairn::test::Process scribbler([memory] {
        for (std::uint8_t byte = 1;; ++byte) {
            std::ranges::fill(memory, byte);
            std::atomic_ref(memory.back()).store(byte, std::memory_order_release);  // or compilers leave the rest out
        }
    });
    while (std::atomic_ref(memory.back()).load(std::memory_order_relaxed) == 0) {
        sched_yield();
    }
    for (int i = 0; i != 300; ++i) {
        ASSERT_EQ(error_of_call(write_from(kBuffersAt, kPiece)), 0);
        ASSERT_EQ(error_of_call(read_to(kBuffersAt + 40'000, kPiece)), 0);
    }
    EXPECT_EQ(counted(TenantCounter::Damaged), 0U);
}

}  // namespace
}  // namespace cairn::fs
