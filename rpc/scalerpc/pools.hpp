// The memory that all groups share: two pools of blocks. One is for the clients of the present slice. The requests of
// the next group are READ into the other one meanwhile (ScaleRPC 3.3).
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
    // Makes the pools. The domain and the pool of messages outlive them. Errors: no memory; the device has no room.
    static Result<std::unique_ptr<Pools>> create(const EndpointConfig& config, verbs::Device& device, verbs::Pd& pd,
                                                 rpc::MsgPool& memory);
    ~Pools();
    Pools(const Pools&) = delete;
    Pools& operator=(const Pools&) = delete;

    // Returns the number of pools. Clients that never share need one.
    [[nodiscard]] static std::size_t sides_of(const EndpointConfig& config) noexcept;
    // Returns the number of slots of a pool: one per client that it serves at a time.
    [[nodiscard]] static std::uint32_t slots_for(const EndpointConfig& config) noexcept;
    [[nodiscard]] static std::size_t bytes_for(const EndpointConfig& config) noexcept;

    // Gives a session a slot in the pool. Returns false if all are taken. A client of a late host gets none of the last
    // half. Otherwise a host that has stopped would get all slots, one group after the other.
    bool take_berth(std::uint8_t pool, Session& session);
    // Notes which hosts are late. A client of theirs has kept its slot for `longest`, while it had to answer a READ or
    // to leave. If each client has its own slot, no host is late.
    void note_late_hosts(Instant now, Duration longest) noexcept;
    void forget_late_hosts() noexcept { late_hosts_.clear(); }
    // Takes the slot back, if the session has one. Clears requests that its client left there. So the slot's next
    // client neither answers for them nor reads them.
    void give_back(Session& session);
    // Clears a session's slot, if it has one. A client that ends may have left a part of a request anywhere.
    void wipe(const Guest& guest) noexcept;
    // Returns the pool of the next slice.
    [[nodiscard]] std::uint8_t other(std::uint8_t pool) const noexcept {
        return is_shared_ ? static_cast<std::uint8_t>(1 - pool) : pool;
    }
    // True if most slots of the pool are free.
    [[nodiscard]] bool has_spare(std::uint8_t pool) const noexcept { return 2 * sides_[pool].free.size() > slots_; }
    // Returns the sessions with a slot in the pool.
    [[nodiscard]] const std::vector<Session*>& tenants(std::uint8_t pool) const noexcept {
        return sides_[pool].tenants;
    }
    // Returns the block of a request; the session has a slot.
    [[nodiscard]] std::span<std::uint8_t> block(const Guest& guest, std::uint32_t sequence) const noexcept {
        return memory_.span().subspan(offset_of(*guest.berth) + shape_.end_of(sequence) - shape_.bytes, shape_.bytes);
    }
    // Returns the offset of a slot's blocks in the region.
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
    const bool is_scarce_;      // there are more sessions than slots of a pool
    const std::size_t stride_;  // distance between slots, in bytes
    rpc::MsgPool& pool_;
    rpc::MsgBuffer memory_{};
    std::unique_ptr<verbs::Mr> region_;
    std::array<Side, 2> sides_{};
    std::vector<net::IpAddress> late_hosts_{};
};

}  // namespace cairn::scalerpc
