// Batches between two ends: every request and every answer arrives once, in order, with its bytes. Invalid ones are
// named.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <vector>

#include "rpc/copyrpc/ring_end.hpp"

namespace cairn::copyrpc {
namespace {

constexpr std::uint32_t kReceives = 8;

std::vector<std::uint8_t> pattern(std::uint32_t of, std::uint32_t bytes) {
    std::vector<std::uint8_t> made(bytes);
    std::mt19937 random(of);
    std::generate(made.begin(), made.end(), [&random] { return static_cast<std::uint8_t>(random()); });
    return made;
}

std::optional<RingEnd::Taken> next_of(RingEnd& end) {
    RingEnd::Taken taken;
    return end.next(taken) ? std::optional(taken) : std::nullopt;
}

// An end with its memory. Its batches are copied at once, and announced in order.
struct End {
    End(std::uint32_t own_bytes, std::uint32_t mirror_bytes)
        : own(own_bytes), mirror(mirror_bytes), end(own, mirror, kReceives, kReceives) {}

    void send_to(End& peer) {
        while (const std::optional<RingWrite> write = end.next_write()) {
            std::copy_n(mirror.begin() + write->offset, write->bytes, peer.own.begin() + write->offset);
            peer.came.push_back(write->immediate);
        }
    }
    bool call(std::uint32_t number, std::uint32_t bytes, std::uint32_t answer_bytes,
              std::optional<Extension> extension = {}) {
        if (end.judge_request(bytes, extension.has_value(), answer_bytes) != Room::Fits) {
            return false;
        }
        const std::vector<std::uint8_t> payload = pattern(number, bytes);
        Message request;
        request.call = number;
        request.type = static_cast<std::uint8_t>(number);
        request.extension = extension;
        request.payload = payload;
        end.put_request(request, answer_bytes);
        return true;
    }

    std::vector<std::uint8_t> own;
    std::vector<std::uint8_t> mirror;
    RingEnd end;
    std::deque<std::uint32_t> came;  // immediates
};

struct Kept {
    std::uint32_t call;
    std::uint16_t charge;
    Held held;
    std::span<const std::uint8_t> payload;
};

class RingEnds : public testing::Test {
protected:
    // Reads one batch at the server, which keeps the requests.
    void serve_one() {
        ASSERT_FALSE(server.end.open(BatchImmediate::parse(server.came.front())).has_value());
        server.came.pop_front();
        while (const std::optional<RingEnd::Taken> taken = next_of(server.end)) {
            ASSERT_FALSE(taken->message.answer);
            EXPECT_EQ(taken->message.type, static_cast<std::uint8_t>(taken->message.call));
            EXPECT_EQ(taken->message.call, ++served) << "out of order";
            kept.push_back({taken->message.call, taken->message.charge, taken->held, taken->message.payload});
        }
        ASSERT_FALSE(server.end.breach().has_value());
    }
    // Answers a kept request with the longest answer, whose bytes are derived from its number.
    void answer(std::size_t which) {
        const Kept request = kept[which];
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(which));
        EXPECT_TRUE(std::ranges::equal(request.payload,
                                       pattern(request.call, static_cast<std::uint32_t>(request.payload.size()))));
        server.end.release(request.held);
        const std::vector<std::uint8_t> payload = pattern(~request.call, Message::answer_max(request.charge));
        Message message;
        message.answer = true;
        message.call = request.call;
        message.payload = payload;
        server.end.put_answer(message, request.charge);
    }
    void take_answers() {
        while (!client.came.empty()) {
            ASSERT_FALSE(client.end.open(BatchImmediate::parse(client.came.front())).has_value());
            client.came.pop_front();
            while (const std::optional<RingEnd::Taken> taken = next_of(client.end)) {
                ASSERT_TRUE(taken->message.answer);
                ASSERT_EQ(charges.count(taken->message.call), 1U);
                client.end.on_answered(charges[taken->message.call]);
                charges.erase(taken->message.call);
                const auto bytes = static_cast<std::uint32_t>(taken->message.payload.size());
                EXPECT_TRUE(std::ranges::equal(taken->message.payload, pattern(~taken->message.call, bytes)));
            }
            ASSERT_FALSE(client.end.breach().has_value());
        }
    }
    bool call(std::uint32_t bytes, std::uint32_t answer_bytes, std::optional<Extension> extension = {}) {
        if (!client.call(calls + 1, bytes, answer_bytes, extension)) {
            return false;
        }
        charges[++calls] = Message::charge_for(answer_bytes);
        return true;
    }

