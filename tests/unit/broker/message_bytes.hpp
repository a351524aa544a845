// Messages as they are sent.
#pragma once

#include <vector>

#include "lib/broker/messages.hpp"

namespace cairn::broker {

using Bytes = std::vector<std::uint8_t>;

inline Bytes bytes_of(const Message& message) {
    MessageBytes room;
    room.fill(0xa5);
    const auto written = emit_message(message, room);
    return {written.begin(), written.end()};
}

}  // namespace cairn::broker
