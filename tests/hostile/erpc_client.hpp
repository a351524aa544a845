// An attacker's eRPC client: it opens sessions as it must, and then sends arbitrary packets.
#pragma once

#include <optional>
#include <vector>

#include "tests/hostile/attacker.hpp"

namespace cairn::hostile {

struct ErpcService {
    Qpn qpn{};
    Qkey qkey{};
};

// Returns where the target's service is; asks by SIDR until the attacker's time is over.
[[nodiscard]] std::optional<ErpcService> resolve(Attacker& attacker, Host& host);

enum class ControlType : std::uint8_t {
    Connect = 1,
    Accepted = 2,
    Refused = 3,
    Disconnect = 4,
    Disconnected = 5,
    Ping = 6,
    Pong = 7,
    Challenge = 8,
    RequestRefused = 9,
};

struct RawControl {
    std::uint8_t type = 0;
    std::uint8_t reason = 0;
    Be16 sender_session;
    Be16 receiver_session;
    Be16 credits{32};
    Be64 token;
    Be64 first_request{};
    Be16 features{};
    Be16 path_mtu_bytes{1024};
    Be64 cookie{};
    Be64 request_number{};
};
static_assert(sizeof(RawControl) == 44 && alignof(RawControl) == 1);

constexpr std::uint32_t kPacketBytes = 1024 - 16;  // bytes of a message in a packet of that path MTU
constexpr Qpn kOwnQpn{0x100};
constexpr unsigned kSlots = 8;

struct ErpcSession {
    ErpcService service{};
    std::uint64_t token = 0;
    std::uint16_t local = 0;
    std::uint16_t remote = 0;
    std::uint64_t first_request = 0;  // of slot 0
    std::uint64_t cookie = 0;

    // Makes a control packet. `number` is that of a Ping.
    [[nodiscard]] Bytes control(ControlType type, std::uint64_t number = 0) const;
    // Makes one packet of a request: the slot's `turn`th request.
    [[nodiscard]] Bytes request(unsigned slot, unsigned turn, std::uint32_t message_bytes, std::uint16_t packet,
                                std::span<const std::uint8_t> payload) const;
};

// Makes a Connect as the first packet of a host that has not proven its address, and one with a cookie.
[[nodiscard]] Bytes first_connect(const ErpcService& service, std::uint64_t token, std::uint16_t local);
[[nodiscard]] Bytes second_connect(const ErpcService& service, std::uint64_t token, std::uint16_t local,
                                   std::uint64_t cookie);
// Opens a session. Returns nullopt if the target does not grant it.
[[nodiscard]] std::optional<ErpcSession> open_session(Attacker& attacker, Host& host, const ErpcService& service,
                                                      std::uint16_t local);

}  // namespace cairn::hostile
