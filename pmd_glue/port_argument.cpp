#include "pmd_glue/port_argument.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>

#include <charconv>

namespace cairn::pmd {

Result<std::uint16_t> choose_port(std::string_view text) {
    constexpr std::string_view kPrefix = "eth:";
    if (text.empty()) {
        const std::uint16_t first = rte_eth_find_next(0);
        if (first >= RTE_MAX_ETHPORTS) {
            return Error{"EAL found no ethernet port", "add a --vdev or -a argument before \"--\""};
        }
        fmt::print(stderr, "no --port given: taking eth:{}\n", first);
        return first;
    }
    std::uint16_t number = 0;
    const std::string_view digits = text.substr(std::min(text.size(), kPrefix.size()));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (!text.starts_with(kPrefix) || error != std::errc() || end != digits.data() + digits.size()) {
        return Error{fmt::format("--port {} is no port", text), "write eth:0 for EAL's first ethernet port"};
    }
    if (rte_eth_dev_is_valid_port(number) == 0) {
        return Error{fmt::format("--port {} does not exist; EAL found {}", text, rte_eth_dev_count_avail()),
                     "add a --vdev or -a argument before \"--\", or choose another --port"};
    }
    return number;
}

std::vector<std::uint16_t> all_ports() {
    std::vector<std::uint16_t> found;
    for (std::uint64_t port = rte_eth_find_next(0); port < RTE_MAX_ETHPORTS;
         port = rte_eth_find_next(static_cast<std::uint16_t>(port + 1))) {
        found.push_back(static_cast<std::uint16_t>(port));
    }
    return found;
}

}  // namespace cairn::pmd
