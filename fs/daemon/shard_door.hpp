// What the thread of the sessions and the threads of the shards say to each other.
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
    std::uint32_t number = 0;  // of the client's channels to this shard, in the order in which it asked for them
    std::shared_ptr<const Person> person{};  // whose calls come there
    Segment segment;
    std::shared_ptr<const ClientBuffers> buffers{};  // the client's
};

// A shard, as the sessions use it. Any function returns at once; its end is told by ShardNews.
class ShardDoor {
public:
    // Tells ChannelMade, or ChannelFailed.
    virtual void open_channel(ChannelOrder order) = 0;
    // The client's channels to this shard end, once none of their calls is unanswered. Tells Drained.
    virtual void drain(std::uint64_t client) = 0;
    // What the client had open is closed. No shard has a channel of it. Tells Forgotten.
    virtual void forget(std::uint64_t client) = 0;

protected:
    ~ShardDoor() = default;
};

struct ShardNews {
    enum class What : std::uint8_t { ChannelMade, ChannelFailed, Breach, Drained, Forgotten };

    What what = What::Breach;
    std::uint64_t client = 0;
    std::uint16_t shard = 0;
    OwnedFd segment{};   // ChannelMade
    OwnedFd doorbell{};  // ChannelMade
    MailLink<ShardNews> mail{};
};

// Where shards put their news. Any thread may tell; one thread reads.
class NewsBox {
public:
    // Errors: the process has no descriptor left.
    static Result<std::unique_ptr<NewsBox>> create();
    ~NewsBox();

    void tell(std::unique_ptr<ShardNews> news) noexcept;

    // Readable once there is news behind begin_sleep().
    [[nodiscard]] int fd() const noexcept { return wakeup_->fd(); }
    // Returns false if news lies there already: no reason to sleep.
    [[nodiscard]] bool begin_sleep() noexcept {
        wakeup_->begin_sleep();
        return box_.empty();
    }
    void end_sleep() noexcept { wakeup_->end_sleep(); }
    // Hands out the news, oldest first.
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
