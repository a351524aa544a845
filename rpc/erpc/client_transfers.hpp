// The client's side of calls whose messages have several packets: which are on their way, and how fast they may leave.
#pragma once

#include <cstdint>
#include <memory>

#include "lib/roce/pace/congestion_control.hpp"
#include "rpc/common/fixed_table.hpp"
#include "rpc/erpc/arrival.hpp"
#include "rpc/erpc/pacer.hpp"
#include "rpc/erpc/packet_writer.hpp"

namespace cairn::erpc {

class Client;

class ClientTransfers {
public:
    ClientTransfers(const EndpointConfig& config, Client& client);

    // A message of several packets begins; false: no transfer is free.
    [[nodiscard]] bool begin(ClientSession& client, ClientSlot& slot) noexcept;
    // Its credits return. The response's memory is left to the caller.
    [[nodiscard]] rpc::MsgBuffer end(ClientSession& client, ClientSlot& slot) noexcept;
    // Sends as many packets as credits, window and the flow's rate allow.
    void kick(Session& session, ClientSlot& slot, Instant now) noexcept;

    void on_response_packet(const Arrival& arrival) noexcept;
    void on_credit_return(const Arrival& arrival) noexcept;
    // The server let go what it had of the request. Begins anew under the next number, so that packets of the first try
    // which are still on their way are never taken for this one's.
    void restart(Session& session, ClientSlot& slot, Instant now) noexcept;
    // Back to the oldest packet that is missing.
    void on_timeout(Session& session, ClientSlot& slot, Instant now) noexcept;

    // Each turn: flows whose time has come go on.
    void on_turn(Instant now) noexcept {
        if (wheel_ != nullptr) {
            pauses_.on_turn(now);
            run_wheel(now);
        }
    }
    // When on_turn() has something to do.
    [[nodiscard]] Instant next_deadline() const noexcept {
        return wheel_ != nullptr && wheel_->size() != 0 ? wheel_->next_due() : Instant::never();
    }
    // The answer to a request that was sent once has come.
    void note_round_trip(ClientSession& client, const ClientSlot& slot, std::size_t bytes, Instant now) const noexcept {
        const Duration rtt = now - slot.last_sent;
        client.note_round_trip(rtt, now);
        if (client.control != nullptr) [[unlikely]] {
            client.control->on_ack({rtt, bytes, spoils(slot.last_sent)}, now);
        }
    }
    // Whether a pause of our own lies in what was measured since then.
    [[nodiscard]] bool spoils(Instant since) const noexcept { return pauses_.spoils(since); }

private:
    void send_number(Session& session, ClientSlot& slot, std::uint32_t number, Instant now) noexcept;
    void sample(Session& session, const ClientSlot& slot, std::uint32_t number, std::uint8_t held,
                Instant now) noexcept;
    void note_answered(Session& session, ClientSlot& slot, std::uint32_t number, Instant now) noexcept;
    void resend_overtaken(Session& session, ClientSlot& slot, Instant now) noexcept;
    [[nodiscard]] bool adopt(Session& session, ClientSlot& slot) noexcept;
    [[nodiscard]] bool place_response(ClientTransfer& transfer, const Call& call, std::uint32_t bytes) noexcept;
    void go_on(Session& session, ClientSlot& slot, Instant now) noexcept;
    // client_pacing_datapath.cpp
    void hold_back(Session& session, ClientSlot& slot) noexcept;
    void run_wheel(Instant now) noexcept;
    void serve_paced(Session& session, Instant now) noexcept;

    const EndpointConfig& config_;
    Client& client_;
    rpc::FixedTable<ClientTransfer> transfers_;
    std::unique_ptr<PacerWheel> wheel_;  // nullptr: no congestion control
    roce::StallWatch pauses_{kOwnStall};
};

}  // namespace cairn::erpc
