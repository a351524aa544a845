// The meaning of a server's control message to its client, by the state of the session.
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
    EndDisconnected,  // the session ends, as we asked
    EndLost,          // the server has no such session any more
    HearPong,
    EndRequest,  // the server does not answer a request
};

// `same_life`: the message and the session have the same first request number. If not, the session ended at the server,
// and a late copy of our Connect opened a new one.
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
        return Ignore;  // not a client's session
    }
    const auto column = static_cast<std::size_t>(state) - static_cast<std::size_t>(SessionState::Connecting);
    for (const Row& row : kTable) {
        if (row.type == type) {
            return row.by_state[column];
        }
    }
    return Ignore;  // only clients send the other types
}

}  // namespace cairn::erpc
