// The calls that an endpoint accepts in each state, and the effect of events on its state.
#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "lib/rdmacm/state.hpp"

namespace cairn::rdmacm {
namespace {

constexpr int kStates = static_cast<int>(State::Count);

// Returns the states in which the answer to `call` is `answer`.
std::set<State> states_with(Call call, Answer answer) {
    std::set<State> found;
    for (int state = 0; state < kStates; ++state) {
        if (judge_call(static_cast<State>(state), call) == answer) {
            found.insert(static_cast<State>(state));
        }
    }
    return found;
}

using States = std::set<State>;

TEST(RdmacmStateTest, EachStepHasItsPlace) {
    EXPECT_EQ(states_with(Call::Bind, Answer::Go), States{State::Idle});
    EXPECT_EQ(states_with(Call::ResolveAddress, Answer::Go), States{State::Bound});
    EXPECT_EQ(states_with(Call::ResolveRoute, Answer::Go), States{State::AddressResolved});
    EXPECT_EQ(states_with(Call::Connect, Answer::Go), States{State::RouteResolved});
    EXPECT_EQ(states_with(Call::Listen, Answer::Go), States{State::Bound});
    EXPECT_EQ(states_with(Call::Accept, Answer::Go), States{State::Asked});
    EXPECT_EQ(states_with(Call::Establish, Answer::Go), States{State::Replied});
}

TEST(RdmacmStateTest, WhatIsNotBoundIsBoundFirst) {
    EXPECT_EQ(states_with(Call::ResolveAddress, Answer::BindFirst), States{State::Idle});
    EXPECT_EQ(states_with(Call::Listen, Answer::BindFirst), States{State::Idle});
    for (const Call call : {Call::Bind, Call::ResolveRoute, Call::Connect, Call::Accept, Call::Establish, Call::Reject,
                            Call::Disconnect, Call::Notify, Call::Join}) {
        EXPECT_TRUE(states_with(call, Answer::BindFirst).empty());
    }
}

TEST(RdmacmStateTest, ARequestOrAReplyMayBeRejectedUntilItIsSettled) {
    EXPECT_EQ(states_with(Call::Reject, Answer::Go), (States{State::Replied, State::Asked, State::Accepted}));
}

TEST(RdmacmStateTest, OnlyWhatNeverAskedCannotDisconnect) {
    EXPECT_EQ(states_with(Call::Disconnect, Answer::Go), (States{State::Connected, State::Disconnected}));
    EXPECT_EQ(states_with(Call::Disconnect, Answer::No),
              (States{State::Idle, State::Bound, State::AddressResolved, State::RouteResolved, State::Listening}));
}

TEST(RdmacmStateTest, APacketOfThePeerEstablishesWhatWasAccepted) {
    EXPECT_EQ(states_with(Call::Notify, Answer::Go), States{State::Accepted});
    EXPECT_EQ(states_with(Call::Notify, Answer::Connected), States{State::Connected});
}

TEST(RdmacmStateTest, GroupsAreForWhatHasAnAddressAndNoPeer) {
    EXPECT_EQ(states_with(Call::Join, Answer::Go), (States{State::Bound, State::AddressResolved}));
}

// All events in all states: the pairs that are not listed change nothing.
TEST(RdmacmStateTest, NewsMeanTheSameAsInAKernel) {
    const std::vector<std::tuple<State, News, Outcome>> kExpected{
        {State::Connecting, News::Replied, {State::Replied, Told::Response}},
        {State::Connecting, News::Established, {State::Connected, Told::Established}},
        {State::Connecting, News::Rejected, {State::Failed, Told::Rejected}},
        {State::Connecting, News::Unreachable, {State::Failed, Told::Unreachable}},
        {State::Replied, News::Rejected, {State::Failed, Told::Rejected}},
        {State::Replied, News::Unreachable, {State::Failed, Told::Unreachable}},
        {State::Asked, News::Rejected, {State::Failed, Told::Nothing}},
        {State::Asked, News::Unreachable, {State::Failed, Told::Nothing}},
        {State::Accepted, News::Established, {State::Connected, Told::Established}},
        {State::Accepted, News::Rejected, {State::Failed, Told::Rejected}},
        {State::Accepted, News::Unreachable, {State::Failed, Told::Unreachable}},
        {State::Accepted, News::DisconnectAsked, {State::Disconnected, Told::Disconnected}},
        {State::Connected, News::DisconnectAsked, {State::Disconnected, Told::Disconnected}},
        {State::Connected, News::Disconnected, {State::Disconnected, Told::Disconnected}},
        {State::Disconnected, News::Released, {State::Disconnected, Told::TimewaitExit}},
    };
    for (int state = 0; state < kStates; ++state) {
        for (int news = 0; news < static_cast<int>(News::Count); ++news) {
            Outcome expected{static_cast<State>(state), Told::Nothing};
            for (const auto& [of, when, outcome] : kExpected) {
                if (of == static_cast<State>(state) && when == static_cast<News>(news)) {
                    expected = outcome;
                }
            }
            EXPECT_EQ(judge_news(static_cast<State>(state), static_cast<News>(news)), expected) << state << ' ' << news;
        }
    }
}

// Both ends of a race may report the end of the connection: the program gets one event.
TEST(RdmacmStateTest, TheEndIsToldOnce) {
    State state = State::Connected;
    int told = 0;
    for (const News news : {News::DisconnectAsked, News::Disconnected, News::Released}) {
        const Outcome outcome = judge_news(state, news);
        state = outcome.next;
        told += outcome.told == Told::Disconnected ? 1 : 0;
    }
    EXPECT_EQ(told, 1);
    EXPECT_EQ(state, State::Disconnected);
}

}  // namespace
}  // namespace cairn::rdmacm
