// A session: one reliable connection between a client, which calls, and a server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rpc/common/call_table.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/linked/linked_session.hpp"
#include "rpc/scalerpc/caller.hpp"
#include "rpc/scalerpc/guest.hpp"

namespace cairn::scalerpc {

struct Session : rpc::LinkedSession {
    Hello peer{};
    rpc::Backlog backlog{};
    rpc::MsgBuffer memory{};            // the caller's
    std::unique_ptr<verbs::Mr> staged;  // the caller's staged requests, for the server to READ
    std::unique_ptr<verbs::Mr> answers;
    std::optional<Caller> caller{};  // for a session of connect()
    std::optional<Guest> guest{};    // for a client that connected

    // Prefetches the memory that this turn reads and writes for the session, whose peer has written.
    void expect_look() noexcept {
        qp->expect_send();
        if (guest) {
            guest->expect_request(peer.shape);  // both ends have the same shape
        }
    }
};

}  // namespace cairn::scalerpc
