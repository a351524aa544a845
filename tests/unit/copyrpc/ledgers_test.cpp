// The rules of space and credits of copyrpc's rings: a block in use is not written to, an answer always has room, and
// neither end waits for ever.
#include <gtest/gtest.h>

#include <array>
#include <tuple>

#include "tests/unit/copyrpc/ring_model.hpp"

namespace cairn::copyrpc::test {
namespace {

// Both ends, and the messages on their way to each.
struct Pair {
    Pair(RingShape first, RingShape second, std::uint32_t receives, Flow flow)
        : ends{End(second, first, receives, flow), End(first, second, receives, flow)} {}
    // READs the other end's word. The word is on its way then.
    void ask(std::size_t who) { words[who].push_back(ends[1 - who].receive.word()); }
    // Takes a word that is on its way. Returns false if there is none.
    bool look(std::size_t who) {
        if (words[who].empty()) {
            return false;
        }
        EXPECT_TRUE(ends[who].look(words[who].front()));
        words[who].pop_front();
        return true;
    }

    std::array<End, 2> ends;
    std::array<std::deque<Flight>, 2> wires;        // to each end
    std::array<std::deque<ConsumerWord>, 2> words;  // words that the end has READ
};

struct Walk {
    std::uint64_t seed;
    std::uint32_t first_blocks;
    std::uint32_t second_blocks;
    std::uint32_t receives;
    bool both_call;
    bool small;
    bool leans;
    Flow flow;
};

class RandomWalk {
public:
    explicit RandomWalk(const Walk& walk)
        : walk_(walk),
          random_(walk.seed),
          pair_(RingShape(walk.first_blocks), RingShape(walk.second_blocks), walk.receives, walk.flow) {}

    void run() {
        for (int i = 0; i < 4000 && !broken_; ++i) {
            if (i % 100 == 0 && walk_.leans) {
                lean();
            }
            const std::uint32_t drawn = below(static_cast<std::uint32_t>(leaning_.size()));
            step(leaning_[drawn] / kSteps, leaning_[drawn] % kSteps);
        }
        settle();
    }

private:
    std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_() % limit); }

    // Makes each end do some things often and others seldom or never, for some time.
    void lean() {
        leaning_ = {below(2 * kSteps)};
        for (std::uint32_t what = 0; what < 2 * kSteps; ++what) {
            leaning_.insert(leaning_.end(), below(2) == 0 ? 0 : below(5), what);
        }
    }
    void step(std::size_t who, std::uint32_t what) {
        End& end = pair_.ends[who];
        switch (what) {
            case 0:
                if (who == 0 || walk_.both_call) {
                    call(end);
                }
                break;
            case 1:
                deliver(who);
                break;
            case 2:
                end.turn(pair_.wires[1 - who]);
                break;
            case 3:
                look(who);
                if (!end.kept.empty() && below(patience_) == 0) {
                    answer(end);
                }
                break;
            default:
                patience_ = below(200) == 0 ? 1 + below(12) : patience_;
                break;
        }
    }
    void call(End& end) {
        const RingShape ring = end.send.ring();
        const RingShape own = end.receive.ring();
        const std::uint32_t blocks = walk_.small ? 1 + below(2) : 1 + below(ring.message_max());
        const std::uint32_t charge = walk_.small ? 2 : 2 + below(own.charge_max() - 1);
        (void)end.call(blocks, charge);
        end.send.check();
    }
    void answer(End& end) {
        const auto which = below(static_cast<std::uint32_t>(end.kept.size()));
        end.answer(which, 1 + below(end.kept[which].charge - 1));
        end.send.check();
    }
    // Each end has one READ at a time, which takes its time.
    void look(std::size_t who) {
        if (walk_.flow == Flow::Read && below(2) == 0 && !pair_.look(who)) {
            pair_.ask(who);
        }
    }
    void deliver(std::size_t to) {
        if (pair_.wires[to].empty()) {
            return;
        }
        const Flight flight = pair_.wires[to].front();
        pair_.wires[to].pop_front();
        broken_ = !pair_.ends[to].take(flight, [this] { return below(3) == 0; });
        ASSERT_FALSE(broken_) << "seed " << walk_.seed;
    }
    // Answers and looks at both ends until nothing moves. Then all is answered, and the largest request fits.
    void settle() {
        const std::uint32_t before = pair_.ends[0].batches + pair_.ends[1].batches;
        for (int quiet = 0; quiet < 3 && !broken_; ++quiet) {
            for (std::size_t who : {0U, 1U}) {
                End& end = pair_.ends[who];
                while (!pair_.wires[who].empty() && !broken_) {
                    deliver(who);
                    quiet = 0;
                }
                while (!end.kept.empty()) {
                    answer(end);
                    quiet = 0;
                }
                end.turn(pair_.wires[1 - who]);
                settle_words(who);
            }
            ASSERT_LT(pair_.ends[0].batches + pair_.ends[1].batches - before, 5000U) << "seed " << walk_.seed;
        }
        for (End& end : pair_.ends) {
            ASSERT_EQ(end.answered, end.calls) << "seed " << walk_.seed;
            ASSERT_EQ(end.send.judge_request(end.send.ring().message_max(), end.receive.ring().charge_max()),
                      Room::Fits)
                << "seed " << walk_.seed;
        }
    }

