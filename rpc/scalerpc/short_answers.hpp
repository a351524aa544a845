// Memory in which short answers are composed, and from which they are sent. A client has a room for each of its blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "lib/base/result.hpp"
#include "lib/verbs/device.hpp"
#include "rpc/scalerpc/block.hpp"
#include "rpc/scalerpc/endpoint_config.hpp"

namespace cairn::scalerpc {

// A room is written again once its client has used that block for another request. The client does so when it has the
// answer. If the WRITE of that answer is sent again later, it is a duplicate, and the client's host does not execute
// it. So no work request has a copy, and the server waits for no completion. A client that asks sooner spoils only its
// own answers.
class ShortAnswers {
public:
    explicit ShortAnswers(const BlockShape& shape) noexcept
        : room_bytes_(room_bytes(shape)), session_bytes_(session_bytes(shape)) {}
    [[nodiscard]] static constexpr std::uint32_t room_bytes(const BlockShape& shape) noexcept {
        return std::min(shape.bytes, kShortAnswer);
    }
    // Returns the size of a session's rooms, which lie side by side.
    [[nodiscard]] static constexpr std::uint32_t session_bytes(const BlockShape& shape) noexcept {
        return room_bytes(shape) * shape.blocks;
    }

    // Takes memory for `sessions`. Pages that no session has used take none. The domain outlives the object. Errors:
    // the device has no room.
    Status open(verbs::Device& device, verbs::Pd& pd, std::uint32_t sessions) {
        const std::size_t bytes = std::size_t{session_bytes_} * sessions;
        memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(bytes);
        auto region = device.register_memory(pd, {memory_.get(), bytes}, {}, 0);
        if (!region.ok()) {
            return region.error();
        }
        region_ = std::move(region).value();
        return Nothing{};
    }
    void close() noexcept { region_.reset(); }

    // Returns the rooms of a new session. They are cleared, since another client may have had them.
    [[nodiscard]] std::span<std::uint8_t> give(SessionId session) noexcept {
        const std::span<std::uint8_t> rooms(memory_.get() + std::size_t{session.number()} * session_bytes_,
                                            session_bytes_);
        std::fill(rooms.begin(), rooms.end(), std::uint8_t{0});
        return rooms;
    }
    // Returns the last `bytes` before the end of a room, which may reach into the rooms before it.
    [[nodiscard]] verbs::Sge sge(std::span<const std::uint8_t> room, std::uint32_t bytes) const noexcept {
        const auto end = static_cast<std::uint64_t>(room.data() - memory_.get()) + room_bytes_;
        return region_->sge(end - bytes, bytes);
    }

private:
    std::uint32_t room_bytes_;
    std::uint32_t session_bytes_;
    std::unique_ptr<std::uint8_t[]> memory_;
    std::unique_ptr<verbs::Mr> region_;
};

}  // namespace cairn::scalerpc
