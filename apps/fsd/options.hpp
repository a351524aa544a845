// The own arguments of cairn-fsd, and its configuration file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/port_options.hpp"
#include "fs/channel/segment.hpp"
#include "fs/daemon/cluster.hpp"
#include "fs/daemon/stores.hpp"
#include "lib/base/result.hpp"

namespace cairn::fsd {

struct Options {
    fs::StoreWishes stores{};
    std::string shm_prefix = "/run/cairn-fs";
    mode_t socket_mode = 0666;
    std::string key_file{};            // empty: the key comes from the stores
    std::vector<std::string> nodes{};  // addresses of all daemons; none: there is one
    std::optional<std::uint32_t> node{};
    fs::Cluster cluster{};  // follows from `nodes` and `node`
    std::uint32_t max_clients = 32;
    std::uint32_t max_user_clients = 0;  // of these, clients of any user but root and the daemon's own
    fs::ChannelShape shape{};
    std::uint64_t buffer_bytes = std::uint64_t{64} << 20U;  // of a client
    bool spin = false;
    std::uint32_t stats_s = 0;  // 0: none
    app::PortOptions ports{};
    bool has_eal = false;  // there are arguments for EAL; its first device is the port if none is named

    // Returns whether there is a network. Otherwise there are clients of this machine alone.
    [[nodiscard]] bool has_network() const noexcept { return has_eal || !ports.port.empty(); }
};

// Parses argv[first...], and the file named by --config. The arguments before are EAL's, and the last of them, if there
// are any, is "--". --help and --version print and exit with 0.
// An Error names the argument, or the line of the file, and the remedy.
Result<Options> parse_options(int argc, char** argv, int first);

}  // namespace cairn::fsd