    void settle_words(std::size_t who) {
        if (walk_.flow == Flow::Read) {
            while (pair_.look(who)) {
            }
            pair_.ask(who);
            (void)pair_.look(who);
        }
    }

    static constexpr std::uint32_t kSteps = 5;  // kinds of steps, at either end

    Walk walk_;
    std::mt19937_64 random_;
    std::vector<std::uint32_t> leaning_{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};  // the numbers to draw from: all equally often
    Pair pair_;
    std::uint32_t patience_ = 1;
    bool broken_ = false;
};

void walk_all(Flow flow) {
    std::uint64_t seed = 1;
    for (const std::uint32_t first : {128U, 256U, 2048U}) {
        for (const std::uint32_t second : {128U, 1024U}) {
            for (const std::uint32_t receives : {4U, 5U, 16U, 256U}) {
                for (const bool both : {false, true}) {
                    for (const bool small : {false, true}) {
                        for (int i = 0; i < 30 && !testing::Test::HasFatalFailure(); ++i) {
                            RandomWalk({seed++, first, second, receives, both, small, i % 2 == 1, flow}).run();
                        }
                    }
                }
            }
        }
    }
}

TEST(Ledgers, KeepTheRulesOnRandomWalks) {
    walk_all(Flow::Credit);
}

TEST(Ledgers, KeepTheRulesOnRandomWalksWithReads) {
    walk_all(Flow::Read);
}

