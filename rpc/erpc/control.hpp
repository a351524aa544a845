// Session control messages, carried as the payload of a Kind::Control packet on the endpoint's own queue pair.
//
// A session begins with two round trips. Connect(token) is answered with a Challenge, in as many bytes, for which the
// server keeps nothing; the client proves with the cookie from it that it hears what its address is sent. Connect with
// the cookie makes the session; it and its answer fill a packet of the path MTU, so that none opens over a path that
// does not carry those. The token is the client's secret and the server's: who does not name it ends nothing.
#pragma once

#include <cstdint>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::erpc {

// All carry the token, and the session number of whoever receives them if they know it.
enum class ControlType : std::uint8_t {
    Connect = 1,         // client -> server: client session, credits; the cookie of a Challenge
    Accepted = 2,        // server -> client: server session, where the request numbers begin
    Refused = 3,         // server -> client: reason
    Disconnect = 4,      // client -> server
    Disconnected = 5,    // server -> client; also the answer for a session that is no more
    Ping = 6,            // client -> server; with Ahead and a request number: it has really come so far
    Pong = 7,            // server -> client: as Accepted
    Challenge = 8,       // server -> client: the cookie to connect with
    RequestRefused = 9,  // server -> client: request number, why it is not answered
};

constexpr std::uint16_t kFeatureSelective = 1;  // holds packets that arrive early and says which

// PathTooNarrow is never sent: small packets came through, those of the path MTU did not.
enum class RefuseReason : std::uint8_t {
    None = 0,
    NoSessionLeft = 1,  // of a session, as the next three
    BadParameters = 2,
    NotServing = 3,
    PathTooNarrow = 4,
    NoHandler = 5,   // of a request, as the others: nobody is there for its type
    AnswerLost = 6,  // it was executed, and its answer is no more
    GivenUp = 7,     // it had come in part, was let go and is never executed: it may begin anew under the next number
    Ahead = 8,       // its number is too far ahead: a Ping that names it shows that it is its client's
    TooLong = 9,     // it is longer than its server takes any
};

struct RawControl {
    std::uint8_t type;
    std::uint8_t reason;
    Be16 sender_session;    // number at the sender
    Be16 receiver_session;  // number at the receiver, as far as the sender knows it
    Be16 credits;
    Be64 token;
    Be64 first_request;   // Accepted, Pong: tells this session from others of its token
    Be16 features;        // Connect: what the client can; Accepted: what both can
    Be16 path_mtu_bytes;  // both ends cut messages alike
    Be64 cookie;          // Challenge, Connect; 0: none. Ping: its number, which its Pong repeats
    Be64 request_number;  // RequestRefused, and a Ping with Ahead
};
static_assert(sizeof(RawControl) == 44 && alignof(RawControl) == 1);

struct Control {
    ControlType type = ControlType::Ping;
    RefuseReason reason = RefuseReason::None;
    SessionId sender_session{};
    SessionId receiver_session{};
    std::uint16_t credits = 0;
    std::uint64_t token = 0;
    std::uint64_t first_request = 0;  // of those that kFirstRequestMask leaves
    std::uint16_t features = 0;
    std::uint16_t path_mtu_bytes = 0;
    std::uint64_t cookie = 0;
    std::uint64_t request_number = 0;  // of those that kRequestNumberMask leaves

    [[nodiscard]] static bool known(const RawControl& raw) noexcept {
        return raw.type >= static_cast<std::uint8_t>(ControlType::Connect) &&
               raw.type <= static_cast<std::uint8_t>(ControlType::RequestRefused) &&
               raw.reason <= static_cast<std::uint8_t>(RefuseReason::TooLong) &&
               raw.reason != static_cast<std::uint8_t>(RefuseReason::PathTooNarrow);
    }
    // `raw` must be known().
    [[nodiscard]] static Control parse(const RawControl& raw) noexcept {
        Control control;
        control.type = static_cast<ControlType>(raw.type);
        control.reason = static_cast<RefuseReason>(raw.reason);
        control.sender_session = SessionId{raw.sender_session.get()};
        control.receiver_session = SessionId{raw.receiver_session.get()};
        control.credits = raw.credits.get();
        control.token = raw.token.get();
        control.first_request = raw.first_request.get() & kFirstRequestMask;
        control.features = raw.features.get();
        control.path_mtu_bytes = raw.path_mtu_bytes.get();
        control.cookie = raw.cookie.get();
        control.request_number = raw.request_number.get() & kRequestNumberMask;
        return control;
    }
    void emit(RawControl& raw) const noexcept {
        raw.type = static_cast<std::uint8_t>(type);
        raw.reason = static_cast<std::uint8_t>(reason);
        raw.sender_session.set(sender_session.value);
        raw.receiver_session.set(receiver_session.value);
        raw.credits.set(credits);
        raw.token.set(token);
        raw.first_request.set(first_request);
        raw.features.set(features);
        raw.path_mtu_bytes.set(path_mtu_bytes);
        raw.cookie.set(cookie);
        raw.request_number.set(request_number);
    }
    // Bytes behind the header, zeros at their end included; `packet_bytes` is what a packet of the path MTU has there.
    // mutants: erpc-control-payload-bytes
    [[nodiscard]] std::uint32_t payload_bytes(std::uint32_t packet_bytes) const noexcept {
        const bool fills = type == ControlType::Accepted || (type == ControlType::Connect && cookie != 0);
        return fills ? packet_bytes : static_cast<std::uint32_t>(sizeof(RawControl));
    }
    friend bool operator==(const Control&, const Control&) noexcept = default;
};

}  // namespace cairn::erpc
