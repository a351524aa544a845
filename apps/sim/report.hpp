// The reports of cairn-sim about its histories.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/sim/history.hpp"

namespace cairn::simulate {

// Sums over histories.
struct Tally {
    std::uint64_t histories = 0;
    std::uint64_t acts = 0;     // calls, requests, connections
    std::uint64_t parcels = 0;  // frames, messages
    double virtual_s = 0;
    double cpu_s = 0;  // of the threads that lived through them
    std::vector<std::uint64_t> failures;

    void add(const History& world);
    [[nodiscard]] double histories_per_s_per_core() const noexcept;
    [[nodiscard]] std::string text(const Options& options) const;
    [[nodiscard]] std::string json(const Options& options) const;
};

// The command that replays a history: its seed, then Options::replay_arguments().
constexpr std::string_view kReplay = "cairn-sim --seed {}{} --trace";

[[nodiscard]] constexpr double microseconds_of(Duration span) noexcept {
    return static_cast<double>(span.ns) / 1e3;
}

// Returns the file for the frames of a failed history, in the working directory.
[[nodiscard]] std::string frames_file(std::uint64_t seed);

// Writes the last frames. Returns a line that names the file.
[[nodiscard]] std::string write_frames(const History& world, const std::string& file_name);

}  // namespace cairn::simulate