    End client{4096, 8192};
    End server{8192, 4096};
    std::vector<Kept> kept;
    std::map<std::uint32_t, std::uint32_t> charges;
    std::uint32_t calls = 0;
    std::uint32_t served = 0;
};

TEST_F(RingEnds, CarryEachMessageOnceWithItsBytes) {
    std::mt19937 random(1);
    for (int i = 0; i < 20000 && !HasFatalFailure(); ++i) {
        switch (random() % 6) {
            case 0:
                (void)call(static_cast<std::uint32_t>(random() % 400), static_cast<std::uint32_t>(random() % 500),
                           random() % 4 == 0 ? std::optional<Extension>(Extension{7, 8}) : std::nullopt);
                break;
            case 1:
                client.send_to(server);
                break;
            case 2:
                if (!server.came.empty()) {
                    serve_one();
                }
                break;
            case 3:
                server.send_to(client);
                break;
            case 4:
                take_answers();
                break;
            default:
                if (!kept.empty()) {
                    answer(random() % kept.size());
                }
                break;
        }
    }
    for (int i = 0; i < 20 && !HasFatalFailure(); ++i) {
        client.send_to(server);
        while (!server.came.empty() && !HasFatalFailure()) {
            serve_one();
        }
        while (!kept.empty()) {
            answer(0);
        }
        server.send_to(client);
        take_answers();
    }
    EXPECT_TRUE(charges.empty());
    EXPECT_GT(calls, 1000U);
}

TEST_F(RingEnds, ManyMessagesAreOneBatch) {
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(call(32, 32));
    }
    client.send_to(server);
    ASSERT_EQ(server.came.size(), 1U);
    EXPECT_EQ(BatchImmediate::parse(server.came.front()).blocks, 1U + 5 * 2);
    serve_one();
    EXPECT_EQ(kept.size(), 5U);
}

TEST_F(RingEnds, NothingLeavesWithoutNewsOrMessages) {
    EXPECT_FALSE(client.end.next_write().has_value());
    ASSERT_TRUE(call(32, 32));
    client.send_to(server);
    EXPECT_FALSE(client.end.next_write().has_value());
    serve_one();
    server.send_to(client);
    EXPECT_TRUE(client.came.empty()) << "a block that is free again is no news yet";
}

TEST_F(RingEnds, TheExtensionAndTheOutcomeArrive) {
    ASSERT_TRUE(call(10, 20, Extension{0x123456789abcdef0U, 77}));
    client.send_to(server);
    ASSERT_FALSE(server.end.open(BatchImmediate::parse(server.came.front())).has_value());
    const std::optional<RingEnd::Taken> taken = next_of(server.end);
    ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(taken->message.extension, (Extension{0x123456789abcdef0U, 77}));
    EXPECT_FALSE(next_of(server.end).has_value());
    Message refused;
    refused.answer = true;
    refused.outcome = Outcome::Refused;
    server.end.release(taken->held);
    server.end.put_answer(refused, taken->message.charge);
    server.send_to(client);
    ASSERT_FALSE(client.end.open(BatchImmediate::parse(client.came.front())).has_value());
    const std::optional<RingEnd::Taken> answered = next_of(client.end);
    ASSERT_TRUE(answered.has_value());
    EXPECT_EQ(answered->message.outcome, Outcome::Refused);
    EXPECT_TRUE(answered->message.payload.empty());
}

// Sends a batch of two requests of 32 bytes; `spoil` changes its bytes in the server's ring.
template <class Spoil>
std::optional<Breach> breach_of(Spoil&& spoil) {
    End client{4096, 4096};
    End server{4096, 4096};
    EXPECT_TRUE(client.call(1, 32, 32) && client.call(2, 32, 32));
    client.send_to(server);
    spoil(server.own);
    std::optional<Breach> breach = server.end.open(BatchImmediate::parse(server.came.front()));
    if (!breach) {
        while (next_of(server.end)) {
        }
        breach = server.end.breach();
    }
    return breach;
}

TEST(RingEndsApart, NameWhatIsWrongWithABatch) {
    struct Case {
        std::size_t at;
        std::uint8_t octet;
        std::optional<Breach> breach;
    };
    constexpr std::size_t kFirst = 32;
    constexpr std::size_t kSecond = 96;
    for (const Case& spoilt :
         {Case{0, 2, Breach::BadHeader}, Case{2, 1, Breach::BadHeader}, Case{3, 1, Breach::BadHeader},
          Case{5, 1, Breach::BadMessage}, Case{5, 3, Breach::BadMessage}, Case{5, 0, Breach::BadMessage},
          Case{7, 1, Breach::BadCredit}, Case{11, 1, Breach::BadCredit}, Case{15, 65, Breach::BadCredit},
          Case{31, 9, std::nullopt}, Case{kFirst + 4, 1, Breach::Overdrawn}, Case{kFirst + 5, 1, Breach::Overdrawn},
          Case{kFirst + 7, 2, Breach::BadMessage}, Case{kFirst + 8, 1, Breach::BadMessage},
          Case{kFirst + 11, 200, Breach::BadMessage}, Case{kFirst + 11, 0, Breach::BadMessage},
          Case{kSecond + 11, 53, Breach::BadMessage}, Case{kSecond + 11, 52, std::nullopt},
          Case{kSecond, 0x80, std::nullopt}}) {
        const auto breach = breach_of([&spoilt](std::vector<std::uint8_t>& ring) { ring[spoilt.at] = spoilt.octet; });
        EXPECT_EQ(breach, spoilt.breach) << "octet " << spoilt.at;
    }
}

