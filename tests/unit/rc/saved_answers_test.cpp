// The answers that a responder keeps: the one that is due, and the one that a new answer replaces.
#include "lib/roce/rc/saved_answers.hpp"

#include <gtest/gtest.h>

namespace cairn::roce::rc {
namespace {

constexpr Psn kFirstSaved{0xfffffe};  // numbers wrap around

// Saves an answer of two packets.
void save(SavedAnswers& answers, std::uint32_t number) {
    SavedAnswer& saved = answers.add();
    saved.operation = wire::Operation::ReadRequest;
    saved.first = saved.from = saved.next = kFirstSaved.plus(2 * number);
    saved.last = saved.until = saved.first.next();
}
// Returns as many answers as there are places, all of them sent.
SavedAnswers full() {
    SavedAnswers answers;
    for (std::uint32_t number = 0; number < kMaxRdAtomic; ++number) {
        save(answers, number);
        answers.note_sent(answers.oldest_due());
    }
    return answers;
}

TEST(RcSavedAnswers, TheOldestOneIsDueFirst) {
    SavedAnswers answers;
    EXPECT_FALSE(answers.any_due());
    save(answers, 0);
    save(answers, 1);
    EXPECT_EQ(answers.oldest_due().first, kFirstSaved);
    answers.note_sent(answers.oldest_due());
    EXPECT_EQ(answers.oldest_due().first, kFirstSaved.plus(2));
    answers.note_sent(answers.oldest_due());
    EXPECT_FALSE(answers.any_due());
    answers.check_invariants(kFirstSaved.plus(4));
}

TEST(RcSavedAnswers, OneIsFoundByAnyOfItsPsnsWithinTheDepth) {
    SavedAnswers answers = full();
    const std::uint32_t newest = kMaxRdAtomic - 1;
    EXPECT_EQ(answers.find(kFirstSaved.plus(2 * newest + 1), 1)->first, kFirstSaved.plus(2 * newest));
    EXPECT_EQ(answers.find(kFirstSaved.plus(2 * newest - 1), 1), nullptr);
    EXPECT_EQ(answers.find(kFirstSaved.plus(2 * newest - 1), 2)->first, kFirstSaved.plus(2 * newest - 2));
    EXPECT_EQ(answers.find(kFirstSaved.plus(2 * newest + 2), kMaxRdAtomic), nullptr);
    EXPECT_EQ(SavedAnswers{}.find(Psn{}, kMaxRdAtomic), nullptr);
}

TEST(RcSavedAnswers, AnAnswerNeverSentIsNotPushedOutOneAskedForAgainIs) {
    SavedAnswers answers = full();
    EXPECT_FALSE(answers.is_full(kMaxRdAtomic));
    SavedAnswer& oldest = *answers.find(kFirstSaved, kMaxRdAtomic);
    answers.ask_again(oldest, kFirstSaved.next(), kFirstSaved.next());
    EXPECT_TRUE(answers.any_due());
    EXPECT_EQ(answers.oldest_due().next, kFirstSaved.next());
    EXPECT_FALSE(answers.is_full(kMaxRdAtomic));
    save(answers, kMaxRdAtomic);
    answers.check_invariants(kFirstSaved.plus(2 * kMaxRdAtomic + 2));
    EXPECT_EQ(answers.oldest_due().first, kFirstSaved.plus(2 * kMaxRdAtomic));
    EXPECT_TRUE(answers.is_full(1));
    EXPECT_TRUE(answers.is_full(0));
    answers.note_sent(answers.oldest_due());
    EXPECT_FALSE(answers.any_due());
}

TEST(RcSavedAnswers, ThoseBehindOneThatIsAskedForAgainStartAgain) {
    SavedAnswers answers = full();
    SavedAnswer& later = *answers.find(kFirstSaved.plus(8), kMaxRdAtomic);
    answers.ask_again(later, later.first, later.last);
    later.next = later.last;
    SavedAnswer& earlier = *answers.find(kFirstSaved.plus(2), kMaxRdAtomic);
    answers.ask_again(earlier, earlier.first, earlier.last);
    EXPECT_EQ(later.next, later.from);
    EXPECT_EQ(&answers.oldest_due(), &earlier);
    answers.drop_due();
    EXPECT_FALSE(answers.any_due());
    answers.check_invariants(kFirstSaved.plus(2 * kMaxRdAtomic));
}

}  // namespace
}  // namespace cairn::roce::rc
