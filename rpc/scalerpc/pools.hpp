// The memory that all groups share: two pools of blocks, one for the clients whose slice it is, and one into which the
// requests of the next group are read meanwhile (ScaleRPC 3.3).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/verbs/device.hpp"
#include "rpc/common/msg_buffer.hpp"
#include "rpc/scalerpc/endpoint_config.hpp"
#include "rpc/scalerpc/session.hpp"

namespace cairn::scalerpc {

class Pools {
public:
    // The domain outlives the pools, and so does the pool of messages. Errors: no memory; the device has no room.
    static Result<std::unique_ptr<Pools>> create(const EndpointConfig& config, verbs::Device& device, verbs::Pd& pd,
                                                 rpc::MsgPool& memory);
    ~Pools();
    Pools(const Pools&) = delete;
    Pools& operator=(const Pools&) = delete;

    // Clients that never share have one pool.
    [[nodiscard]] static std::size_t sides_of(const EndpointConfig& config) noexcept;
    // The places of a pool, of as many clients as it serves at a time.
    [[nodiscard]] static std::uint32_t slots_for(const EndpointConfig& config) noexcept;
    [[nodiscard]] static std::size_t bytes_for(const EndpointConfig& config) noexcept;

    // Gives a session a berth in the pool. Returns false if all are taken. A client of a late host gets none of the
    // last half: a host that has stopped would have all berths, one group after the other.
    bool take_berth(std::uint8_t pool, Session& session);
    // Notes which hosts are late: they have a client that has kept its berth for so long while it was to answer a READ,
    // or to leave. Where each client has a berth of its own none is.
    void note_late_hosts(Instant now, Duration longest) noexcept;
    void forget_late_hosts() noexcept { late_hosts_.clear(); }
    // Takes the berth back, if the session has one. Requests that its client left there are zero afterwards: the next
    // client of the berth neither answers for them nor reads them.
    void give_back(Session& session);
    // Makes a session's berth zero, if it has one. A client that ends may have left a part of a request anywhere.
    void wipe(const Guest& guest) noexcept;
    // The pool of the slice behind that of this one.
    [[nodiscard]] std::uint8_t other(std::uint8_t pool) const noexcept {
        return is_shared_ ? static_cast<std::uint8_t>(1 - pool) : pool;
    }
    // True if most berths of the pool are free.
    [[nodiscard]] bool has_spare(std::uint8_t pool) const noexcept { return 2 * sides_[pool].free.size() > slots_; }
    // The sessions that have a berth in the pool.
    [[nodiscard]] const std::vector<Session*>& tenants(std::uint8_t pool) const noexcept {
        return sides_[pool].tenants;
    }
    // The block of a request of a session that has a berth.
    [[nodiscard]] std::span<std::uint8_t> block(const Guest& guest, std::uint32_t sequence) const noexcept {
        return memory_.span().subspan(offset_of(*guest.berth) + shape_.end_of(sequence) - shape_.bytes, shape_.bytes);
    }
    // Where the blocks of a berth begin in the region.
    [[nodiscard]] std::size_t offset_of(Berth berth) const noexcept {
        return (std::size_t{berth.pool} * slots_ + berth.slot) * stride_;
    }
    [[nodiscard]] const verbs::Mr& region() const noexcept { return *region_; }

private:
    struct Side {
        std::vector<std::uint32_t> free{};
        std::vector<Session*> tenants{};
    };
    Pools(const EndpointConfig& config, rpc::MsgPool& pool);

    const BlockShape shape_;
    const bool is_shared_;
    const std::uint32_t slots_;
    const bool is_scarce_;      // there are more sessions than berths of a pool
    const std::size_t stride_;  // from a slot to the next one
    rpc::MsgPool& pool_;
    rpc::MsgBuffer memory_{};
    std::unique_ptr<verbs::Mr> region_;
    std::array<Side, 2> sides_{};
    std::vector<net::IpAddress> late_hosts_{};
};

}  // namespace cairn::scalerpc
