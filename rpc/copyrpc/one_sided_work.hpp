// One-sided operations of a session that are under way, and the memory that the session has opened to its peer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "rpc/common/call.hpp"
#include "rpc/copyrpc/pieces.hpp"

namespace cairn::copyrpc {

// A READ from the beginning of the place, or a WRITE to it. The completion runs once: with Ok, or with the status of
// the session's calls if the session has ended before. Until then the endpoint uses the memory, which must not move.
// CallResult::response is the memory.
struct OneSidedWork {
    Place place{};
    std::span<std::uint8_t> memory{};  // not empty, and at most as long as the place
    rpc::Completion completion = nullptr;
    void* context = nullptr;
    std::uint64_t tag = 0;
    bool ends_with_endpoint = false;  // true: the endpoint's end completes it with Disconnected; false: forgets it
};

// The operations of a session, oldest first. They are done in this order.
struct SessionOneSided {
    struct Pending : Pieces {
        OneSidedWork work{};
        verbs::WorkOpcode opcode{};
        Instant began{};
    };
    std::deque<Pending> pending;
    std::vector<std::unique_ptr<verbs::Mr>> opened;
    std::uint32_t pieces = 0;
    PiecesUnderWay under_way{};
};

}  // namespace cairn::copyrpc
