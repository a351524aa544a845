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

// Shared by the client's threads. A daemon numbers a client's channels to a shard in the order in which it asks for
// them, and finds calls that it has answered by that number: so after a loss all channels are asked for again, in the
// same order.
class Connection {
public:
    // Errors: see DaemonSocket.
    static Result<std::unique_ptr<Connection>> open(std::string path);

    [[nodiscard]] std::shared_ptr<const View> view() const;
    [[nodiscard]] std::uint64_t meeting() const noexcept { return meeting_.load(std::memory_order_acquire); }
    [[nodiscard]] bool has_hung_up() const;

    // One more channel, for good. Returns its place; take() has it if the daemon gave it.
    [[nodiscard]] std::size_t add_channel(ShardNumber shard);
    // What the daemon gave at the last meeting for this channel, once.
    [[nodiscard]] std::optional<ChannelParts> take(std::size_t place);
    // A buffer in memory that the daemon shares, which it is asked for once at each meeting. Null: there is no room for
    // so many bytes, or no daemon.
    [[nodiscard]] std::uint8_t* take_buffer(std::size_t bytes);
    [[nodiscard]] Buffers& buffers() noexcept { return buffers_; }

    // Meets the daemon anew, unless a thread has done so since this meeting. Returns false if there is none.
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
    mutable std::mutex mutex_;         // guards what follows
    std::uint64_t asked_buffers_ = 0;  // at this meeting
    DaemonSocket socket_;
    std::shared_ptr<const View> view_;
    std::vector<Place> places_;
    std::atomic<std::uint64_t> meeting_{0};
};

}  // namespace cairn::fs
