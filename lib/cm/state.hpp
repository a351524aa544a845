// The states of a connection, and the meaning of each message in them (IBTA vol. 1, 12.9).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cairn::cm {

enum class State : std::uint8_t {
    ReqSent,     // active: REQ sent
    MraReqRcvd,  // active: the peer asked for time
    RepRcvd,     // active: the user has to call ready()
    MraRepSent,  // active: as RepRcvd, and the peer was asked for time
    ReqRcvd,     // passive: the user has to accept or reject
    MraReqSent,  // passive: as ReqRcvd, and the peer was asked for time
    RepSent,     // passive: REP sent
    MraRepRcvd,  // passive: the peer asked for time
    Established,
    DreqSent,
    DreqRcvd,  // the user has to disconnect
    TimeWait,  // until neither packets nor copies of a refused request can come any more
    Ended,     // only its events are left
    Count,
};

// Returns true for a peer's request whose connection is not established yet.
[[nodiscard]] constexpr bool is_half_open(State state) noexcept {
    return state == State::ReqRcvd || state == State::MraReqSent || state == State::RepSent ||
           state == State::MraRepRcvd;
}

enum class Message : std::uint8_t { Req, Mra, Rej, Rep, Rtu, Dreq, Drep, Count };

enum class Verdict : std::uint8_t {
    Unexpected,  // does not fit the state
    Duplicate,   // a copy; nothing to do
    Heard,       // a copy that peers send unasked; nothing to do
    Repeat,      // a copy; the answer, if any, is sent again
    AskForTime,  // a copy; the user has yet to answer
    TakeRep,
    TakeRtu,
    TakeMra,
    TakeRej,
    TakeDreq,
    CrossDreq,  // both ends disconnect at the same time
    TakeDrep,
};

[[nodiscard]] constexpr Verdict judge(State state, Message message) noexcept {
    using enum Verdict;
    constexpr std::size_t kMessages = static_cast<std::size_t>(Message::Count);
    constexpr std::array<std::array<Verdict, kMessages>, static_cast<std::size_t>(State::Count)> kTable{{
        // REQ        MRA         REJ         REP         RTU         DREQ        DREP
        {Unexpected, TakeMra, TakeRej, TakeRep, Unexpected, Unexpected, Unexpected},           // ReqSent
        {Unexpected, Duplicate, TakeRej, TakeRep, Unexpected, Unexpected, Unexpected},         // MraReqRcvd
        {Unexpected, Duplicate, TakeRej, AskForTime, Unexpected, Unexpected, Unexpected},      // RepRcvd
        {Unexpected, Duplicate, TakeRej, Repeat, Unexpected, Unexpected, Unexpected},          // MraRepSent
        {AskForTime, Unexpected, TakeRej, Unexpected, Unexpected, Unexpected, Unexpected},     // ReqRcvd
        {Repeat, Unexpected, TakeRej, Unexpected, Unexpected, Unexpected, Unexpected},         // MraReqSent
        {Repeat, TakeMra, TakeRej, Unexpected, TakeRtu, TakeDreq, Unexpected},                 // RepSent
        {Duplicate, Duplicate, TakeRej, Unexpected, TakeRtu, TakeDreq, Unexpected},            // MraRepRcvd
        {Duplicate, Duplicate, TakeRej, Repeat, Heard, TakeDreq, TakeDrep},                    // Established
        {Duplicate, Duplicate, TakeRej, Duplicate, Heard, CrossDreq, TakeDrep},                // DreqSent
        {Duplicate, Duplicate, Unexpected, Duplicate, Heard, Duplicate, Unexpected},           // DreqRcvd
        {Repeat, Duplicate, Duplicate, Repeat, Heard, Repeat, Duplicate},                      // TimeWait
        {Unexpected, Unexpected, Unexpected, Unexpected, Unexpected, Unexpected, Unexpected},  // Ended
    }};
    return kTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(message)];
}

}  // namespace cairn::cm
