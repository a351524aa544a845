// What can be said of EAL's arguments and of its complaints without EAL: pure, so that each line an operator may
// read has a test.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace cairn::pmd {

// The value of `key` in a device argument "net_memif0,role=server,socket=/x".
[[nodiscard]] std::optional<std::string> devarg_value(std::string_view argument, std::string_view key);

// The socket file that a net_memif server among the arguments would have to create: it listens there, so a file
// that is in its way has to go. Abstract sockets and clients have none.
[[nodiscard]] std::optional<std::string> memif_listening_file(std::string_view vdev_argument);

// EAL's arguments before "--": every --vdev's value, in either form.
[[nodiscard]] std::vector<std::string> vdev_arguments(std::span<char* const> arguments);

// True when the program's own arguments ask for a port of that kind: --port uring..., --port eth...
[[nodiscard]] bool asks_for_port(std::span<char* const> arguments, std::string_view kind);

// The arguments with which EAL starts where there is no device for it: those given, and what is missing among them:
// no huge pages unless they are spoken of, no PCI scan, nothing shared, and one lcore that runs on any of the process's
// CPUs ("0,1").
[[nodiscard]] std::vector<std::string> arguments_without_device(std::span<char* const> eal_arguments,
                                                                std::string_view cpus);

// What EAL wrote on its way to failure, as one line with a remedy.
[[nodiscard]] Error explain_eal_failure(std::string_view output);

}  // namespace cairn::pmd
