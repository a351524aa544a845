// The server's side of messages of several packets. It assembles requests, returns credits, and sends the response
// packets that clients ask for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "rpc/erpc/arrival.hpp"

namespace cairn::erpc {

class Server;

class ServerTransfers {
public:
    ServerTransfers(Server& server, std::uint32_t transfers_max) : server_(server) {
        credits_due_.reserve(transfers_max);
    }

    // Takes a packet of a request with several packets.
    void on_request_packet(const Arrival& arrival) noexcept;
    void on_rfr(const Arrival& arrival) noexcept;
    // Sends one credit return for each request that the burst had packets of. Called at the end of a burst.
    void end_burst(Instant now) noexcept {
        if (!credits_due_.empty()) [[unlikely]] {
            send_credit_returns(now);
        }
    }

private:
    // Names a slot whose credit return leaves at the end of the burst.
    struct CreditDue {
        SessionId session;
        std::uint8_t slot;
    };
    void take_packet(const Arrival& arrival, ServerSlot& slot) noexcept;
    [[nodiscard]] bool execute(Session& session, ServerSlot& slot, port::PacketRef* packet, Instant now) noexcept;
    void send_credit_returns(Instant now) noexcept;
    void send_credit_return(Session& session, const ServerSlot& slot, std::uint32_t newest, std::uint32_t in_order,
                            const std::array<std::uint64_t, 2>& ahead, Instant now) noexcept;
    void repeat_answer(const Arrival& arrival, ServerSlot& slot) noexcept;

    Server& server_;
    std::vector<CreditDue> credits_due_;  // of the burst under way
};

}  // namespace cairn::erpc
