// The messages by which connections end.
#pragma once

#include <optional>

#include "lib/cm/connection_table.hpp"
#include "lib/wire/cm_message.hpp"

namespace cairn::cm {

[[nodiscard]] inline wire::Dreq make_dreq(const Connection& connection) noexcept {
    wire::Dreq dreq;
    dreq.ids = {connection.id, connection.remote_id};
    dreq.remote_qpn = connection.remote_qpn;
    return dreq;
}

// Returns the message by which another process may end a connection (of Manager::find()) if this process dies. The
// caller draws its transaction. Returns nullopt if there is no connection, or it is not established.
[[nodiscard]] inline std::optional<wire::MadBytes> last_words(const Connection* connection,
                                                              std::uint64_t transaction) noexcept {
    if (connection == nullptr || connection->state != State::Established) {
        return std::nullopt;
    }
    return wire::CmMad{transaction, make_dreq(*connection)}.bytes();
}

}  // namespace cairn::cm
