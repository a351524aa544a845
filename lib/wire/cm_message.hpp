// A management datagram of the connection manager, as a value.
#pragma once

#include <span>
#include <variant>

#include "lib/wire/cm_alternate_path.hpp"
#include "lib/wire/cm_answers.hpp"
#include "lib/wire/cm_request.hpp"
#include "lib/wire/cm_sidr.hpp"

namespace cairn::wire {

using CmMessage = std::variant<Req, Mra, Rej, Rep, Rtu, Dreq, Drep, SidrReq, SidrRep, Lap, Apr>;

// Holds one of the messages, with every field in its range. It does not judge if the message fits a connection.
// Reserved bits are ignored on receipt and sent as zero.
struct CmMad {
    std::uint64_t transaction = 0;
    CmMessage message{};

    // Parses a message. `bytes` is the payload of a datagram to queue pair 1.
    [[nodiscard]] static ParsedMad<CmMad> parse(std::span<const std::uint8_t> bytes) noexcept;
    [[nodiscard]] MadBytes bytes() const noexcept;

    friend bool operator==(const CmMad&, const CmMad&) noexcept = default;
};

}  // namespace cairn::wire
