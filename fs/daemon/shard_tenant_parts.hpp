// The parts of a ShardTenant for each channel.
#pragma once

#include "fs/daemon/shard_tenant.hpp"

namespace cairn::fs {

struct ShardTenant::Channel {
    Channel(ChannelOrder&& order, std::uint32_t generation_now)
        : client(order.client),
          number(order.number),
          generation(generation_now),
          person(std::move(order.person)),
          buffers(std::move(order.buffers)),
          end(std::move(order.segment)) {}

    const std::uint64_t client;
    const std::uint32_t number;
    const std::uint32_t generation;  // differs between channels of one place
    const std::shared_ptr<const Person> person;
    const std::shared_ptr<const ClientBuffers> buffers;  // null if the client has none
    ShardEnd end;
    std::unique_ptr<worker::Doorbell> bell{};
    std::uint64_t due = 0;  // slots to look at, a bit each
    std::uint32_t unanswered = 0;
    bool is_closed = false;  // no more calls are taken from it

    [[nodiscard]] bool has_calls() const noexcept { return !is_closed && (due != 0 || end.has_pending()); }
};

}  // namespace cairn::fs
