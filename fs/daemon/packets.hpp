// Packets of a unix socket that never wait.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fs/rules/access.hpp"
#include "lib/base/owned_fd.hpp"
#include "lib/base/result.hpp"

namespace cairn::fs {

// The user at the other end, as the kernel reports it.
struct Person {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
    std::int32_t pid = 0;
    std::vector<std::uint32_t> groups{};

    [[nodiscard]] Credentials credentials() const noexcept { return {uid, gid, groups}; }
};

// Returns the user at the other end, or null if the other end has gone.
[[nodiscard]] std::shared_ptr<const Person> person_at(int socket);

enum class Received : std::uint8_t {
    Packet,
    Nothing,  // no packet has come yet
    TooLong,  // the packet has no room
    End,      // the other end has gone, or has sent an empty packet, which looks the same
};

struct Reception {
    Received what = Received::Nothing;
    std::span<const std::uint8_t> bytes{};  // the packet's bytes, in the room
};

// Receives a packet. The kernel closes descriptors that come along: see MeetingPlace.
[[nodiscard]] Reception receive_packet(int socket, std::span<std::uint8_t> room) noexcept;

constexpr std::size_t kMostFds = 4;
// Sends a packet, and descriptors with it, at most kMostFds (asserted). Returns false if there is no room: the other
// end does not read, or has gone.
[[nodiscard]] bool send_packet(int socket, std::span<const std::uint8_t> bytes, std::span<const int> fds = {}) noexcept;

}  // namespace cairn::fs
