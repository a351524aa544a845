// cairn-sim's arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "rpc/erpc/pacer.hpp"
#include "rpc/sim/erpc_plan.hpp"

namespace cairn::simulate {

enum class WorldKind : std::uint8_t { Erpc, Rc, Cm, Ud, Verbs, Copyrpc, Scalerpc, Mixed, Fs };

struct WorldWords {
    std::string_view argument;            // that chooses it
    std::string_view acts;                // the unit of its work
    std::string_view parcels = "frames";  // the unit of its traffic
};
constexpr std::array<WorldWords, 9> kWorldWords{{{"", "calls"},
                                                 {" --world rc", "requests"},
                                                 {" --world cm", "connections"},
                                                 {" --world ud", "messages"},
                                                 {" --world verbs", "requests"},
                                                 {" --world copyrpc", "calls"},
                                                 {" --world scalerpc", "calls"},
                                                 {" --world mixed", "messages"},
                                                 {" --world fs", "operations", "messages"}}};

[[nodiscard]] constexpr const WorldWords& words_of(WorldKind world) noexcept {
    return kWorldWords[static_cast<std::size_t>(world)];
}

struct Options {
    WorldKind world = WorldKind::Erpc;
    std::uint64_t first = 1;
    std::uint64_t seeds = 1000;
    double minutes = 0;   // instead of `seeds`; 0: not given
    bool single = false;  // runs one history, of seed `first`
    bool trace = false;
    std::string pcap;
    unsigned jobs = 1;
    bool small = false;
    bool json = false;
    bool sync = false;  // runs several ScaleRPC servers, synchronised or not, instead of histories
    // Runs, instead of histories, an incast of each of these numbers of clients with each algorithm.
    std::vector<std::size_t> incast;
    std::vector<erpc::CongestionAlgorithm> algorithms{
        erpc::CongestionAlgorithm::None, erpc::CongestionAlgorithm::Timely, erpc::CongestionAlgorithm::Dcqcn};
    std::uint16_t path_mtu_bytes = 1024;

    // Returns the arguments that choose the same history again, in addition to its seed.
    [[nodiscard]] std::string_view replay_arguments() const noexcept {
        return small ? " --small" : words_of(world).argument;
    }
    // Returns the unit of a history's work.
    [[nodiscard]] std::string_view acts_name() const noexcept { return words_of(world).acts; }
    [[nodiscard]] std::string_view parcels_name() const noexcept { return words_of(world).parcels; }
    [[nodiscard]] sim::WorldPlan plan_of(std::uint64_t seed) const noexcept {
        return small ? sim::WorldPlan::small_of_seed(seed) : sim::WorldPlan::of_seed(seed);
    }
};

// Parses the arguments. --help prints and exits with 0. An Error names the argument and the remedy.
Result<Options> parse_options(int argc, char** argv);

}  // namespace cairn::simulate
