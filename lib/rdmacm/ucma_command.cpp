#include "lib/rdmacm/ucma_command.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace cairn::rdmacm::ucma {

namespace {

using Bytes = std::span<const std::uint8_t>;

// The bytes after the header, and the length of the room for the answer.
struct Body {
    Bytes bytes;
    std::uint16_t room_bytes;
};

// Copies the structure. One that a newer kernel made longer has at least `least_bytes`; the rest is 0.
template <class Raw>
[[nodiscard]] bool read(const Body& body, Raw& out, std::size_t least_bytes = sizeof(Raw)) noexcept {
    static_assert(std::is_trivially_copyable_v<Raw>);
    out = {};
    if (body.bytes.size() < least_bytes) {
        return false;
    }
    std::memcpy(&out, body.bytes.data(), std::min(body.bytes.size(), sizeof(Raw)));
    return true;
}

// Returns a command that needs an answer, or the reason why it cannot have one.
template <class Made>
[[nodiscard]] Parsed answered(const Body& body, std::uint64_t address, std::size_t least_bytes, Made made) noexcept {
    if (body.room_bytes < least_bytes) {
        return ENOSPC;
    }
    if (address == 0) {
        return EFAULT;
    }
    made.reply = {address, body.room_bytes};
    return Command{made};
}

[[nodiscard]] std::optional<End> end_of_raw(const void* address) noexcept {
    sockaddr_storage copy{};
    std::memcpy(&copy, address, sizeof(sockaddr_in6));
    return end_of(reinterpret_cast<const sockaddr*>(&copy));
}

// Returns the address of a command that has its length.
[[nodiscard]] std::optional<End> end_of_sized(const __kernel_sockaddr_storage& address, std::size_t bytes) noexcept {
    sockaddr_storage copy{};
    static_assert(sizeof(copy) == sizeof(address));
    std::memcpy(&copy, &address, sizeof(copy));
    const auto* const generic = reinterpret_cast<const sockaddr*>(&copy);
    return bytes == 0 || bytes != length_of(generic) ? std::nullopt : end_of(generic);
}

// Returns the type of the queue pair. An unreliable one cannot be asked for, except in the port space of InfiniBand's
// own services.
[[nodiscard]] std::optional<ibv_qp_type> type_of(std::uint16_t space, std::uint8_t wanted) noexcept {
    switch (space) {
        case RDMA_PS_TCP:
            return IBV_QPT_RC;
        case RDMA_PS_UDP:
        case RDMA_PS_IPOIB:
            return IBV_QPT_UD;
        case RDMA_PS_IB:
            return static_cast<ibv_qp_type>(wanted);
        default:
            return std::nullopt;
    }
}

[[nodiscard]] Parsed parse_create_id(const Body& body) noexcept {
    abi::rdma_ucm_create_id raw;
    if (!read(body, raw)) {
        return EINVAL;
    }
    const std::optional<ibv_qp_type> type = type_of(raw.ps, raw.qp_type);
    if (!type) {
        return EINVAL;
    }
    return answered(body, raw.response, sizeof(abi::rdma_ucm_create_id_resp),
                    CreateId{{}, raw.uid, static_cast<rdma_port_space>(raw.ps), *type});
}

[[nodiscard]] Parsed parse_destroy_id(const Body& body) noexcept {
    abi::rdma_ucm_destroy_id raw;
    return read(body, raw) ? answered(body, raw.response, sizeof(abi::rdma_ucm_destroy_id_resp), DestroyId{{}, raw.id})
                           : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_bind_ip(const Body& body) noexcept {
    abi::rdma_ucm_bind_ip raw;
    const std::optional<End> local = read(body, raw) ? end_of_raw(&raw.addr) : std::nullopt;
    return local ? Parsed(Command{Bind{raw.id, *local}}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_bind(const Body& body) noexcept {
    abi::rdma_ucm_bind raw;
    const std::optional<End> local = read(body, raw) ? end_of_sized(raw.addr, raw.addr_size) : std::nullopt;
    return local && raw.reserved == 0 ? Parsed(Command{Bind{raw.id, *local}}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_resolve_ip(const Body& body) noexcept {
    abi::rdma_ucm_resolve_ip raw;
    if (!read(body, raw)) {
        return EINVAL;
    }
    const std::optional<End> remote = end_of_raw(&raw.dst_addr);
    const std::optional<End> local = end_of_raw(&raw.src_addr);
    const bool sound = remote && (local || raw.src_addr.sin6_family == AF_UNSPEC);
    return sound ? Parsed(Command{ResolveAddress{raw.id, local, *remote}}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_resolve_address(const Body& body) noexcept {
    abi::rdma_ucm_resolve_addr raw;
    if (!read(body, raw)) {
        return EINVAL;
    }
    const std::optional<End> remote = end_of_sized(raw.dst_addr, raw.dst_size);
    const std::optional<End> local = end_of_sized(raw.src_addr, raw.src_size);
    const bool sound = remote && (local || raw.src_size == 0) && raw.reserved == 0;
    return sound ? Parsed(Command{ResolveAddress{raw.id, local, *remote}}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_resolve_route(const Body& body) noexcept {
    abi::rdma_ucm_resolve_route raw;
    return read(body, raw) ? Parsed(Command{ResolveRoute{raw.id}}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_query_route(const Body& body) noexcept {
    constexpr std::size_t kLeast = offsetof(abi::rdma_ucm_query_route_resp, ibdev_index);
    abi::rdma_ucm_query raw;
    return read(body, raw, offsetof(abi::rdma_ucm_query, option))
               ? answered(body, raw.response, kLeast, Query{{}, raw.id, Question::Route})
               : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_query(const Body& body) noexcept {
    constexpr std::size_t kLeast = offsetof(abi::rdma_ucm_query_addr_resp, ibdev_index);
    abi::rdma_ucm_query raw;
    if (!read(body, raw)) {
        return EINVAL;
    }
    switch (raw.option) {
        case abi::RDMA_USER_CM_QUERY_ADDR:
            return answered(body, raw.response, kLeast, Query{{}, raw.id, Question::Address});
        case abi::RDMA_USER_CM_QUERY_PATH:
            return answered(body, raw.response, sizeof(abi::rdma_ucm_query_path_resp),
                            Query{{}, raw.id, Question::Path});
        case abi::RDMA_USER_CM_QUERY_GID:
            return answered(body, raw.response, kLeast, Query{{}, raw.id, Question::Gid});
        default:
            return ENOSYS;
    }
}

[[nodiscard]] Parsed parse_connect(const Body& body) noexcept {
    abi::rdma_ucm_connect raw;
    const bool sound = read(body, raw, offsetof(abi::rdma_ucm_connect, ece)) && raw.conn_param.valid != 0;
    return sound ? Parsed(Command{Connect{raw.id, raw.conn_param}}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_listen(const Body& body) noexcept {
    abi::rdma_ucm_listen raw;
    return read(body, raw) ? Parsed(Command{Listen{raw.id, static_cast<int>(raw.backlog)}}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_accept(const Body& body) noexcept {
    abi::rdma_ucm_accept raw;
    return read(body, raw, offsetof(abi::rdma_ucm_accept, ece))
               ? Parsed(Command{Accept{raw.id, raw.uid, raw.conn_param}})
               : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_reject(const Body& body) noexcept {
    abi::rdma_ucm_reject raw;
    return read(body, raw) ? Parsed(Command{Reject{raw.id, raw}}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_disconnect(const Body& body) noexcept {
    abi::rdma_ucm_disconnect raw;
    return read(body, raw) ? Parsed(Command{Disconnect{raw.id}}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_init_qp(const Body& body) noexcept {
    abi::rdma_ucm_init_qp_attr raw;
    if (!read(body, raw) || raw.qp_state > IBV_QPS_ERR) {
        return EINVAL;
    }
    return answered(body, raw.response, sizeof(ib_uverbs_qp_attr),
                    InitQp{{}, raw.id, static_cast<ibv_qp_state>(raw.qp_state)});
}

[[nodiscard]] Parsed parse_get_event(const Body& body) noexcept {
    constexpr std::size_t kLeast = offsetof(abi::rdma_ucm_event_resp, reserved);
    abi::rdma_ucm_get_event raw;
    return read(body, raw) ? answered(body, raw.response, kLeast, GetEvent{}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_set_option(const Body& body) noexcept {
    constexpr std::uint32_t kLongest = 4096;  // bytes
    abi::rdma_ucm_set_option raw;
    if (!read(body, raw) || raw.optlen > kLongest) {
        return EINVAL;
    }
    return raw.optval == 0 && raw.optlen != 0 ? Parsed(EFAULT) : Parsed(Command{SetOption{raw.id, raw}});
}

[[nodiscard]] Parsed parse_notify(const Body& body) noexcept {
    abi::rdma_ucm_notify raw;
    return read(body, raw) ? Parsed(Command{Notify{raw.id, static_cast<ibv_event_type>(raw.event)}}) : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_join_ip(const Body& body) noexcept {
    abi::rdma_ucm_join_ip_mcast raw;
    const std::optional<End> group = read(body, raw) ? end_of_raw(&raw.addr) : std::nullopt;
    return group ? answered(body, raw.response, sizeof(abi::rdma_ucm_create_id_resp),
                            Join{{}, raw.uid, raw.id, *group, false})
                 : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_join(const Body& body) noexcept {
    abi::rdma_ucm_join_mcast raw;
    const std::optional<End> group = read(body, raw) ? end_of_sized(raw.addr, raw.addr_size) : std::nullopt;
    if (!group || raw.join_flags >= RDMA_MC_JOIN_FLAG_RESERVED) {
        return EINVAL;
    }
    const bool sends_only = raw.join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
    return answered(body, raw.response, sizeof(abi::rdma_ucm_create_id_resp),
                    Join{{}, raw.uid, raw.id, *group, sends_only});
}

[[nodiscard]] Parsed parse_leave(const Body& body) noexcept {
    abi::rdma_ucm_destroy_id raw;
    return read(body, raw) ? answered(body, raw.response, sizeof(abi::rdma_ucm_destroy_id_resp), Leave{{}, raw.id})
                           : Parsed(EINVAL);
}

[[nodiscard]] Parsed parse_migrate(const Body& body) noexcept {
    abi::rdma_ucm_migrate_id raw;
    return read(body, raw) ? answered(body, raw.response, sizeof(abi::rdma_ucm_migrate_resp),
                                      Migrate{{}, raw.id, static_cast<int>(raw.fd)})
                           : Parsed(EINVAL);
}

struct Row {
    std::uint32_t command;
    Parsed (*parse)(const Body&) noexcept;
};
// GET_OPTION is missing: no kernel has it.
constexpr std::array kRows{
    Row{abi::RDMA_USER_CM_CMD_CREATE_ID, parse_create_id},
    Row{abi::RDMA_USER_CM_CMD_DESTROY_ID, parse_destroy_id},
    Row{abi::RDMA_USER_CM_CMD_BIND_IP, parse_bind_ip},
    Row{abi::RDMA_USER_CM_CMD_RESOLVE_IP, parse_resolve_ip},
    Row{abi::RDMA_USER_CM_CMD_RESOLVE_ROUTE, parse_resolve_route},
    Row{abi::RDMA_USER_CM_CMD_QUERY_ROUTE, parse_query_route},
    Row{abi::RDMA_USER_CM_CMD_CONNECT, parse_connect},
    Row{abi::RDMA_USER_CM_CMD_LISTEN, parse_listen},
    Row{abi::RDMA_USER_CM_CMD_ACCEPT, parse_accept},
    Row{abi::RDMA_USER_CM_CMD_REJECT, parse_reject},
    Row{abi::RDMA_USER_CM_CMD_DISCONNECT, parse_disconnect},
    Row{abi::RDMA_USER_CM_CMD_INIT_QP_ATTR, parse_init_qp},
    Row{abi::RDMA_USER_CM_CMD_GET_EVENT, parse_get_event},
    Row{abi::RDMA_USER_CM_CMD_SET_OPTION, parse_set_option},
    Row{abi::RDMA_USER_CM_CMD_NOTIFY, parse_notify},
    Row{abi::RDMA_USER_CM_CMD_JOIN_IP_MCAST, parse_join_ip},
    Row{abi::RDMA_USER_CM_CMD_LEAVE_MCAST, parse_leave},
    Row{abi::RDMA_USER_CM_CMD_MIGRATE_ID, parse_migrate},
    Row{abi::RDMA_USER_CM_CMD_QUERY, parse_query},
    Row{abi::RDMA_USER_CM_CMD_BIND, parse_bind},
    Row{abi::RDMA_USER_CM_CMD_RESOLVE_ADDR, parse_resolve_address},
    Row{abi::RDMA_USER_CM_CMD_JOIN_MCAST, parse_join},
};

}  // namespace

Parsed parse_command(std::span<const std::uint8_t> written) noexcept {
    abi::rdma_ucm_cmd_hdr header{};
    if (written.size() < sizeof(header)) {
        return EINVAL;
    }
    std::memcpy(&header, written.data(), sizeof(header));
    const Bytes rest = written.subspan(sizeof(header));
    if (header.in > rest.size() || header.cmd > abi::RDMA_USER_CM_CMD_JOIN_MCAST) {
        return EINVAL;
    }
    for (const Row& row : kRows) {
        if (row.command == header.cmd) {
            return row.parse({rest.first(header.in), header.out});
        }
    }
    return ENOSYS;
}

}  // namespace cairn::rdmacm::ucma
