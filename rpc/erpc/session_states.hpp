// What each control message of a server means to its client, by the session's state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rpc/erpc/control.hpp"
#include "rpc/erpc/session.hpp"

namespace cairn::erpc {

enum class ControlVerdict : std::uint8_t {
    Ignore,
    TakeChallenge,  // connect again, with its cookie
    Establish,
    EndRefused,
    EndDisconnected,  // as we asked for
    EndLost,          // the server has no such session any more
    HearPong,
    EndRequest,  // a request is not answered
};

// `same_life`: the message names the same beginning of the request numbers as the session has. Another one means that
// the session ended there, and a late copy of our Connect opened it anew.
[[nodiscard]] constexpr ControlVerdict judge_control(SessionState state, ControlType type, bool same_life) noexcept {
    using enum ControlVerdict;
    struct Row {
        ControlType type;
        std::array<ControlVerdict, 3> by_state;  // Connecting, Connected, Disconnecting
    };
    constexpr std::array<Row, 6> kTable{{
        {ControlType::Challenge, {TakeChallenge, Ignore, Ignore}},
        {ControlType::Accepted, {Establish, Ignore, Ignore}},
        {ControlType::Refused, {EndRefused, Ignore, Ignore}},
        {ControlType::Disconnected, {EndLost, EndLost, EndDisconnected}},
        {ControlType::Pong, {HearPong, HearPong, HearPong}},
        {ControlType::RequestRefused, {EndRequest, EndRequest, EndRequest}},
    }};
    const bool names_its_life = type == ControlType::Accepted || type == ControlType::Pong;
    if (state == SessionState::Connected && names_its_life && !same_life) {
        return EndLost;
    }
    if (state != SessionState::Connecting && state != SessionState::Connected && state != SessionState::Disconnecting) {
        return Ignore;  // it is no client's
    }
    const auto column = static_cast<std::size_t>(state) - static_cast<std::size_t>(SessionState::Connecting);
    for (const Row& row : kTable) {
        if (row.type == type) {
            return row.by_state[column];
        }
    }
    return Ignore;  // what only clients say
}

}  // namespace cairn::erpc
