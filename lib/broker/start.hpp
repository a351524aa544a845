// Starts the broker's program so that it is independent of the program that starts it, and of its shell.
#pragma once

#include <string>

#include "lib/base/owned_fd.hpp"
#include "lib/base/result.hpp"
#include "lib/broker/packets.hpp"

namespace cairn::broker {

// Returns the path of the broker's program, in the folder of the library (or program) that this code is part of.
// CAIRN_BROKER names another one, or "off". An empty path: there is none.
[[nodiscard]] std::string find_program();

// Runs `program` for the place, with the listening socket. It is no child of this process, and has neither a terminal
// nor any other descriptor of this process. Errors: there is no such program; the kernel starts none.
[[nodiscard]] Status start_program(const std::string& program, const Place& place, const OwnedFd& listener);

// The descriptor at which the program finds its listening socket.
constexpr int kListenerFd = 3;

}  // namespace cairn::broker
