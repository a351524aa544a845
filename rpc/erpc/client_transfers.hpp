// The client's side of calls whose messages have several packets. It tracks which packets are on their way, and how
// fast packets may leave.
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

    // Gives the slot a transfer. Returns false if none is free.
    [[nodiscard]] bool begin(ClientSession& client, ClientSlot& slot) noexcept;
    // Takes the slot's transfer and gives its credits back. Returns the memory of the response if the transfer took it
    // from the pool; the caller releases it.
    [[nodiscard]] rpc::MsgBuffer end(ClientSession& client, ClientSlot& slot) noexcept;
    // Sends as many packets as credits, window and the flow's rate allow.
    void kick(Session& session, ClientSlot& slot, Instant now) noexcept;

    void on_response_packet(const Arrival& arrival) noexcept;
    void on_credit_return(const Arrival& arrival) noexcept;
    // Begins the request anew under the next number, since the server gave up its part of the request. The new number
    // keeps late packets of the first try from counting as packets of the second.
    void restart(Session& session, ClientSlot& slot, Instant now) noexcept;
    // Sends again from the oldest packet that is missing.
    void on_timeout(Session& session, ClientSlot& slot, Instant now) noexcept;

    // Begins a turn, before its packets are taken: their round trips may include a pause of our own.
    void begin_turn(Instant now) noexcept {
        if (wheel_ != nullptr) [[unlikely]] {
            pauses_.on_turn(now);
        }
    }
    // Lets flows whose time has come go on. Called in each turn.
    void on_turn(Instant now) noexcept {
        begin_turn(now);
        if (wheel_ != nullptr) {
            run_wheel(now);
        }
    }
    // Returns when on_turn() has something to do, or Instant::never().
    [[nodiscard]] Instant next_deadline() const noexcept {
        return wheel_ != nullptr && wheel_->size() != 0 ? wheel_->next_due() : Instant::never();
    }
    // Takes a measured round trip: the answer to a request that was sent once has come. `bytes`: its payload.
    void note_round_trip(ClientSession& client, const ClientSlot& slot, std::size_t bytes, Instant now) const noexcept {
        const Duration rtt = now - slot.last_sent;
        client.note_round_trip(rtt, now);
        if (client.control != nullptr) [[unlikely]] {
            client.control->on_ack({rtt, bytes, spoils(slot.last_sent)}, now);
        }
    }
    // True if our own worker paused since `since`, so that a round trip measured from there on is too long.
    [[nodiscard]] bool spoils(Instant since) const noexcept { return pauses_.spoils(since); }

private:
    void send_number(Session& session, ClientSlot& slot, std::uint32_t number, Instant now) noexcept;
    void sample(Session& session, const ClientSlot& slot, std::uint32_t number, HeldTime held, Instant now) noexcept;
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
    std::unique_ptr<PacerWheel> wheel_;  // nullptr without congestion control
    roce::StallWatch pauses_{kOwnStall};
};

}  // namespace cairn::erpc
