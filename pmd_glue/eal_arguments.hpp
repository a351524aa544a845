// Reads and explains EAL's arguments and error messages without EAL. The functions are pure, so that each line that an
// operator may read has a test.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace cairn::pmd {

// Returns the value of `key` in a device argument "net_memif0,role=server,socket=/x".
[[nodiscard]] std::optional<std::string> devarg_value(std::string_view argument, std::string_view key);

// Returns the socket file that a net_memif server among the arguments would create. The server listens there, so an old
// file has to go. Abstract sockets and clients have none.
[[nodiscard]] std::optional<std::string> memif_listening_file(std::string_view vdev_argument);

// Returns the value of every --vdev among EAL's arguments before "--", in either form.
[[nodiscard]] std::vector<std::string> vdev_arguments(std::span<char* const> arguments);

// Returns whether the program's own arguments ask for a port of that kind: --port uring..., --port eth...
[[nodiscard]] bool asks_for_port(std::span<char* const> arguments, std::string_view kind);

// Returns EAL's arguments for a start without a device: the given ones and the missing ones. The missing ones are: no
// huge pages (unless the arguments mention them), no PCI scan, nothing shared, and the lcores. There are `lcores` of
// them, at least one. Each runs on any CPU of the process ("0,1").
[[nodiscard]] std::vector<std::string> arguments_without_device(std::span<char* const> eal_arguments,
                                                                std::string_view cpus, unsigned lcores = 1);

// Turns EAL's output before a failure into one line with a remedy.
[[nodiscard]] Error explain_eal_failure(std::string_view output);

}  // namespace cairn::pmd
