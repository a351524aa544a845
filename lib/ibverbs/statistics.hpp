// Live counters of this process, for `cairn-run --stat`: any process of the same user may read them from a socket.
#pragma once

namespace cairn::ibverbs {

// Sockets have abstract names, which end with the process: kStatisticsPrefix, the process's number and a random word. A
// client that connects reads lines up to the end. The first is the program's name. Then come, for each device, its name
// and address, and its counters that are not zero, one a line.
constexpr const char* kStatisticsPrefix = "cairn-stat.";

// Starts, at the first call, a thread that sleeps until a client connects. It shows the counters of all adapters in
// use, and ends no adapter. If there is no thread or no descriptor, nothing is shown. Called by one thread at a time.
void show_statistics();

}  // namespace cairn::ibverbs
