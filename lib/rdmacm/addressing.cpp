// The addresses of endpoints, and the paths to their peers.
#include <cerrno>
#include <cstring>
#include <vector>

#include "lib/ibverbs/address_gids.hpp"
#include "lib/ibverbs/ah.hpp"
#include "lib/ibverbs/translate.hpp"
#include "lib/rdmacm/endpoint.hpp"
#include "lib/rdmacm/exchange.hpp"

namespace cairn::rdmacm {

namespace {

// Chooses the device that reaches `remote`. Returns an errno value.
[[nodiscard]] int choose_device(const End& remote, Device*& device) {
    int reason = 0;
    const std::optional<net::IpAddress> source = source_of_route(remote, reason);
    if (!source) {
        return reason;
    }
    const auto& all = ibverbs::all_devices();
    std::vector<net::IpAddress> addresses;
    for (const auto& each : all) {
        addresses.push_back(each->config.address);
    }
    const std::optional<std::size_t> chosen = choose_source(addresses, *source, remote.address);
    if (chosen) {
        device = open_device(*all[*chosen]);
    } else {
        explain_address(*source);
    }
    return 0;
}

// Notifies the program that its request is done, or why it failed.
void answer(Endpoint& endpoint, rdma_cm_event_type type, int status) {
    tell(std::make_unique<Event>(endpoint, type, status));
}

[[nodiscard]] int read_byte(std::span<const std::uint8_t> value, std::uint8_t& out) noexcept {
    if (value.size() != 1) {
        return EINVAL;
    }
    out = value[0];
    return 0;
}

[[nodiscard]] int read_flag(std::span<const std::uint8_t> value, bool& out) noexcept {
    int number = 0;
    if (value.size() != sizeof(number)) {
        return EINVAL;
    }
    std::memcpy(&number, value.data(), sizeof(number));
    out = number != 0;
    return 0;
}

// Sets the option. Returns an errno value.
[[nodiscard]] int set_endpoint_option(Endpoint& endpoint, int name, std::span<const std::uint8_t> value) noexcept {
    constexpr std::uint8_t kLargestTimeout = 31;
    const bool unbound = endpoint.state == State::Idle || endpoint.state == State::Bound;
    std::uint8_t byte = 0;
    bool flag = false;
    switch (name) {
        case RDMA_OPTION_ID_TOS:
            return read_byte(value, endpoint.options.traffic_class);
        case RDMA_OPTION_ID_REUSEADDR:
            return unbound ? read_flag(value, endpoint.options.shares_port) : EINVAL;
        case RDMA_OPTION_ID_AFONLY:
            if (!unbound || read_flag(value, flag) != 0) {
                return EINVAL;
            }
            endpoint.options.own_family = flag;
            return 0;
        case RDMA_OPTION_ID_ACK_TIMEOUT:
            if (read_byte(value, byte) != 0 || byte > kLargestTimeout || endpoint.is_datagrams()) {
                return EINVAL;
            }
            endpoint.options.ack_timeout = byte;
            return 0;
        default:
            return ENOSYS;
    }
}

// Claims a port, and writes it to the claim. Returns an errno value: the port is taken, or all are.
[[nodiscard]] int claim_alone(PortClaim& claim) {
    claim.port = claim_port(claim);
    return claim.port != 0 ? 0 : EADDRINUSE;
}

// As claim_alone(), for a port that no other program of the address has either.
[[nodiscard]] int claim_with_service(const Endpoint& endpoint, const Device& device, PortClaim& claim) {
    constexpr int kTries = 64;  // limit of attempts: other programs may have taken this many ports that are free here
    const std::uint16_t wanted = claim.port;
    int refused = 0;
    for (int tries = 0; tries < (wanted != 0 ? 1 : kTries); ++tries) {
        claim.port = wanted;
        refused = claim_alone(claim);
        if (refused != 0) {
            return refused;
        }
        refused = claim_service(device, service_of(endpoint, claim.port), claim.shares);
        if (refused == 0) {
            return 0;
        }
        release_port(claim);
        if (refused != EADDRINUSE) {
            return refused;
        }
    }
    return refused;
}

}  // namespace

bool is_of_own_family(const Endpoint& endpoint, const End& local) noexcept {
    return endpoint.options.own_family.value_or(local.address.is_v4());
}

ibv_ah_attr way_between(const net::IpAddress& local, const net::IpAddress& remote) noexcept {
    constexpr std::uint8_t kHopLimit = 64;
    ibv_ah_attr way{};
    way.is_global = 1;
    way.port_num = 1;
    way.grh.dgid = ibverbs::to_gid(remote);
    way.grh.sgid_index = local.is_v4()              ? ibverbs::kGidV4
                         : local.is_v6_link_local() ? ibverbs::kGidLinkLocal
                                                    : ibverbs::kGidV6;
    way.grh.hop_limit = kHopLimit;
    return way;
}

ibv_ah_attr way_to(const Endpoint& endpoint, const net::IpAddress& remote) noexcept {
    ibv_ah_attr way = way_between(endpoint.device->address(), remote);
    way.grh.traffic_class = endpoint.options.traffic_class;
    return way;
}

ibv_sa_path_rec path_of(const Endpoint& endpoint) noexcept {
    constexpr std::uint8_t kExactly = 2;
    constexpr std::uint8_t kLifetime = 12;  // of packets, as the connection manager assumes
    ibv_sa_path_rec path{};
    path.dgid = ibverbs::to_gid(endpoint.remote.address);
    path.sgid = ibverbs::to_gid(endpoint.local.address);
    path.hop_limit = 64;
    path.traffic_class = endpoint.options.traffic_class;
    path.reversible = 1;
    path.numb_path = 1;
    path.pkey = 0xffff;
    path.mtu_selector = kExactly;
    path.mtu = static_cast<std::uint8_t>(ibverbs::mtu_of(path_mtu_bytes(*endpoint.device)));
    path.rate_selector = kExactly;
    path.rate = IBV_RATE_100_GBPS;
    path.packet_life_time_selector = kExactly;
    path.packet_life_time = kLifetime;
    return path;
}

int take_address(Endpoint& endpoint, const End& local, Purpose purpose) {
    Device* device = nullptr;
    if (!local.address.is_unspecified()) {
        if (const int refused = check_local(local); refused != 0) {
            explain_address(local.address);
            return refused;
        }
        device = device_at(local.address);
        if (device == nullptr) {
            const int refused = errno;
            explain_address(local.address);
            return refused;
        }
    }
    PortClaim claim{endpoint.space, local.address, local.port, endpoint.options.shares_port};
    claim.serves = purpose == Purpose::Serve && device != nullptr;
    claim.own_family = is_of_own_family(endpoint, local);
    const int refused = claim.serves ? claim_with_service(endpoint, *device, claim) : claim_alone(claim);
    if (refused != 0) {
        return refused == EADDRINUSE && local.port == 0 ? EADDRNOTAVAIL : refused;
    }
    endpoint.claimed = claim;
    endpoint.local = local;
    endpoint.local.port = claim.port;
    endpoint.device = device;
    endpoint.state = State::Bound;
    return 0;
}

int bind(Endpoint& endpoint, const End& local) {
    const Held held(endpoint);
    return judge_call(endpoint.state, Call::Bind) == Answer::Go ? take_address(endpoint, local, Purpose::Serve)
                                                                : EINVAL;
}

// Resolves the address. A caller asks for a loopback to itself by the unspecified address.
int resolve_address(Endpoint& endpoint, const std::optional<End>& local, const End& remote) {
    const Held held(endpoint);
    const Answer verdict = judge_call(endpoint.state, Call::ResolveAddress);
    if (verdict == Answer::No) {
        return EINVAL;
    }
    if (verdict == Answer::BindFirst) {
        const net::IpAddress any = remote.is_v6 ? net::IpAddress{} : net::IpAddress::from_v4(0);
        const int refused = take_address(endpoint, local.value_or(End{any, 0, remote.is_v6, 0}), Purpose::Ask);
        if (refused != 0) {
            return refused;
        }
    }
    Device* device = endpoint.device;
    if (device == nullptr) {
        const int refused = choose_device(remote, device);
        if (refused != 0) {
            return refused;
        }
    }
    if (device == nullptr ||
        (!remote.address.is_unspecified() && device->address().is_v4() != remote.address.is_v4())) {
        answer(endpoint, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
        return 0;
    }
    if (endpoint.device == nullptr) {  // the port stays claimed at all addresses
        endpoint.device = device;
        endpoint.local.address = device->address();
    }
    endpoint.remote = remote;
    if (remote.address.is_unspecified()) {
        endpoint.remote.address = device->address();
    }
    endpoint.state = State::AddressResolved;
    answer(endpoint, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    return 0;
}

int resolve_route(Endpoint& endpoint) {
    const Held held(endpoint);
    if (judge_call(endpoint.state, Call::ResolveRoute) != Answer::Go) {
        return EINVAL;
    }
    endpoint.state = State::RouteResolved;
    answer(endpoint, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    return 0;
}

// Sets the option. A path that is given is as good as one that was looked up: on Ethernet there is one.
int set_option(Endpoint& endpoint, int level, int name, std::span<const std::uint8_t> value) {
    if (level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH) {
        return value.empty() || value.size() % sizeof(ibv_path_data) != 0 ? EINVAL : resolve_route(endpoint);
    }
    if (level != RDMA_OPTION_ID) {
        return ENOSYS;
    }
    const Held held(endpoint);
    return set_endpoint_option(endpoint, name, value);
}

}  // namespace cairn::rdmacm
