#include "fs/client/connection.hpp"

#include <algorithm>

namespace cairn::fs {

Result<std::unique_ptr<Connection>> Connection::open(std::string path) {
    std::unique_ptr<Connection> connection(new Connection(std::move(path)));
    if (const Status met = connection->meet(0); !met.ok()) {
        return met.error();
    }
    return connection;
}

std::shared_ptr<const View> Connection::view() const {
    const std::lock_guard lock(mutex_);
    return view_;
}

bool Connection::has_hung_up() const {
    const std::lock_guard lock(mutex_);
    return socket_.has_hung_up();
}

std::size_t Connection::add_channel(ShardNumber shard) {
    const std::lock_guard lock(mutex_);
    Place& place = places_.emplace_back(Place{shard});
    Result<ChannelParts> parts = socket_.ask_channel(shard, view_->welcome().shape);
    if (parts.ok()) {
        place.fresh.emplace(std::move(parts).value());
        place.fresh->meeting = meeting();
    } else {
        socket_ = DaemonSocket();  // the next packet might not answer the next question
    }
    return places_.size() - 1;
}

std::optional<ChannelParts> Connection::take(std::size_t place) {
    const std::lock_guard lock(mutex_);
    std::optional<ChannelParts> parts = std::move(places_[place].fresh);
    places_[place].fresh.reset();
    return parts;
}

std::uint8_t* Connection::take_buffer(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (asked_buffers_ != meeting()) {
        Result<std::optional<SharedMemory>> memory = socket_.ask_buffers();
        if (!memory.ok()) {
            socket_ = DaemonSocket();  // the next packet might not answer the next question
            return nullptr;
        }
        asked_buffers_ = meeting();
        if (memory.value()) {
            buffers_.add(std::make_unique<BufferPool>(std::move(*memory.value()), meeting()));
        }
    }
    return buffers_.take(bytes, meeting());
}

bool Connection::meet_again(std::uint64_t since) {
    const std::lock_guard lock(mutex_);
    return meeting() != since || meet(view_->welcome().client).ok();
}

// Counts as a meeting only once all channels are there.
Status Connection::meet(std::uint64_t client) {
    socket_ = DaemonSocket();
    Result<DaemonSocket> socket = DaemonSocket::connect(path_);
    if (!socket.ok()) {
        return socket.error();
    }
    Result<Welcome> welcome = socket.value().meet(client);
    if (!welcome.ok()) {
        return welcome.error();
    }
    const std::vector<std::uint16_t>& local = welcome.value().local;
    for (Place& place : places_) {
        place.fresh.reset();
        if (std::ranges::find(local, place.shard) == local.end()) {
            continue;
        }
        Result<ChannelParts> parts = socket.value().ask_channel(place.shard, welcome.value().shape);
        if (!parts.ok()) {
            return parts.error();
        }
        place.fresh.emplace(std::move(parts).value());
        place.fresh->meeting = meeting() + 1;
    }
    socket_ = std::move(socket).value();
    view_ = std::make_shared<const View>(meeting() + 1, std::move(welcome).value());
    meeting_.store(view_->meeting(), std::memory_order_release);
    return Nothing{};
}

}  // namespace cairn::fs
