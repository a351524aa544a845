#include "pmd_glue/port_argument.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <charconv>

#include "lib/port/udp_socket.hpp"

namespace cairn::pmd {

namespace {

constexpr std::string_view kEthdev = "eth:";
constexpr std::string_view kSocket = "uring";

Result<PortChoice> choose_first() {
    const std::uint16_t first = rte_eth_find_next(0);
    if (first < RTE_MAX_ETHPORTS) {
        fmt::print(stderr, "no --port given: taking eth:{}\n", first);
        return PortChoice(EthdevChoice{first});
    }
    const net::IpAddress local = port::first_local_address();
    fmt::print(stderr, "no --port given and EAL found no ethernet port: taking uring:{}\n", local.text());
    return PortChoice(SocketChoice{local});
}

Result<PortChoice> choose_socket(std::string_view text) {
    text.remove_prefix(kSocket.size());
    if (text.empty()) {
        return PortChoice(SocketChoice{port::first_local_address()});
    }
    text.remove_prefix(1);
    const Result<net::IpAddress> local = net::IpAddress::parse(text);
    if (!local.ok()) {
        return local.error();
    }
    if (!local.value().is_station()) {
        return Error{fmt::format("--port uring:{} is no address of one machine", text),
                     "give the address that peers send to: it is part of every packet's checksum"};
    }
    if (local.value().is_v6_link_local()) {
        return Error{fmt::format("--port uring:{} is a link-local address, which needs a scope", text),
                     "give a global or unique local address of this machine (ip -6 addr lists them)"};
    }
    return PortChoice(SocketChoice{local.value()});
}

}  // namespace

Result<PortChoice> choose_port(std::string_view text) {
    if (text.empty()) {
        return choose_first();
    }
    if (text == kSocket || text.starts_with("uring:")) {
        return choose_socket(text);
    }
    std::uint16_t number = 0;
    const std::string_view digits = text.substr(std::min(text.size(), kEthdev.size()));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (!text.starts_with(kEthdev) || error != std::errc() || end != digits.data() + digits.size()) {
        return Error{fmt::format("--port {} is no port", text),
                     "write eth:0 for EAL's first ethernet port, or uring:ADDRESS for a UDP socket"};
    }
    if (rte_eth_dev_is_valid_port(number) == 0) {
        return Error{fmt::format("--port {} does not exist; EAL found {}", text, rte_eth_dev_count_avail()),
                     "add a --vdev or -a argument before \"--\", or choose another --port"};
    }
    return PortChoice(EthdevChoice{number});
}

Result<std::uint16_t> choose_ethdev(std::string_view text) {
    const Result<PortChoice> choice = choose_port(text);
    if (!choice.ok()) {
        return choice.error();
    }
    if (const auto* ethdev = std::get_if<EthdevChoice>(&choice.value()); ethdev != nullptr) {
        return ethdev->port_id;
    }
    return Error{
        text.empty() ? std::string("EAL found no ethernet port") : fmt::format("--port {} carries no frames", text),
        "add a --vdev or -a argument before \"--\""};
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
