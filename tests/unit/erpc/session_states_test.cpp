// What each control message means to a client, for every state of its session.
#include "rpc/erpc/session_states.hpp"

#include <gtest/gtest.h>

namespace cairn::erpc {
namespace {

using enum ControlVerdict;

struct Row {
    ControlType type;
    std::array<ControlVerdict, 3> by_state;  // Connecting, Connected, Disconnecting
};

TEST(JudgeControl, EveryMessageInEveryStateHasItsVerdict) {
    constexpr std::array<SessionState, 3> kStates{SessionState::Connecting, SessionState::Connected,
                                                  SessionState::Disconnecting};
    for (const Row& row :
         {Row{ControlType::Connect, {Ignore, Ignore, Ignore}}, Row{ControlType::Accepted, {Establish, Ignore, Ignore}},
          Row{ControlType::Refused, {EndRefused, Ignore, Ignore}},
          Row{ControlType::Disconnect, {Ignore, Ignore, Ignore}},
          Row{ControlType::Disconnected, {EndLost, EndLost, EndDisconnected}},
          Row{ControlType::Ping, {Ignore, Ignore, Ignore}}, Row{ControlType::Pong, {HearPong, HearPong, HearPong}},
          Row{ControlType::Challenge, {TakeChallenge, Ignore, Ignore}},
          Row{ControlType::RequestRefused, {EndRequest, EndRequest, EndRequest}}}) {
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
