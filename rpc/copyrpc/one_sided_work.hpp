// One-sided operations of a session that are under way, and the memory that it has opened to its peer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "rpc/common/call.hpp"
#include "rpc/copyrpc/pieces.hpp"

namespace cairn::copyrpc {

// What is to be read from the beginning of the place, or written there. The completion runs once: with Ok, or, if the
// session has ended before, with what its calls end with. Until then the memory is the endpoint's, and stays where it
// is. CallResult::response is the memory.
struct OneSidedWork {
    Place place{};
    std::span<std::uint8_t> memory{};  // as long as the place at most, and not empty
    rpc::Completion completion = nullptr;
    void* context = nullptr;
    std::uint64_t tag = 0;
    bool ends_with_endpoint = false;  // true: the endpoint's end completes it with Disconnected; else forgets it
};

// The operations of a session, oldest first: they are done in their order.
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
