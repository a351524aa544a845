#include "rpc/scalerpc/fetch.hpp"

#include <array>

#include "rpc/scalerpc/server.hpp"

namespace cairn::scalerpc {

namespace {

constexpr std::uint32_t kReadMost = 2048;  // bytes in one READ of several small requests, at most

}  // namespace

// Requests that are not READ are written by the client when its slice begins.
std::uint32_t fetch(const EndpointConfig& config, const Pools& pools, Session& session, const Entry& entry,
                    Statistics& statistics) noexcept {
    Guest& guest = *session.guest;
    const BlockShape& shape = config.shape;
    const std::size_t offset = pools.offset_of(*guest.berth);
    const std::uint32_t last = entry.first + entry.count;
    std::uint32_t from = entry.first;
    guest.reads = {};
    while (from != last) {
        std::uint32_t to = from + 1;
        while (config.features.packing && to != last && shape.index_of(to) != 0 &&
               (to - from) * shape.bytes + entry.longest <= kReadMost) {
            ++to;
        }
        const std::uint32_t bytes = (to - from - 1) * shape.bytes + entry.longest;
        const std::uint32_t at = shape.end_of(to - 1) - bytes;
        const std::array<verbs::Sge, 1> pieces{pools.region().sge(offset + at, bytes)};
        verbs::SendRequest request;
        request.opcode = verbs::WorkOpcode::RdmaRead;
        request.wr_id = work_id(Work::Fetch, 0);
        request.sges = pieces;
        request.remote_address = session.peer.staged.address + at;
        request.rkey = session.peer.staged.rkey;
        if (session.qp->post_send(request) != verbs::PostVerdict::Posted) {
            break;
        }
        ++guest.reads.under_way;
        from = to;
    }
    statistics.fetches += guest.reads.under_way;
    statistics.requests_fetched += from - entry.first;
    return from - entry.first;
}

}  // namespace cairn::scalerpc
