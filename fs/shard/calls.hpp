// What a shard is called with, and by whom.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fs/message/request_kinds.hpp"
#include "fs/placement/slot_table.hpp"
#include "fs/rules/access.hpp"
#include "lib/base/time.hpp"

namespace cairn::fs {

// The host's name for a call that is not answered yet.
using CallToken = std::uint64_t;
// Nobody waits for an answer.
constexpr CallToken kNobody = ~CallToken{0};

// Of one client, all channels together.
constexpr std::uint32_t kMostSlotsOfClient = 1024;

// A client's call.
struct Call {
    CallToken token = 0;
    std::uint64_t client = 0;  // as its daemon has numbered it; no client can be another one
    std::uint32_t slot = 0;    // of the client's, below kMostSlotsOfClient; a slot has one call at a time
    Credentials who{};         // valid during take()
    std::span<const std::uint8_t> request{};  // valid during take()
    // What requests name by `at`. Stays until the call is answered. The client may write to it at any time.
    std::span<std::uint8_t> data{};
    // Likewise, from kBuffersAt on.
    std::span<std::uint8_t> buffers{};

    // Where a request's data lie. Nothing: not all of them lie within one of these.
    // mutants: fs-call-memory
    [[nodiscard]] std::optional<std::span<std::uint8_t>> memory(std::uint32_t at, std::uint32_t bytes) const noexcept {
        const std::span<std::uint8_t> all = at < kBuffersAt ? data : buffers;
        const std::uint32_t from = at < kBuffersAt ? at : at - kBuffersAt;
        return from <= all.size() && bytes <= all.size() - from ? std::optional(all.subspan(from, bytes))
                                                                : std::nullopt;
    }
};

// The time of a turn.
struct ShardTime {
    Instant now{};             // never goes back
    std::int64_t wall_ns = 0;  // since 1970, for files' times
};

// Who runs a shard.
class ShardHost {
public:
    // A call is answered: all that it did is durable. The bytes are valid during the call; at most kAnswerBytes.
    virtual void answer(CallToken token, std::span<const std::uint8_t> bytes) noexcept = 0;
    // A message for another shard; at most kMostPeerBytes. Messages to a shard arrive in order, once, or not at all:
    // the host says when a shard is lost, and takes nothing more for it until it is back. The bytes are valid during
    // the call. Alone in its file system, a shard sends nothing.
    virtual void send(ShardNumber to, std::span<const std::uint8_t> message) noexcept = 0;

protected:
    ~ShardHost() = default;
};

}  // namespace cairn::fs
