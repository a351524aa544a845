// Live counters of this process, for `cairn-run --stat`: a socket that any process of the same user may ask.
#pragma once

#include <memory>
#include <string>

#include "lib/ibverbs/adapter.hpp"

namespace cairn::ibverbs {

// Sockets have abstract names, which end with the process: kStatisticsPrefix, the process's number and a random word.
// Whoever connects reads lines up to the end: the program's name, then for each device its name and address, and its
// counters that are not zero, a line each.
constexpr const char* kStatisticsPrefix = "cairn-stat.";

// From now on the adapter's counters are shown, as those of that device, until the adapter ends. A thread that sleeps
// until it is asked does it, from the first call on. Where there is no thread or no descriptor, nothing is shown.
void show_statistics(const std::string& device, const std::shared_ptr<Adapter>& adapter);

}  // namespace cairn::ibverbs
