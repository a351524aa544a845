// Session control messages. Each is the payload of a Kind::Control packet on the endpoint's own queue pair.
//
// A session begins with two round trips. The server answers Connect(token) with a Challenge of the same size, and keeps
// nothing. The Challenge has a cookie, which proves that the client receives what is sent to its address. Connect with
// the cookie makes the session. That Connect and its answer fill a packet of the path MTU. So no session opens over a
// path that does not carry such packets. Client and server share the token as a secret. Only a message that names it
// can end the session.
#pragma once

#include <cstdint>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::erpc {

// All messages carry the token. They carry the receiver's session number if the sender knows it.
enum class ControlType : std::uint8_t {
    Connect = 1,         // client -> server: client session, credits, cookie if a Challenge has come
    Accepted = 2,        // server -> client: server session, first request number
    Refused = 3,         // server -> client: reason
    Disconnect = 4,      // client -> server
    Disconnected = 5,    // server -> client; also the answer for a session that has ended
    Ping = 6,            // client -> server; with Ahead it confirms a request number as the client's own
    Pong = 7,            // server -> client: the same fields as Accepted
    Challenge = 8,       // server -> client: the cookie to connect with
    RequestRefused = 9,  // server -> client: request number, and why the server does not answer it
};

constexpr std::uint16_t kFeatureSelective = 1;  // holds packets that arrive early, and says which it has

// PathTooNarrow is never sent. A client finds it out: small packets came through, packets of the path MTU did not.
enum class RefuseReason : std::uint8_t {
    None = 0,
    NoSessionLeft = 1,  // reasons 1 to 4 refuse a session
    BadParameters = 2,
    NotServing = 3,
    PathTooNarrow = 4,
    NoHandler = 5,   // reasons 5 to 10 refuse a request; its type has no handler
    AnswerLost = 6,  // the request was executed, and its answer is lost
    GivenUp = 7,     // the half-received request was given up; the client may begin it anew under the next number
    Ahead = 8,       // the number is too far ahead; the client confirms it by a Ping
    TooLong = 9,     // the request is longer than the server takes
    NotExecuted = 10,
};

struct RawControl {
    std::uint8_t type;
    std::uint8_t reason;
    Be16 sender_session;    // number at the sender
    Be16 receiver_session;  // number at the receiver, as far as the sender knows it
    Be16 credits;
    Be64 token;
    Be64 first_request;   // Accepted, Pong: differs between sessions with the same token
    Be16 features;        // Connect: features of the client; Accepted: features of both ends
    Be16 path_mtu_bytes;  // the same at both ends, which cut messages alike
    Be64 cookie;          // Connect: the Challenge's cookie or 0; Challenge: the cookie; Ping: number of the ping;
                          // Pong: the ping's number
    Be64 request_number;  // RequestRefused, Ping with Ahead
};
static_assert(sizeof(RawControl) == 44 && alignof(RawControl) == 1);

struct Control {
    ControlType type = ControlType::Ping;
    RefuseReason reason = RefuseReason::None;
    SessionId sender_session{};
    SessionId receiver_session{};
    std::uint16_t credits = 0;
    std::uint64_t token = 0;
    std::uint64_t first_request = 0;  // bits of kFirstRequestMask
    std::uint16_t features = 0;
    std::uint16_t path_mtu_bytes = 0;
    std::uint64_t cookie = 0;
    std::uint64_t request_number = 0;  // bits of kRequestNumberMask

    [[nodiscard]] static bool known(const RawControl& raw) noexcept {
        return raw.type >= static_cast<std::uint8_t>(ControlType::Connect) &&
               raw.type <= static_cast<std::uint8_t>(ControlType::RequestRefused) &&
               raw.reason <= static_cast<std::uint8_t>(RefuseReason::NotExecuted) &&
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
        raw.sender_session.set(sender_session.number());
        raw.receiver_session.set(receiver_session.number());
        raw.credits.set(credits);
        raw.token.set(token);
        raw.first_request.set(first_request);
        raw.features.set(features);
        raw.path_mtu_bytes.set(path_mtu_bytes);
        raw.cookie.set(cookie);
        raw.request_number.set(request_number);
    }
    // Returns the bytes after the header, zeros at their end included. `packet_bytes`: payload of a packet of the path
    // MTU.
    [[nodiscard]] std::uint32_t payload_bytes(std::uint32_t packet_bytes) const noexcept {
        const bool fills = type == ControlType::Accepted || (type == ControlType::Connect && cookie != 0);
        return fills ? packet_bytes : static_cast<std::uint32_t>(sizeof(RawControl));
    }
    friend bool operator==(const Control&, const Control&) noexcept = default;
};

}  // namespace cairn::erpc
