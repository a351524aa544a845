// Lane: a thread's channel to one shard, over all meetings with the daemon.
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

// Where asks go that a lane is done with otherwise than by an answer.
struct LaneEnds {
    AskQueue detoured{};  // the shard says that it is not the one
    AskQueue failed{};    // no shard will answer
};

// Asks beyond the channel's slots queue up here.
class Lane {
public:
    // `place`: see Connection.
    Lane(ShardNumber shard, std::size_t place) noexcept : shard_(shard), place_(place) {}

    [[nodiscard]] ShardNumber shard() const noexcept { return shard_; }
    [[nodiscard]] std::size_t place() const noexcept { return place_; }
    // At which the channel was given; 0: there is none.
    [[nodiscard]] std::uint64_t meeting() const noexcept { return meeting_; }

    // The ask goes at once if a slot is free.
    void submit(Ask& ask, const View& view) noexcept;
    // Completes what is answered, and gives the slots to who waits. Returns how many were answered.
    std::uint32_t poll(const View& view, LaneEnds& ends) noexcept;
    // Asks whose time is over fail. A slot stays taken until its answer comes.
    void expire(Instant now, LaneEnds& ends) noexcept;
    // The channel is replaced. Requests that are not answered go again, in the same slots with the same numbers.
    // Without a new channel, or in one of another shape, they fail.
    void replace(std::optional<ChannelParts> parts, LaneEnds& ends) noexcept;
    // Takes what waits for a slot.
    void take_queue(AskQueue& to) noexcept { to.take_all(queue_); }

    // An answer may come.
    [[nodiscard]] bool is_asked() const noexcept { return end_ && asked_ != 0; }
    [[nodiscard]] bool is_idle() const noexcept { return asked_ == 0 && queue_.is_empty(); }
    // Sleeps until an answer is there, or for this long. There is a channel (asserted).
    void wait(Duration at_most) noexcept { end_->wait(at_most); }

private:
    struct Slot {
        Ask* ask = nullptr;  // none: nobody waits for the answer any more
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
    std::uint64_t asked_ = 0;  // slots: a bit each
    std::uint32_t free_ = 0;   // slots
    AskQueue queue_;
    std::array<Slot, ChannelShape::kMostSlots> slots_{};
};

}  // namespace cairn::fs
