#include "lib/ibverbs/ah.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "lib/ibverbs/address_gids.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"

namespace cairn::ibverbs {

namespace {

// The place of a datagram's IPv4 header in the 40 bytes in front of its message.
constexpr std::size_t kIpv4At = 20;

}  // namespace

net::IpAddress to_address(const ibv_gid& gid) noexcept {
    std::array<std::uint8_t, 16> octets;
    std::copy_n(gid.raw, octets.size(), octets.begin());
    return address_of_gid(net::IpAddress::from_v6(octets));
}

ibv_gid to_gid(const net::IpAddress& address) noexcept {
    ibv_gid gid;
    std::copy(address.octets().begin(), address.octets().end(), gid.raw);
    return gid;
}

int open_path(Adapter& adapter, const ibv_ah_attr& wanted, port::Path*& path) noexcept {
    port::Port& port = adapter.worker().port();
    const net::IpAddress local = port.local_address();
    const net::IpAddress remote = to_address(wanted.grh.dgid);
    if (wanted.is_global == 0 || wanted.port_num != 1 || !gid_at(local, wanted.grh.sgid_index) ||
        remote.is_v4() != local.is_v4() || remote.is_unspecified()) {
        return EINVAL;
    }
    path = port.open_path({local, remote, port::kFirstUdpSourcePort, wanted.grh.traffic_class}, adapter.now());
    return path == nullptr ? ENOMEM : 0;
}

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* wanted) {
    return make_or_null([&]() -> ibv_ah* {
        auto ah = std::make_unique<Ah>();
        Adapter& adapter = adapter_of(pd->context);
        const std::lock_guard hold(adapter.lock());
        const int reason = open_path(adapter, *wanted, ah->path);
        if (reason != 0) {
            return fail(reason);
        }
        ah->path->pin();
        set_context(*ah, pd->context);
        ah->pd = pd;
        ++Pd::of(pd).users;
        return ah.release();
    });
}

int ibv_destroy_ah(ibv_ah* ah) {
    {
        const std::lock_guard hold(adapter_of(ah->context).lock());
        Ah::of(ah).path->unpin();
        --Pd::of(ah->pd).users;
    }
    delete &Ah::of(ah);
    return 0;
}

int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* out) {
    if ((wc->wc_flags & IBV_WC_GRH) == 0 || port != 1) {
        return EINVAL;
    }
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(grh);
    *out = {};
    out->is_global = 1;
    out->port_num = port;
    out->grh.hop_limit = 64;
    if (bytes[0] >> 4U == 6) {
        out->grh.dgid = grh->sgid;
        out->grh.sgid_index = kGidV6;
        out->grh.traffic_class = static_cast<std::uint8_t>(ntohl(grh->version_tclass_flow) >> 20U);
        out->grh.flow_label = ntohl(grh->version_tclass_flow) & 0xfffffU;
    } else if (bytes[kIpv4At] == 0x45) {
        std::uint32_t source = 0;
        std::copy_n(bytes + kIpv4At + 12, sizeof(source), reinterpret_cast<std::uint8_t*>(&source));
        out->grh.dgid = to_gid(cairn::net::IpAddress::from_v4(ntohl(source)));
        out->grh.sgid_index = kGidV4;
        out->grh.traffic_class = bytes[kIpv4At + 1];
    } else {
        return EINVAL;
    }
    const std::lock_guard hold(adapter_of(context).lock());
    return gid_at(adapter_of(context).worker().port().local_address(), out->grh.sgid_index) ? 0 : EINVAL;
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
    ibv_ah_attr wanted{};
    const int reason = ibv_init_ah_from_wc(pd->context, port, wc, grh, &wanted);
    return reason == 0 ? ibv_create_ah(pd, &wanted) : fail(reason);
}
