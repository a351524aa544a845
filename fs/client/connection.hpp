// Connection: a client's meetings with its daemon, one after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fs/client/buffers.hpp"
#include "fs/client/daemon_socket.hpp"
#include "fs/client/view.hpp"

namespace cairn::fs {

// Shared by the client's threads. A daemon numbers a client's channels to a shard in the order of the client's
// requests. It uses that number to find calls that it has answered. So after a loss the client asks for all channels
// again, in the same order.
class Connection {
public:
    // Meets the daemon. Errors: see DaemonSocket.
    static Result<std::unique_ptr<Connection>> open(std::string path);

    [[nodiscard]] std::shared_ptr<const View> view() const;
    [[nodiscard]] std::uint64_t meeting() const noexcept { return meeting_.load(std::memory_order_acquire); }
    [[nodiscard]] bool has_hung_up() const;

    // Asks for one more channel, for good. Returns its place. take() returns it if the daemon gave it.
    [[nodiscard]] std::size_t add_channel(ShardNumber shard);
    // Returns what the daemon gave at the last meeting for this channel. Returns it once.
    [[nodiscard]] std::optional<ChannelParts> take(std::size_t place);
    // Takes a buffer in memory that the daemon shares. The client asks for that memory once at each meeting. Returns
    // null if there is no room for `bytes`, or no daemon.
    [[nodiscard]] std::uint8_t* take_buffer(std::size_t bytes);
    [[nodiscard]] Buffers& buffers() noexcept { return buffers_; }

    // Meets the daemon anew, unless a thread has done so since this meeting. Returns false if there is no daemon.
    [[nodiscard]] bool meet_again(std::uint64_t since);

private:
    struct Place {
        ShardNumber shard = 0;
        std::optional<ChannelParts> fresh{};
    };
    explicit Connection(std::string path) noexcept : path_(std::move(path)) {}

    Status meet(std::uint64_t client);

    std::string path_;
    Buffers buffers_;
    mutable std::mutex mutex_;         // guards the members below
    std::uint64_t asked_buffers_ = 0;  // the meeting at which buffers were asked for
    DaemonSocket socket_;
    std::shared_ptr<const View> view_;
    std::vector<Place> places_;
    std::atomic<std::uint64_t> meeting_{0};
};

}  // namespace cairn::fs
