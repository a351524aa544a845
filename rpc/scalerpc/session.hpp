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
    rpc::MsgBuffer memory{};            // of the caller
    std::unique_ptr<verbs::Mr> staged;  // the caller's staged requests, for the server to READ
    std::unique_ptr<verbs::Mr> answers;
    std::optional<Caller> caller{};  // of a session that connect() began
    std::optional<Guest> guest{};    // of a client that connected

    // The peer has written: what is looked at in this turn, and what answers, is brought into the caches meanwhile.
    void expect_look() noexcept {
        qp->expect_send();
        if (guest) {
            guest->expect_request(peer.shape);  // both ends have the same
        }
    }
};

}  // namespace cairn::scalerpc
