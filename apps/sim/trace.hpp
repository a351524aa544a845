// The fates of the frames of a history, one line for each copy.
#pragma once

#include <string>

#include "lib/sim/datagram_log.hpp"
#include "rpc/sim/erpc_plan.hpp"

namespace cairn::simulate {

// Returns "sent from -> to packet type, session, request, packet number, bytes fate". Bytes are the frame's.
[[nodiscard]] std::string trace_line(const sim::WorldPlan& plan, const sim::Network::Passage& passage,
                                     const sim::Frame& frame);
// As the next, for hosts that have queue pairs only.
[[nodiscard]] std::string trace_line(const sim::Network::Passage& passage, const sim::Frame& frame);

// Returns "sent from -> to opcode, queue pair, PSN, bytes fate"; for a connection manager's message, its name. Bytes
// are the datagram's.
[[nodiscard]] std::string trace_line(const sim::DatagramLog::Passage& passage, std::span<const std::uint8_t> datagram);

}  // namespace cairn::simulate
