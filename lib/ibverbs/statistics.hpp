// Live counters of this process, for `cairn-run --stat`: a socket that any process of the same user may ask.
#pragma once

namespace cairn::ibverbs {

// Sockets have abstract names, which end with the process: kStatisticsPrefix, the process's number and a random word.
// Whoever connects reads lines up to the end: the program's name, then for each device its name and address, and its
// counters that are not zero, a line each.
constexpr const char* kStatisticsPrefix = "cairn-stat.";

// From the first call on, a thread that sleeps until it is asked shows the counters of all adapters in use. It ends
// none of them. Where there is no thread or no descriptor, nothing is shown. Called by one thread at a time.
void show_statistics();

}  // namespace cairn::ibverbs
