// Messages between the sessions' thread and the shards' threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "fs/channel/segment.hpp"
#include "fs/daemon/client_buffers.hpp"
#include "fs/daemon/packets.hpp"
#include "lib/base/mailbox.hpp"
#include "lib/base/owned_fd.hpp"
#include "lib/base/wakeup.hpp"

namespace cairn::fs {

struct ChannelOrder {
    std::uint64_t client = 0;
    std::uint32_t number = 0;  // its place among the client's channels to this shard, in the order of the requests
    std::shared_ptr<const Person> person{};  // the caller in this channel
    Segment segment;
    std::shared_ptr<const ClientBuffers> buffers{};  // the client's
};

// A shard, as the sessions use it. Each function returns at once; a ShardNews announces its end.
class ShardDoor {
public:
    // Opens a channel. The news is ChannelMade or ChannelFailed.
    virtual void open_channel(ChannelOrder order) = 0;
    // Ends the client's channels to this shard, once all their calls are answered. The news is Drained.
    virtual void drain(std::uint64_t client) = 0;
    // Closes all that the client had open. No shard has a channel of it. The news is Forgotten.
    virtual void forget(std::uint64_t client) = 0;

protected:
    ~ShardDoor() = default;
};

struct ShardNews {
    enum class What : std::uint8_t { ChannelMade, ChannelFailed, Breach, Drained, Forgotten };

    What what = What::Breach;
    std::uint64_t client = 0;
    std::uint16_t shard = 0;
    OwnedFd segment{};   // for ChannelMade
    OwnedFd doorbell{};  // for ChannelMade
    MailLink<ShardNews> mail{};
};

// The shards' news. Any thread may post; one thread reads.
class NewsBox {
public:
    // Makes the box. Errors: the process has no descriptor left.
    static Result<std::unique_ptr<NewsBox>> create();
    ~NewsBox();

    void tell(std::unique_ptr<ShardNews> news) noexcept;

    // Returns a descriptor that is readable once news comes after begin_sleep().
    [[nodiscard]] int fd() const noexcept { return wakeup_->fd(); }
    // Prepares for sleep. Returns false if there is news already.
    [[nodiscard]] bool begin_sleep() noexcept {
        wakeup_->begin_sleep();
        return box_.empty();
    }
    void end_sleep() noexcept { wakeup_->end_sleep(); }
    // Hands the news to the sink, oldest first.
    template <class Sink>
    void take(const Sink& sink) noexcept {
        box_.take([&sink](ShardNews& news) noexcept { sink(*std::unique_ptr<ShardNews>(&news)); });
    }

private:
    explicit NewsBox(std::unique_ptr<Wakeup> wakeup) noexcept : wakeup_(std::move(wakeup)) {}

    Mailbox<ShardNews> box_;
    std::unique_ptr<Wakeup> wakeup_;
};

}  // namespace cairn::fs
