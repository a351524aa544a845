// Queries of devices, ports and their tables.
#include <algorithm>
#include <cstring>
#include <ctime>

#include "lib/base/monotonic_clock.hpp"
#include "lib/ibverbs/address_gids.hpp"
#include "lib/ibverbs/ah.hpp"
#include "lib/ibverbs/description.hpp"
#include "lib/ibverbs/exports.hpp"
#include "lib/ibverbs/guarded.hpp"
#include "lib/ibverbs/private_api.hpp"
#include "lib/ibverbs/qp.hpp"
#include "lib/ibverbs/translate.hpp"
#include "lib/port/udp_socket.hpp"

namespace cairn::ibverbs {

namespace {

// Returns the GID; nullopt also if its address went.
[[nodiscard]] std::optional<net::IpAddress> gid_of(ibv_context* context, std::uint32_t port, int index) noexcept {
    const Context& of = Context::of(context);
    const std::lock_guard hold(of.adapter->lock());
    return port == 1 && of.port->has_address() ? gid_at(of.of_device->config.address, index) : std::nullopt;
}

}  // namespace

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out, std::size_t bytes) noexcept {
    constexpr std::uint8_t kDisabled = 3;
    if (port != 1) {
        return EINVAL;
    }
    ibv_port_attr whole{};
    describe_port(whole);
    {
        const std::lock_guard hold(adapter_of(context).lock());
        if (!Context::of(context).port->is_active()) {
            whole.state = IBV_PORT_DOWN;
            whole.phys_state = kDisabled;
        }
        whole.active_mtu = mtu_of(roce::largest_path_mtu(adapter_of(context).worker().port()));
    }
    std::memset(out, 0, bytes);
    std::memcpy(out, &whole, std::min(bytes, sizeof(whole)));
    return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* out,
                    std::size_t bytes) noexcept {
    if ((input != nullptr && input->comp_mask != 0) || bytes < sizeof(ibv_device_attr)) {
        return EINVAL;
    }
    ibv_device_attr_ex whole{};
    describe_device(Context::of(context).of_device->config, whole.orig_attr);
    whole.completion_timestamp_mask = ~std::uint64_t{0};
    whole.hca_core_clock = 1'000'000;  // kHz: its timestamps are nanoseconds
    whole.phys_port_cnt_ex = 1;
    describe_extensions(whole);
    std::memset(out, 0, bytes);
    std::memcpy(out, &whole, std::min(bytes, sizeof(whole)));
    return 0;
}

// Writes the time as timestamps of completions have it: all of it in the nanoseconds.
int query_clock(ibv_context*, ibv_values_ex* values) noexcept {
    values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
    if (values->comp_mask != 0) {
        values->raw_clock = {0, read_monotonic().ns};
    }
    return 0;
}

}  // namespace cairn::ibverbs

using namespace cairn::ibverbs;

const char* ibv_get_device_name(ibv_device* device) {
    return device->name;
}

__be64 ibv_get_device_guid(ibv_device* device) {
    return guid_word(Device::of(device).config.address);
}

int ibv_get_device_index(ibv_device* device) {
    return Device::of(device).index;
}

int ibv_query_device(ibv_context* context, ibv_device_attr* out) {
    describe_device(Context::of(context).of_device->config, *out);
    return 0;
}

// Programs of old headers have a shorter structure, which ends where `flags` begins.
int ibv_query_port(ibv_context* context, std::uint8_t port, _compat_ibv_port_attr* out) {
    return query_port(context, port, reinterpret_cast<ibv_port_attr*>(out), offsetof(ibv_port_attr, port_cap_flags2));
}

int ibv_query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* out) {
    if (port != 1 || index < 0 || index >= kGids) {
        errno = EINVAL;
        return -1;
    }
    const auto gid = gid_of(context, port, index);
    *out = gid ? to_gid(*gid) : ibv_gid{};
    return 0;
}

int _ibv_query_gid_ex(ibv_context* context, std::uint32_t port, std::uint32_t index, ibv_gid_entry* out,
                      std::uint32_t flags, std::size_t bytes) {
    if (port != 1 || index >= kGids || flags != 0) {
        return EINVAL;
    }
    const auto gid = gid_of(context, port, static_cast<int>(index));
    if (!gid) {
        return ENODATA;
    }
    ibv_gid_entry entry{};
    entry.gid = to_gid(*gid);
    entry.gid_index = index;
    entry.port_num = port;
    entry.gid_type = IBV_GID_TYPE_ROCE_V2;
    entry.ndev_ifindex = cairn::port::interface_index(Context::of(context).of_device->config.address).value_or(0);
    std::memcpy(out, &entry, std::min(bytes, sizeof(entry)));
    return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most, std::uint32_t flags,
                             std::size_t bytes) {
    if (flags != 0 || bytes < sizeof(ibv_gid_entry)) {
        return -EINVAL;
    }
    std::size_t count = 0;
    for (std::uint32_t index = 0; index < kGids; ++index) {
        if (!gid_of(context, 1, static_cast<int>(index))) {
            continue;
        }
        if (count == most) {
            return -EINVAL;  // as a kernel has it: all or none
        }
        auto* const entry = reinterpret_cast<ibv_gid_entry*>(reinterpret_cast<char*>(entries) + count * bytes);
        static_cast<void>(_ibv_query_gid_ex(context, 1, index, entry, 0, bytes));
        ++count;
    }
    return static_cast<ssize_t>(count);
}

int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned int index, int* type) {
    constexpr int kRoceV1InSysfs = 0;  // of an empty entry, too
    constexpr int kRoceV2InSysfs = 1;
    if (port != 1 || index >= kGids) {
        errno = EINVAL;
        return -1;
    }
    *type = gid_of(context, port, static_cast<int>(index)) ? kRoceV2InSysfs : kRoceV1InSysfs;
    return 0;
}

int ibv_query_pkey(ibv_context*, std::uint8_t port, int index, __be16* out) {
    if (port != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *out = 0xffff;
    return 0;
}

int ibv_get_pkey_index(ibv_context*, std::uint8_t port, __be16 pkey) {
    if (port != 1 || pkey != 0xffff) {
        errno = ENOENT;
        return -1;
    }
    return 0;
}

// No enhanced connections, which vendors' adapters agree on.
int ibv_query_ece(ibv_qp*, ibv_ece* ece) {
    *ece = {};
    errno = EOPNOTSUPP;
    return EOPNOTSUPP;
}

int ibv_set_ece(ibv_qp*, ibv_ece* ece) {
    if (ece->vendor_id == 0) {
        return 0;
    }
    errno = EOPNOTSUPP;
    return EOPNOTSUPP;
}

int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, std::uint32_t) {
    return 0;
}

int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*) {
    return EOPNOTSUPP;
}
