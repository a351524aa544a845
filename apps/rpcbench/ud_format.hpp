// The datagrams of --system ud: calls as FaSST makes them, a SEND for the request and one for the answer.
#pragma once

#include <cstdint>

#include "lib/base/endian.hpp"

namespace cairn::rpcbench {

// The kinds of messages. A caller sends Hello, proves by the token of the server's Challenge that it has its address,
// and gets a Welcome.
enum class UdKind : std::uint8_t { Hello = 1, Challenge, Welcome, Request, Response, Refusal, Bye };

// The header of each message.
struct RawUdMessage {
    static constexpr std::uint8_t kVersion = 0xd1;

    std::uint8_t version;
    UdKind kind;
    std::uint8_t type;  // of a request
    std::uint8_t reserved;
    Be16 session;  // of the receiver; of a Hello and a Challenge, the caller's
    Be16 own;      // of the sender, in a Welcome; of the caller, in a Hello
    Be64 token;    // distinguishes the session's packets from forged ones; 0 in a first Hello
    Be64 call;     // of the caller's choice; comes back with the answer
};
static_assert(sizeof(RawUdMessage) == 24 && alignof(RawUdMessage) == 1);

}  // namespace cairn::rpcbench
