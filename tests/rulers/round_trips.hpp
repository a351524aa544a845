// Prints the results of ping-pongs.
#pragma once

#include <algorithm>
#include <cstdio>
#include <vector>

// Sorts the round trips and prints their quantiles. There is at least one.
inline void print_round_trips(std::vector<double>& round_trips_us) {
    std::sort(round_trips_us.begin(), round_trips_us.end());
    const auto at = [&](double quantile) {
        return round_trips_us[static_cast<std::size_t>(quantile * static_cast<double>(round_trips_us.size() - 1))];
    };
    std::printf("{\"p50_us\":%.3f,\"p99_us\":%.3f}\n", at(0.5), at(0.99));
}
