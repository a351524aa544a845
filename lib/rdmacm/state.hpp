// The states of an endpoint, the calls that a program may make in them, and the effect of news from the connection
// manager.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cairn::rdmacm {

enum class State : std::uint8_t {
    Idle,
    Bound,  // has a port, and perhaps an address
    AddressResolved,
    RouteResolved,
    Listening,
    Connecting,  // asked its peer
    Replied,     // the peer accepted; the program has to take the reply
    Asked,       // a peer asked; the program has to accept or reject
    Accepted,
    Connected,
    Disconnected,
    Failed,  // the connection did not come about
    Count,
};

enum class Call : std::uint8_t {
    Bind,
    ResolveAddress,
    ResolveRoute,
    Listen,
    Connect,
    Accept,
    Establish,
    Reject,
    Disconnect,
    Notify,
    Join,
    Count,
};

enum class Answer : std::uint8_t {
    No,  // EINVAL
    Go,
    BindFirst,  // to any address
    Nothing,    // success: there is nothing to do
    Connected,  // EISCONN
};

[[nodiscard]] constexpr Answer judge_call(State state, Call call) noexcept {
    using enum Answer;
    constexpr std::size_t kCalls = static_cast<std::size_t>(Call::Count);
    constexpr std::array<std::array<Answer, kCalls>, static_cast<std::size_t>(State::Count)> kTable{{
        // Bind Address    Route Listen   Connect Accept Establish Reject Disconnect Notify  Join
        {Go, BindFirst, No, BindFirst, No, No, No, No, No, No, No},   // Idle
        {No, Go, No, Go, No, No, No, No, No, No, Go},                 // Bound
        {No, No, Go, No, No, No, No, No, No, No, Go},                 // AddressResolved
        {No, No, No, No, Go, No, No, No, No, No, No},                 // RouteResolved
        {No, No, No, No, No, No, No, No, No, No, No},                 // Listening
        {No, No, No, No, No, No, No, No, Nothing, No, No},            // Connecting
        {No, No, No, No, No, No, Go, Go, Nothing, No, No},            // Replied
        {No, No, No, No, No, Go, No, Go, Nothing, No, No},            // Asked
        {No, No, No, No, No, No, No, Go, Nothing, Go, No},            // Accepted
        {No, No, No, No, No, No, No, No, Go, Answer::Connected, No},  // Connected
        {No, No, No, No, No, No, No, No, Go, No, No},                 // Disconnected
        {No, No, No, No, No, No, No, No, Nothing, No, No},            // Failed
    }};
    return kTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(call)];
}

// News of the connection manager about a connection, or about a question for datagrams.
enum class News : std::uint8_t {
    Replied,
    Established,  // for datagrams: the peer answered
    Rejected,
    Unreachable,
    DisconnectAsked,
    Disconnected,
    Released,
    Count,
};

// The event that the program gets.
enum class Told : std::uint8_t { Nothing, Response, Established, Rejected, Unreachable, Disconnected, TimewaitExit };

struct Outcome {
    State next{};
    Told told = Told::Nothing;

    friend bool operator==(const Outcome&, const Outcome&) noexcept = default;
};

// Judges news of the connection manager. News that do not fit a state change nothing: the manager sends some of them to
// both ends of a race. If a request ends that the program has not accepted, it gets no event: accept() fails, as with
// the kernel. The program may have no object of its own for such an id.
[[nodiscard]] constexpr Outcome judge_news(State state, News news) noexcept {
    struct Row {
        State state;
        News news;
        Outcome outcome;
    };
    constexpr std::array kRows{
        Row{State::Connecting, News::Replied, {State::Replied, Told::Response}},
        Row{State::Connecting, News::Established, {State::Connected, Told::Established}},
        Row{State::Connecting, News::Rejected, {State::Failed, Told::Rejected}},
        Row{State::Connecting, News::Unreachable, {State::Failed, Told::Unreachable}},
        Row{State::Replied, News::Rejected, {State::Failed, Told::Rejected}},
        Row{State::Replied, News::Unreachable, {State::Failed, Told::Unreachable}},
        Row{State::Asked, News::Rejected, {State::Failed, Told::Nothing}},
        Row{State::Asked, News::Unreachable, {State::Failed, Told::Nothing}},
        Row{State::Accepted, News::Established, {State::Connected, Told::Established}},
        Row{State::Accepted, News::Rejected, {State::Failed, Told::Rejected}},
        Row{State::Accepted, News::Unreachable, {State::Failed, Told::Unreachable}},
        Row{State::Accepted, News::DisconnectAsked, {State::Disconnected, Told::Disconnected}},
        Row{State::Connected, News::DisconnectAsked, {State::Disconnected, Told::Disconnected}},
        Row{State::Connected, News::Disconnected, {State::Disconnected, Told::Disconnected}},
        Row{State::Disconnected, News::Released, {State::Disconnected, Told::TimewaitExit}},
    };
    for (const Row& row : kRows) {
        if (row.state == state && row.news == news) {
            return row.outcome;
        }
    }
    return {state, Told::Nothing};
}

}  // namespace cairn::rdmacm
