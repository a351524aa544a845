// The effect of each control message on a client, for every state of its session.
#include "rpc/erpc/session_states.hpp"

#include <gtest/gtest.h>

namespace cairn::erpc {
namespace {

using enum ControlVerdict;

struct StateRow {
    ControlType type;
    std::array<ControlVerdict, 3> by_state;  // Connecting, Connected, Disconnecting
};

TEST(JudgeControl, EveryMessageInEveryStateHasItsVerdict) {
    constexpr std::array<SessionState, 3> kStates{SessionState::Connecting, SessionState::Connected,
                                                  SessionState::Disconnecting};
    for (const StateRow& row : {StateRow{ControlType::Connect, {Ignore, Ignore, Ignore}},
                                StateRow{ControlType::Accepted, {Establish, Ignore, Ignore}},
                                StateRow{ControlType::Refused, {EndRefused, Ignore, Ignore}},
                                StateRow{ControlType::Disconnect, {Ignore, Ignore, Ignore}},
                                StateRow{ControlType::Disconnected, {EndLost, EndLost, EndDisconnected}},
                                StateRow{ControlType::Ping, {Ignore, Ignore, Ignore}},
                                StateRow{ControlType::Pong, {HearPong, HearPong, HearPong}},
                                StateRow{ControlType::Challenge, {TakeChallenge, Ignore, Ignore}},
                                StateRow{ControlType::RequestRefused, {EndRequest, EndRequest, EndRequest}}}) {
        for (std::size_t i = 0; i < kStates.size(); ++i) {
            EXPECT_EQ(judge_control(kStates[i], row.type, true), row.by_state[i])
                << static_cast<int>(row.type) << " in state " << i;
        }
        EXPECT_EQ(judge_control(SessionState::Free, row.type, true), Ignore);
        EXPECT_EQ(judge_control(SessionState::Serving, row.type, true), Ignore);
    }
}

TEST(JudgeControl, AnotherLifeOfTheSessionEndsIt) {
    EXPECT_EQ(judge_control(SessionState::Connected, ControlType::Pong, false), EndLost);
    EXPECT_EQ(judge_control(SessionState::Connected, ControlType::Accepted, false), EndLost);
    EXPECT_EQ(judge_control(SessionState::Connecting, ControlType::Accepted, false), Establish);
    EXPECT_EQ(judge_control(SessionState::Connected, ControlType::Disconnected, false), EndLost);
    EXPECT_EQ(judge_control(SessionState::Connected, ControlType::RequestRefused, false), EndRequest);
}

}  // namespace
}  // namespace cairn::erpc