// All actions of two ends, in all orders, in the smallest rings: one calls twice, the other once. A request has the
// largest size and charge, or the smallest. In each case they settle.
class AllOrders {
public:
    void run(Flow flow) {
        std::vector<Pair> todo{Pair(RingShape(16), RingShape(16), 4, flow)};
        while (!todo.empty() && !testing::Test::HasFatalFailure()) {
            const Pair pair = std::move(todo.back());
            todo.pop_back();
            if (!seen_.insert(key_of(pair)).second) {
                continue;
            }
            settle(pair);
            for (std::size_t who : {0U, 1U}) {
                follow(pair, who, todo);
            }
        }
    }
    [[nodiscard]] std::size_t states() const { return seen_.size(); }

private:
    static void follow(const Pair& pair, std::size_t who, std::vector<Pair>& todo) {
        for (const bool large : {false, true}) {
            const RingShape ring = pair.ends[who].send.ring();
            if (Pair next = pair; next.ends[who].calls < 2 - who &&
                                  next.ends[who].call(large ? ring.message_max() : 1, large ? ring.charge_max() : 2)) {
                todo.push_back(next);
            }
        }
        if (Pair next = pair; turned(next, who)) {
            todo.push_back(next);
        }
        if (Pair next = pair; delivered(next, who)) {
            todo.push_back(next);
        }
        for (std::size_t i = 0; i < pair.ends[who].kept.size(); ++i) {
            Pair next = pair;
            next.ends[who].answer(i, next.ends[who].kept[i].charge - 1);
            todo.push_back(next);
        }
        if (Pair next = pair; next.ends[who].send.flow() == Flow::Read) {
            if (!next.look(who)) {
                next.ask(who);
            }
            todo.push_back(next);
        }
    }
    static bool turned(Pair& pair, std::size_t who) {
        const std::uint32_t before = pair.ends[who].batches;
        pair.ends[who].turn(pair.wires[1 - who]);
        return pair.ends[who].batches != before;
    }
    static bool delivered(Pair& pair, std::size_t who) {
        if (pair.wires[who].empty()) {
            return false;
        }
        const Flight flight = pair.wires[who].front();
        pair.wires[who].pop_front();
        const bool sound = pair.ends[who].take(flight, [] { return false; });
        EXPECT_TRUE(sound);
        return sound;
    }
    static void settle(Pair pair) {
        int quiet = 0;
        for (int rounds = 0; rounds < 50 && quiet < 2; ++rounds) {
            ++quiet;
            for (std::size_t who : {0U, 1U}) {
                End& end = pair.ends[who];
                while (delivered(pair, who)) {
                    quiet = 0;
                }
                while (!end.kept.empty()) {
                    end.answer(0, end.kept[0].charge - 1);
                    quiet = 0;
                }
                end.turn(pair.wires[1 - who]);
                if (end.send.flow() == Flow::Read) {
                    (void)pair.look(who);
                    pair.ask(who);
                    (void)pair.look(who);
                }
            }
        }
        for (const End& end : pair.ends) {
            ASSERT_EQ(end.answered, end.calls);
            ASSERT_EQ(end.send.judge_request(2, end.receive.ring().charge_max()), Room::Fits);
        }
        ASSERT_TRUE(pair.wires[0].empty() && pair.wires[1].empty());
    }
    // Returns the state on which all future actions of the ends depend.
    static std::vector<std::uint64_t> key_of(const Pair& pair) {
        std::vector<std::uint64_t> key;
        for (std::size_t who : {0U, 1U}) {
            const End& end = pair.ends[who];
            key.insert(key.end(), {end.send.in_flight(), end.send.promised(), end.send.balance(), end.send.receives(),
                                   end.receive.unreturned(), end.receive.receives_used(), end.receive.next().block,
                                   end.calls, end.answered, end.receive.word().blocks, end.receive.word().batches});
            for (const ConsumerWord& word : pair.words[who]) {
                key.insert(key.end(), {word.blocks, word.batches});
            }
            add(key, end.kept);
            add(key, end.late);
            add(key, end.placed());
            key.push_back(pair.wires[who].size());
            for (const Flight& flight : pair.wires[who]) {
                key.insert(key.end(), {flight.batch.begin.block, flight.returned, flight.granted, flight.receives});
                add(key, flight.messages);
            }
        }
        return key;
    }
    template <class Messages>
    static void add(std::vector<std::uint64_t>& key, const Messages& messages) {
        key.push_back(messages.size());
        for (const Message& message : messages) {
            key.insert(key.end(), {message.answer, message.call, message.blocks, message.charge, message.at.block});
        }
    }

    std::set<std::vector<std::uint64_t>> seen_;
};

TEST(Ledgers, SettleAfterAllOrdersOfThreeCalls) {
    AllOrders orders;
    orders.run(Flow::Credit);
    EXPECT_GT(orders.states(), 10000U);
}

TEST(Ledgers, SettleAfterAllOrdersOfThreeCallsWithReads) {
    AllOrders orders;
    orders.run(Flow::Read);
    EXPECT_GT(orders.states(), 10000U);
}

}  // namespace
}  // namespace cairn::copyrpc::test
