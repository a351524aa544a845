// Answers of a kernel's rdma_cm about endpoints and their events.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "lib/rdmacm/endpoint.hpp"
#include "lib/rdmacm/ucma_command.hpp"

namespace cairn::rdmacm::ucma {

// Writes as much of the answer as there is room for.
template <class Answer>
void answer(const Reply& to, const Answer& with) noexcept {
    static_assert(std::is_trivially_copyable_v<Answer>);
    std::memcpy(reinterpret_cast<void*>(to.address), &with, std::min<std::size_t>(to.room_bytes, sizeof(with)));
}

// The layout of rdma_ucm_query_path_resp, whose array has no length.
struct PathAnswer {
    std::uint32_t num_paths;
    std::uint32_t reserved;
    ib_path_rec_data path;
};
static_assert(offsetof(PathAnswer, path) == sizeof(abi::rdma_ucm_query_path_resp));

[[nodiscard]] abi::rdma_ucm_query_route_resp route_answer(Endpoint& endpoint);
[[nodiscard]] abi::rdma_ucm_query_addr_resp address_answer(Endpoint& endpoint);
[[nodiscard]] abi::rdma_ucm_query_addr_resp gid_answer(Endpoint& endpoint);
[[nodiscard]] PathAnswer path_answer(Endpoint& endpoint);
// These three are pure.
[[nodiscard]] ib_uverbs_qp_attr qp_answer(const ibv_qp_attr& attributes, int mask) noexcept;
// Makes the answer, without the names of the id.
[[nodiscard]] abi::rdma_ucm_event_resp event_answer(const Event& event, bool is_datagrams) noexcept;
// Converts the parameters. `private_data` points into `from`.
[[nodiscard]] rdma_conn_param to_parameters(const abi::rdma_ucm_conn_param& from) noexcept;

}  // namespace cairn::rdmacm::ucma
