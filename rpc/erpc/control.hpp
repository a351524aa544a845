// Session control messages, carried as the payload of a Kind::Control packet on the endpoint's own queue
// pair: connect with a token against duplicates, refuse, disconnect, ping, reset.
#pragma once

#include <cstdint>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"

namespace cairn::erpc {

enum class ControlType : std::uint8_t {
    Connect = 1,       // client -> server: token, client session, credits
    Accepted = 2,      // server -> client: token, server session
    Refused = 3,       // server -> client: token, reason
    Disconnect = 4,    // client -> server: token
    Disconnected = 5,  // server -> client: token; also the answer for a session that is no more
    Ping = 6,          // either way: token
    Pong = 7,
    Reset = 8,  // "I know no such session": echoes token 0 and the request number seen
};

constexpr std::uint16_t kFeatureSelective = 1;  // holds packets that arrive early and says which

enum class RefuseReason : std::uint8_t { None = 0, NoSessionLeft = 1, BadParameters = 2, ShuttingDown = 3 };

struct RawControl {
    std::uint8_t type;
    std::uint8_t reason;
    Be16 sender_session;    // number at the sender
    Be16 receiver_session;  // number at the receiver, as far as the sender knows it
    Be16 credits;
    Be64 token;
    Be64 request_number;  // Reset: the packet that hit no session
    Be16 features;        // Connect: what the client can; Accepted: what both can
    Be16 path_mtu_bytes;  // both ends cut messages alike
    Be64 incarnation;     // of the sending endpoint: another one has forgotten all
};
static_assert(sizeof(RawControl) == 36 && alignof(RawControl) == 1);

struct Control {
    ControlType type = ControlType::Ping;
    RefuseReason reason = RefuseReason::None;
    SessionId sender_session{};
    SessionId receiver_session{};
    std::uint16_t credits = 0;
    std::uint64_t token = 0;
    std::uint64_t request_number = 0;
    std::uint16_t features = 0;
    std::uint16_t path_mtu_bytes = 0;
    std::uint64_t incarnation = 0;

    [[nodiscard]] static bool known(const RawControl& raw) noexcept {
        return raw.type >= static_cast<std::uint8_t>(ControlType::Connect) &&
               raw.type <= static_cast<std::uint8_t>(ControlType::Reset) &&
               raw.reason <= static_cast<std::uint8_t>(RefuseReason::ShuttingDown);
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
        control.request_number = raw.request_number.get();
        control.features = raw.features.get();
        control.path_mtu_bytes = raw.path_mtu_bytes.get();
        control.incarnation = raw.incarnation.get();
        return control;
    }
    void emit(RawControl& raw) const noexcept {
        raw.type = static_cast<std::uint8_t>(type);
        raw.reason = static_cast<std::uint8_t>(reason);
        raw.sender_session.set(sender_session.value);
        raw.receiver_session.set(receiver_session.value);
        raw.credits.set(credits);
        raw.token.set(token);
        raw.request_number.set(request_number);
        raw.features.set(features);
        raw.path_mtu_bytes.set(path_mtu_bytes);
        raw.incarnation.set(incarnation);
    }
    friend bool operator==(const Control&, const Control&) noexcept = default;
};

}  // namespace cairn::erpc
