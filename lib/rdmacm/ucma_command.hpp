// The commands that a program writes to a kernel's rdma_cm, as values (<rdma/rdma_user_cm.h>).
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "lib/rdmacm/ends.hpp"
#include "lib/rdmacm/ucma_abi.hpp"

namespace cairn::rdmacm::ucma {

// The place of an answer in the program's memory. It has room for the shortest answer to its command.
struct Reply {
    std::uint64_t address = 0;
    std::uint16_t room_bytes = 0;
};

struct CreateId {
    Reply reply;
    std::uint64_t uid;  // the number by which the program gets its events
    rdma_port_space space;
    ibv_qp_type type;
};
struct DestroyId {
    Reply reply;
    std::uint32_t id;
};
struct Bind {
    std::uint32_t id;
    End local;
};
struct ResolveAddress {
    std::uint32_t id;
    std::optional<End> local;
    End remote;
};
struct ResolveRoute {
    std::uint32_t id;
};
enum class Question : std::uint8_t { Route, Address, Path, Gid };
struct Query {
    Reply reply;
    std::uint32_t id;
    Question question;
};
struct Connect {
    std::uint32_t id;
    abi::rdma_ucm_conn_param parameters;
};
struct Listen {
    std::uint32_t id;
    int backlog;
};
struct Accept {
    std::uint32_t id;
    std::uint64_t uid;                    // of the id from now on
    abi::rdma_ucm_conn_param parameters;  // `valid` is 0: takes the peer's reply
};
struct Reject {
    std::uint32_t id;
    abi::rdma_ucm_reject how;
};
struct Disconnect {
    std::uint32_t id;
};
struct InitQp {
    Reply reply;
    std::uint32_t id;
    ibv_qp_state to;
};
struct GetEvent {
    Reply reply;
};
struct SetOption {
    std::uint32_t id;
    abi::rdma_ucm_set_option what;  // its value lies in the program's memory
};
struct Notify {
    std::uint32_t id;
    ibv_event_type event;
};
struct Join {
    Reply reply;
    std::uint64_t uid;
    std::uint32_t id;
    End group;
    bool sends_only;
};
struct Leave {
    Reply reply;
    std::uint32_t group;
};
struct Migrate {
    Reply reply;
    std::uint32_t id;
    int from;  // the descriptor of the file that has it
};

using Command = std::variant<CreateId, DestroyId, Bind, ResolveAddress, ResolveRoute, Query, Connect, Listen, Accept,
                             Reject, Disconnect, InitQp, GetEvent, SetOption, Notify, Join, Leave, Migrate>;

// The result of parse(): the command, or an errno value as a kernel has it. EINVAL: the command is cut off or invalid.
// ENOSYS: it is unknown. ENOSPC: its answer has no room. EFAULT: its answer has no place. Pure.
using Parsed = std::variant<Command, int>;
[[nodiscard]] Parsed parse_command(std::span<const std::uint8_t> written) noexcept;

}  // namespace cairn::rdmacm::ucma
