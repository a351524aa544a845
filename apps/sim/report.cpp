#include "apps/sim/report.hpp"

#include <fmt/format.h>

namespace cairn::simulate {

void Tally::add(const History& world) {
    ++histories;
    acts += world.acts();
    parcels += world.parcels();
    virtual_s += static_cast<double>(world.now().ns) / 1e9;
}

double Tally::histories_per_s_per_core() const noexcept {
    return cpu_s > 0 ? static_cast<double>(histories) / cpu_s : 0;
}

std::string Tally::text(const Options& options) const {
    return fmt::format("{} histories, {} failed; {} {}, {} {}, {:.1f} s of virtual time; {:.1f} histories/s per core",
                       histories, failures.size(), acts, options.acts_name(), parcels, options.parcels_name(),
                       virtual_s, histories_per_s_per_core());
}

std::string Tally::json(const Options& options) const {
    std::string seeds;
    for (const std::uint64_t seed : failures) {
        seeds += fmt::format("{}{}", seeds.empty() ? "" : ",", seed);
    }
    return fmt::format(R"({{"histories":{},"failures":[{}],"histories_per_s_per_core":{:.1f},"{}":{},"{}":{},)"
                       R"("virtual_s":{:.3f}}})",
                       histories, seeds, histories_per_s_per_core(), options.acts_name(), acts, options.parcels_name(),
                       parcels, virtual_s);
}

std::string frames_file(std::uint64_t seed) {
    return fmt::format("cairn-sim-{}.pcap", seed);
}

std::string write_frames(const History& world, const std::string& file_name) {
    if (world.capture() == nullptr) {
        return "no frames: this world has none";
    }
    return world.capture()->write(file_name)
               ? "frames: " + file_name
               : "no frames: " + file_name + " cannot be written; choose a working directory that can";
}

}  // namespace cairn::simulate
