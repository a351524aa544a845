#include "apps/sim/report.hpp"

#include <fmt/format.h>

namespace cairn::simulate {

void Tally::add(const History& world) {
    ++histories;
    acts += world.acts();
    frames += world.frames();
    virtual_s += static_cast<double>(world.now().ns) / 1e9;
}

double Tally::histories_per_s_per_core() const noexcept {
    return cpu_s > 0 ? static_cast<double>(histories) / cpu_s : 0;
}

std::string Tally::text(const Options& options) const {
    return fmt::format(
        "{} histories, {} failed; {} {}, {} frames, {:.1f} s of virtual time; {:.1f} histories/s per core", histories,
        failures.size(), acts, options.acts_name(), frames, virtual_s, histories_per_s_per_core());
}

std::string Tally::json(const Options& options) const {
    std::string seeds;
    for (const std::uint64_t seed : failures) {
        seeds += fmt::format("{}{}", seeds.empty() ? "" : ",", seed);
    }
    return fmt::format(R"({{"histories":{},"failures":[{}],"histories_per_s_per_core":{:.1f},"{}":{},"frames":{},)"
                       R"("virtual_s":{:.3f}}})",
                       histories, seeds, histories_per_s_per_core(), options.acts_name(), acts, frames, virtual_s);
}

std::string frames_file(std::uint64_t seed) {
    return fmt::format("cairn-sim-{}.pcap", seed);
}

std::string write_frames(const History& world, const std::string& file_name) {
    return world.capture().write(file_name)
               ? "frames: " + file_name
               : "no frames: " + file_name + " cannot be written; choose a working directory that can";
}

}  // namespace cairn::simulate
