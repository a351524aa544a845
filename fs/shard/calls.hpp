// A shard's calls and their callers.
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
// The token of a call whose answer is not wanted.
constexpr CallToken kNobody = ~CallToken{0};

// Slots of one client, in all its channels together.
constexpr std::uint32_t kMostSlotsOfClient = 1024;

// A client's call.
struct Call {
    CallToken token = 0;
    std::uint64_t client = 0;  // the number that its daemon gave it; a client cannot take another's number
    std::uint32_t slot = 0;    // the client's, below kMostSlotsOfClient; a slot has one call at a time
    Credentials who{};         // valid during take()
    std::span<const std::uint8_t> request{};  // valid during take()
    // The slots' data, which requests address by `at`. Stays until the call is answered. The client may write to it at
    // any time.
    std::span<std::uint8_t> data{};
    // The client's buffers, which requests address from kBuffersAt on. The same holds for them.
    std::span<std::uint8_t> buffers{};

    // Returns the memory of a request's data, or nothing if not all of it lies within one of the two.
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

// Runs a shard.
class ShardHost {
public:
    // Takes the answer of a call; all that the call did is durable. The bytes are valid during answer(); at most
    // kAnswerBytes.
    virtual void answer(CallToken token, std::span<const std::uint8_t> bytes) noexcept = 0;
    // Sends a message to another shard; at most kMostPeerBytes. Messages to a shard arrive in order, once, or not at
    // all. The host says when a shard is lost, and takes no message for it until it is back. The bytes are valid during
    // send(). A shard that is alone in its file system sends nothing.
    virtual void send(ShardNumber to, std::span<const std::uint8_t> message) noexcept = 0;

protected:
    ~ShardHost() = default;
};

}  // namespace cairn::fs
