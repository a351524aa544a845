// The answers of a turn. They wait here until the changes that they speak of are durable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fs/channel/segment.hpp"
#include "fs/shard/calls.hpp"

namespace cairn::fs {

class TurnAnswers {
public:
    TurnAnswers();
    // True if there is room for one more answer.
    [[nodiscard]] bool has_room() const noexcept { return kBytes - used_ >= kAnswerBytes; }
    // Returns the room for the next answer.
    [[nodiscard]] std::span<std::uint8_t> room() noexcept { return {bytes_.get() + used_, kAnswerBytes}; }
    // Takes the next answer, `bytes` long, from room().
    void stage(CallToken token, std::uint32_t bytes);
    // Hands all answers to the host.
    void leave(ShardHost& host) noexcept;

private:
    static constexpr std::size_t kBytes = 256U << 10U;
    struct Staged {
        CallToken token = 0;
        std::uint32_t at = 0;
        std::uint32_t bytes = 0;
    };

    std::unique_ptr<std::uint8_t[]> bytes_;  // NOLINT(modernize-avoid-c-arrays): not zeroed
    std::size_t used_ = 0;
    std::vector<Staged> staged_;
};

}  // namespace cairn::fs
