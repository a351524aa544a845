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

// The parts of a channel that a daemon hands over.
struct ChannelParts {
    Segment segment;
    OwnedFd doorbell;           // of the shard
    std::uint64_t meeting = 0;  // the one at which the daemon gave it
};

class DaemonSocket {
public:
    // A daemon that does not answer for this long counts as absent.
    static constexpr Duration kPatience = seconds(2);

    DaemonSocket() = default;
    // Connects to a daemon. Errors: no daemon is there, or this user may not connect.
    static Result<DaemonSocket> connect(const std::string& path);

    // Greets the daemon. `client`: see Hello. Errors of this function and the next ones: the daemon refuses, hangs up,
    // or says what this client does not understand.
    Result<Welcome> meet(std::uint64_t client);
    // Asks for the counters; it replaces meet(). The daemon hangs up after its answer.
    Result<std::string> ask_counters();
    Result<ChannelParts> ask_channel(std::uint16_t shard, const ChannelShape& shape);
    // Asks for memory for buffers. Returns nothing if the daemon has none.
    Result<std::optional<SharedMemory>> ask_buffers();

    // True if the daemon is gone, or there never was one.
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
    // Returns the reason why a packet is not the expected answer.
    [[nodiscard]] Error refused(std::span<const std::uint8_t> bytes) const;

    OwnedFd socket_;
    std::string path_;
};

}  // namespace cairn::fs
