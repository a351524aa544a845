// Translations between values of verbs.h and those of the engine.
#pragma once

#include <infiniband/verbs.h>

#include <optional>

#include "lib/roce/qp/attributes.hpp"
#include "lib/roce/qp/completion_queue.hpp"
#include "lib/roce/qp/qp_events.hpp"
#include "lib/roce/qp/rights.hpp"
#include "lib/roce/qp/work.hpp"

namespace cairn::ibverbs {

[[nodiscard]] ibv_wc_status status_of(roce::CompletionStatus status) noexcept;
[[nodiscard]] ibv_wc_opcode opcode_of(roce::CompletionOpcode opcode) noexcept;
[[nodiscard]] unsigned flags_of(const roce::Completion& completion) noexcept;
// Returns an errno value; 0: it was posted.
[[nodiscard]] int errno_of(roce::PostVerdict verdict) noexcept;
[[nodiscard]] ibv_event_type event_of(roce::QpEvent event) noexcept;
[[nodiscard]] ibv_qp_state state_of(roce::QpState state) noexcept;

// Returns nullopt if there is no such value, or it is of something that this library does not have.
[[nodiscard]] std::optional<roce::QpState> to_state(ibv_qp_state state) noexcept;
[[nodiscard]] std::optional<roce::WorkOpcode> to_opcode(ibv_wr_opcode opcode) noexcept;
// Returns the rights of a region or window (IBTA vol. 1, 11.2.8).
[[nodiscard]] std::optional<roce::Rights> to_rights(unsigned access) noexcept;
// Returns the rights of a queue pair's peer.
[[nodiscard]] std::optional<roce::Rights> to_remote_rights(unsigned access) noexcept;
[[nodiscard]] unsigned access_of(roce::Rights rights) noexcept;
[[nodiscard]] std::uint32_t mtu_bytes(ibv_mtu mtu) noexcept;  // 0: there is no such MTU
[[nodiscard]] ibv_mtu mtu_of(std::uint32_t bytes) noexcept;

}  // namespace cairn::ibverbs
