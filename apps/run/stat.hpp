// --stat and --info: the running programs, and the devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/run/libraries.hpp"
#include "lib/base/result.hpp"
#include "lib/ibverbs/device_config.hpp"

namespace cairn::launch {

// Returns the abstract names, without '@', of the sockets in /proc/net/unix that listen and whose name begins with the
// prefix.
[[nodiscard]] std::vector<std::string> listening_sockets(std::string_view table, std::string_view prefix);

// Returns a process's answer as it is shown: "PID NAME", and the rest indented, so that no line looks like that of
// another process. The process may write anything, and it goes to a terminal: a byte that is not ASCII becomes '?'.
[[nodiscard]] std::string show_answer(int pid, std::string_view said);

// Prints the counters of the process, or of all processes of this user if `pid` is 0. Returns the exit status: 1 if the
// process uses no library of ours.
[[nodiscard]] int show_counters(int pid);

// Prints the devices that the library has, and the means that this machine allows. Errors: the library cannot be
// loaded.
[[nodiscard]] Status show_info(const Libraries& libraries, const std::vector<ibverbs::DeviceConfig>& devices);

}  // namespace cairn::launch
