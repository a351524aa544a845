#include "tests/unit/fs_client/fake_daemon.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <chrono>
#include <cstring>

#include "lib/base/passed_fds.hpp"

namespace cairn::fs {

void FakeDaemon::stop() {
    stops_ = true;
    if (thread_.joinable()) {
        thread_.join();
    }
    clients_.clear();
    listening_ = OwnedFd();
}

void FakeDaemon::start() {
    ::unlink(path_.c_str());
    listening_ = OwnedFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    ASSERT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(::listen(listening_.get(), 8), 0);
    stops_ = false;
    thread_ = std::thread([this] { run(); });
}

Welcome FakeDaemon::welcome(std::uint64_t client, std::uint64_t table_epoch) const {
    Welcome welcome;
    welcome.client = client;
    welcome.root = kFakeRoot;
    welcome.chunk_bytes = setup.chunk_bytes;
    welcome.daemons = 1;
    welcome.placement_key = 5;
    welcome.local = setup.local;
    welcome.shape = setup.shape;
    welcome.table.emplace(setup.shards);
    for (std::uint64_t i = 1; i < table_epoch; ++i) {
        welcome.table->give(0, welcome.table->owner(0));
    }
    return welcome;
}

void FakeDaemon::run() {
    while (!stops_) {
        bool worked = false;
        {
            const std::lock_guard lock(mutex_);
            accept();
            for (const auto& client : clients_) {
                meet(*client);
                for (const auto& channel : client->channels) {
                    worked = (answers && serve(*client, *channel)) || worked;
                }
            }
        }
        if (!worked) {
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
    }
}

void FakeDaemon::accept() {
    const int fd = ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        clients_.push_back(std::make_unique<Client>(Client{OwnedFd(fd)}));
    }
}

void FakeDaemon::meet(Client& client) {
    std::array<std::uint8_t, kMostHelloBytes> room{};
    const ssize_t bytes = ::recv(client.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (bytes <= 0) {
        return;
    }
    const std::span<const std::uint8_t> packet = std::span(room).first(static_cast<std::size_t>(bytes));
    if (const auto hello = parse_hello(packet)) {
        hellos.push_back(hello->client);
        send(client, hello_answer ? *hello_answer : bytes_of(welcome(hello->client == 0 ? 42 : hello->client, epoch)),
             {});
    } else if (const auto asks = parse_channel_request(packet)) {
        open_channel(client, *asks);
    } else if (parse_buffers_request(packet)) {
        give_buffers(client);
    } else {
        send(client, bytes_of(Refusal{"what is this?"}), {});
    }
}

void FakeDaemon::open_channel(Client& client, const ChannelRequest& asks) {
    if (channel_answer) {
        send(client, *channel_answer, {});
        return;
    }
    const auto number = static_cast<std::size_t>(
        std::ranges::count_if(client.channels, [&](const auto& each) { return each->shard == asks.shard; }));
    auto channel =
        std::make_unique<Channel>(Channel{asks.shard, number, ShardEnd(Segment::create(setup.shape).value())});
    send(client, bytes_of(asks), {channel->end.segment().fd(), doorbell_.get()});
    client.channels.push_back(std::move(channel));
}

void FakeDaemon::send(Client& client, std::span<const std::uint8_t> bytes, std::vector<int> fds) {
    send_with_fds<2>(client.socket.get(), bytes, fds, MSG_NOSIGNAL);
}

void FakeDaemon::give_buffers(Client& client) {
    if (buffer_bytes == 0) {
        send(client, bytes_of(BuffersRequest{}), {});
        return;
    }
    client.buffers =
        std::make_unique<SharedMemory>(SharedMemory::create(buffer_bytes, SharedMemory::Pages::AsTouched).value());
    send(client, bytes_of(BuffersRequest{buffer_bytes}), {client.buffers->fd(), client.buffers->fd()});
}

bool FakeDaemon::serve(Client& client, Channel& channel) {
    const std::uint64_t pending = channel.end.take_pending();
    for (std::uint32_t i = 0; i != setup.shape.slots; ++i) {
        const std::uint32_t slot = newest_first ? setup.shape.slots - 1 - i : i;
        if ((pending >> slot & 1U) != 0) {
            answer(client, channel, slot);
        }
    }
    return pending != 0;
}

void FakeDaemon::answer(Client& client, Channel& channel, std::uint32_t slot) {
    const auto bytes = channel.end.take(slot);
    ASSERT_TRUE(bytes.has_value());
    const std::optional<ParsedRequest> asked = parse_request(*bytes);
    ASSERT_TRUE(asked.has_value());
    seen.push_back({channel.shard, channel.number, slot, asked->head});
    std::optional<FakeFiles::Bytes> answer = fault ? fault(*asked) : std::nullopt;
    const std::span<std::uint8_t> all{channel.end.data(0).data(),
                                      std::size_t{setup.shape.slots} * setup.shape.data_bytes};
    const FakeFiles::Memory memory{all,
                                   client.buffers == nullptr ? std::span<std::uint8_t>{} : client.buffers->bytes()};
    if (const auto* const read = std::get_if<ReadRequest>(&asked->request)) {
        places.push_back(read->at);
    } else if (const auto* const write = std::get_if<WriteRequest>(&asked->request)) {
        places.push_back(write->at);
    }
    channel.end.answer(slot, answer ? *answer : files.answer(*asked, memory));
}

}  // namespace cairn::fs