TEST(RingEndsApart, AnAnswerHasAnOutcomeAndNoExtension) {
    std::array<std::uint8_t, 64> room{};
    Message answer;
    answer.answer = true;
    answer.call = 5;
    (void)answer.emit(room);
    ASSERT_TRUE(Message::parse(room).has_value());
    room[6] = static_cast<std::uint8_t>(Outcome::Count);
    EXPECT_FALSE(Message::parse(room).has_value());
    room[6] = 0;
    room[7] = Message::kExtended;
    EXPECT_FALSE(Message::parse(room).has_value());
}

TEST(RingEndsApart, ALongMessageSaysWhereItLies) {
    std::array<std::uint8_t, 64> room{};
    Message request;
    request.elsewhere = Place{0x123456789a, Rkey{77}, 5000};
    request.room = Place{0x23456789ab, Rkey{78}, 6000};
    EXPECT_EQ(request.blocks(), 2U);
    (void)request.emit(room);
    std::optional<Message> read = Message::parse(room);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->elsewhere, request.elsewhere);
    EXPECT_EQ(read->room, request.room);
    EXPECT_EQ(read->blocks(), 2U);
    EXPECT_FALSE(Message::parse(std::span(room).first(43)).has_value());
    room[11] = 1;
    EXPECT_FALSE(Message::parse(room).has_value()) << "it has a payload, too";
    Message answer;
    answer.answer = true;
    answer.written = 5000;
    (void)answer.emit(room);
    read = Message::parse(room);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->written, 5000U);
    EXPECT_EQ(read->blocks(), 1U);
}

TEST(RingEndsApart, AMessageHasNothingOfTheOneThatWasReadBefore) {
    std::array<std::uint8_t, 96> first{};
    Message rich;
    rich.extension = Extension{7, 8};
    rich.elsewhere = Place{0x123456789a, Rkey{77}, 5000};
    rich.room = Place{0x23456789ab, Rkey{78}, 6000};
    (void)rich.emit(first);
    std::array<std::uint8_t, 32> second{};
    (void)Message{}.emit(second);
    Message read;
    ASSERT_TRUE(read.read(first));
    EXPECT_TRUE(read.extension && read.elsewhere && read.room);
    ASSERT_TRUE(read.read(second));
    EXPECT_FALSE(read.extension || read.elsewhere || read.room);
    EXPECT_EQ(read.written, 0U);
    EXPECT_TRUE(read.payload.empty());
}

TEST(RingEndsApart, APlaceIsMemoryOfABoundedLength) {
    EXPECT_TRUE((Place{0, Rkey{}, 1}).is_sound(1));
    EXPECT_FALSE((Place{0, Rkey{}, 2}).is_sound(1));
    EXPECT_FALSE((Place{5, Rkey{}, 0}).is_sound(1));
    EXPECT_FALSE((Place{~std::uint64_t{0}, Rkey{}, 1}).is_sound(1));
    EXPECT_FALSE((Place{~std::uint64_t{0}, Rkey{}, 2}).is_sound(2));
    EXPECT_TRUE((Place{~std::uint64_t{0} - 1, Rkey{}, 1}).is_sound(1));
}

TEST(RingEndsApart, AMessageLacksNoByte) {
    std::array<std::uint8_t, 64> room{};
    const std::vector<std::uint8_t> payload = pattern(1, 20);
    Message request;
    request.extension = Extension{};
    request.payload = payload;
    const std::span<std::uint8_t> at = request.emit(room);
    EXPECT_EQ(at.data(), room.data() + 28);
    for (std::size_t bytes = 0; bytes < 48; ++bytes) {
        EXPECT_FALSE(Message::parse(std::span(room).first(bytes)).has_value()) << bytes;
    }
    EXPECT_TRUE(Message::parse(std::span(room).first(48)).has_value());
}

TEST(RingEndsApart, AChargeHasRoomForItsAnswer) {
    for (const std::uint32_t bytes : {0U, 1U, 20U, 21U, 52U, 53U, 1000U}) {
        const std::uint32_t charge = Message::charge_for(bytes);
        EXPECT_GE(Message::answer_max(charge), bytes);
        EXPECT_LT(Message::answer_max(charge), bytes + kBlockBytes);
        EXPECT_EQ(Message::charge_for(Message::answer_max(charge)), charge);
    }
}

}  // namespace
}  // namespace cairn::copyrpc
