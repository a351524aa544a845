// A thread's channel to one shard, over all meetings with the daemon.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "fs/channel/client_end.hpp"
#include "fs/client/ask.hpp"
#include "fs/client/daemon_socket.hpp"
#include "fs/client/view.hpp"

namespace cairn::fs {

// Queues for asks that leave a channel without an answer.
struct LaneEnds {
    AskQueue detoured{};  // the shard says that it is not the target
    AskQueue failed{};    // no shard will answer
};

// Sends asks to one shard. If all slots of the channel are in use, asks wait in a queue.
class Lane {
public:
    // Makes it without a channel. `place`: see Connection.
    Lane(ShardNumber shard, std::size_t place) noexcept : shard_(shard), place_(place) {}

    [[nodiscard]] ShardNumber shard() const noexcept { return shard_; }
    [[nodiscard]] std::size_t place() const noexcept { return place_; }
    // Returns the meeting at which the channel was given, or 0 without a channel.
    [[nodiscard]] std::uint64_t meeting() const noexcept { return meeting_; }

    // Sends the ask at once if a slot is free.
    void submit(Ask& ask, const View& view) noexcept;
    // Completes the asks that are answered, and gives their slots to asks that wait. Returns the number of answers.
    std::uint32_t poll(const View& view, LaneEnds& ends) noexcept;
    // Fails the asks whose deadline has passed. A slot stays taken until its answer comes.
    void expire(Instant now, LaneEnds& ends) noexcept;
    // Replaces the channel. Requests that are not answered go again, in the same slots with the same numbers. They fail
    // without a new channel, or if it has another shape.
    void replace(std::optional<ChannelParts> parts, LaneEnds& ends) noexcept;
    // Takes the asks that wait for a slot.
    void take_queue(AskQueue& to) noexcept { to.take_all(queue_); }

    // True if an answer may come.
    [[nodiscard]] bool is_asked() const noexcept { return end_ && asked_ != 0; }
    [[nodiscard]] bool is_idle() const noexcept { return asked_ == 0 && queue_.is_empty(); }
    // Sleeps until an answer is there, or for this long. There is a channel (asserted).
    void wait(Duration at_most) noexcept { end_->wait(at_most); }

private:
    struct Slot {
        Ask* ask = nullptr;  // null if no ask waits for the answer any more
        RequestHead head{};
    };

    [[nodiscard]] bool is_asked(std::uint32_t slot) const noexcept { return (asked_ >> slot & 1U) != 0; }
    void send_queued(const View& view) noexcept;
    void send(std::uint32_t slot, Ask& ask, const View& view) noexcept;
    void end(Ask& ask, std::span<const std::uint8_t> answer, std::span<const std::uint8_t> data,
             LaneEnds& ends) noexcept;
    void put(ClientEnd& to, std::uint32_t slot) noexcept;
    void fail_asked(LaneEnds& ends) noexcept;

    ShardNumber shard_;
    std::size_t place_;
    std::uint64_t meeting_ = 0;
    OwnedFd doorbell_;
    std::optional<ClientEnd> end_;
    ChannelShape shape_{};
    std::uint64_t asked_ = 0;  // a bit for each slot
    std::uint32_t free_ = 0;   // number of slots
    AskQueue queue_;
    std::array<Slot, ChannelShape::kMostSlots> slots_{};
};

}  // namespace cairn::fs
