// A client's end of the socket at which it meets its daemon.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "fs/channel/segment.hpp"
#include "fs/message/hello.hpp"
#include "lib/base/owned_fd.hpp"
#include "lib/base/result.hpp"
#include "lib/base/time.hpp"

namespace cairn::fs {

// What a daemon hands over for a channel.
struct ChannelParts {
    Segment segment;
    OwnedFd doorbell;           // of the shard
    std::uint64_t meeting = 0;  // at which the daemon gave it
};

class DaemonSocket {
public:
    // A daemon that does not answer for so long is none.
    static constexpr Duration kPatience = seconds(2);

    DaemonSocket() = default;
    // Errors: no daemon is there, or this user may not go there.
    static Result<DaemonSocket> connect(const std::string& path);

    // Errors of the following: the daemon refuses, says what this client does not understand, or hangs up.
    // `client`: see Hello.
    Result<Welcome> meet(std::uint64_t client);
    // Instead of meeting it. The daemon hangs up behind its answer.
    Result<std::string> ask_counters();
    Result<ChannelParts> ask_channel(std::uint16_t shard, const ChannelShape& shape);
    // Nothing: the daemon has no memory for buffers.
    Result<std::optional<SharedMemory>> ask_buffers();

    // The daemon is gone, or there never was one.
    [[nodiscard]] bool has_hung_up() const noexcept;

private:
    struct Packet {
        std::array<std::uint8_t, kMostHelloBytes> room;
        std::span<const std::uint8_t> bytes{};
        std::array<OwnedFd, 2> descriptors{};
    };
    DaemonSocket(OwnedFd socket, std::string path) noexcept : socket_(std::move(socket)), path_(std::move(path)) {}

    Status send(std::span<const std::uint8_t> bytes);
    Status receive(Packet& packet);
    // Says why a packet is not what was asked for.
    [[nodiscard]] Error refused(std::span<const std::uint8_t> bytes) const;

    OwnedFd socket_;
    std::string path_;
};

}  // namespace cairn::fs
