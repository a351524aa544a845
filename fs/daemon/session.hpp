// A connection to a client, as Sessions keeps it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fs/daemon/sessions.hpp"

namespace cairn::fs {

constexpr const char* kOneVersion = "run daemons and clients of one version";  // the remedy for invalid messages

struct Sessions::Session {
    OwnedFd socket;
    std::shared_ptr<const Person> person;
    Instant hello_by;
    std::uint64_t client = 0;  // 0 before its Hello
    std::shared_ptr<ClientBuffers> buffers = std::make_shared<ClientBuffers>();
    std::vector<std::uint8_t> channels{};  // how many it has asked for, by shard
    bool awaits_channel = false;           // meanwhile nothing is read from it
    bool has_ended = false;
};

}  // namespace cairn::fs
