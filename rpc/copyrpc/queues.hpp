// The queues that all sessions of an endpoint share.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/base/result.hpp"
#include "lib/verbs/device.hpp"
#include "rpc/copyrpc/endpoint_config.hpp"

namespace cairn::copyrpc {

// A session's peer uses as many receive requests as it was promised. The shared queue has half as many more, so that
// many can be posted at a time.
struct Queues {
    // Creates the queues, with all receive requests posted. Errors: the device has no room.
    static Result<Queues> create(const EndpointConfig& config, verbs::Device& device);
    // Posts receive requests once a third of them are used. They need no memory: a batch is written to a ring.
    void refill() const noexcept;

    std::unique_ptr<verbs::Cq> sends;
    std::unique_ptr<verbs::Cq> receives;
    std::unique_ptr<verbs::Srq> requests;
    std::uint32_t requests_promised = 0;  // to the peers of all sessions
    std::uint32_t requests_full = 0;      // number of posted requests while none is used
};

}  // namespace cairn::copyrpc
