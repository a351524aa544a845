#include "rpc/erpc/server_transfers.hpp"

#include <algorithm>
#include <cstring>

#include "rpc/erpc/judge.hpp"
#include "rpc/erpc/server.hpp"

namespace cairn::erpc {

void ServerTransfers::on_request_packet(const Arrival& arrival) noexcept {
    Session& session = arrival.session;
    const Header& header = arrival.header;
    ServerSlot& slot = (*session.server)[arrival.slot_index()];
    Statistics& statistics = server_.statistics_;
    const PacketRules rules{server_.writer_.packet_bytes(), server_.messages_.longest_request(), session.selective};
    switch (judge_request_packet(slot, header, arrival.payload_bytes(), rules)) {
        case PacketVerdict::Part:
            take_packet(arrival, slot);
            return;
        case PacketVerdict::Begin:
            if (!server_.handlers_[header.request_type].registered()) {
                statistics.count(Drop::NoHandler);
                server_.writer_.refuse(session, header.request_number, RefuseReason::NoHandler, arrival.now);
            } else if (server_.messages_.begin_request(session, slot, header, arrival.now)) {
                take_packet(arrival, slot);
            }
            return;
        case PacketVerdict::Known:
            repeat_answer(arrival, slot);
            return;
        case PacketVerdict::GivenUp:
            server_.writer_.refuse(session, header.request_number, RefuseReason::GivenUp, arrival.now);
            return;
        case PacketVerdict::Early:
            statistics.count(Drop::OutOfOrder);
            return;
        case PacketVerdict::Busy:
            statistics.count(Drop::DuplicateBusy);
            return;
        case PacketVerdict::Stale:
            statistics.count(Drop::StaleRequest);
            return;
        case PacketVerdict::Future:
            statistics.count(Drop::FutureRequest);
            server_.writer_.refuse(session, header.request_number, RefuseReason::Ahead, arrival.now);
            return;
        case PacketVerdict::TooLong:
            statistics.count(Drop::BadSize);
            server_.writer_.refuse(session, header.request_number, RefuseReason::TooLong, arrival.now);
            return;
        case PacketVerdict::WrongSize:
            statistics.count(Drop::BadSize);
            return;
    }
}

// Takes a packet that belongs to the request. Its size was checked.
void ServerTransfers::take_packet(const Arrival& arrival, ServerSlot& slot) noexcept {
    Session& session = arrival.session;
    ServerTransfer& transfer = *slot.transfer;
    const std::uint32_t index = index_of(slot, arrival.header);
    transfer.heard = arrival.now;
    if (!session.selective && index > transfer.received.next()) {
        server_.statistics_.count(Drop::OutOfOrder);
        return;
    }
    const PacketWindow::Seen seen = transfer.received.see(index);
    if (seen == PacketWindow::Seen::Outside) {
        server_.statistics_.count(Drop::OutOfOrder);
        return;
    }
    if (seen == PacketWindow::Seen::New) {
        session.last_heard = arrival.now;
        std::memcpy(transfer.request.data + std::size_t{index} * server_.writer_.packet_bytes(),
                    arrival.payload().data(), arrival.payload_bytes());
    }
    if (transfer.received.next() == transfer.packets) {
        if (execute(session, slot, &arrival.packet(), arrival.now) || index + 1 == transfer.packets) {
            return;  // the last packet has no credit return; if the request is put off, that packet comes again
        }
    }
    transfer.newest = index;
    if (!transfer.credit_due) {
        transfer.credit_due = true;
        credits_due_.push_back({session.self, static_cast<std::uint8_t>(arrival.slot_index())});
    }
}

// Executes a request that is complete. Returns false if it cannot be executed now.
bool ServerTransfers::execute(Session& session, ServerSlot& slot, port::PacketRef* packet, Instant now) noexcept {
    const auto& entry = server_.handlers_[slot.request_type];
    if (entry.function != nullptr) {
        if (!server_.messages_.has_room(slot, entry.response_bytes_max, now)) {
            server_.statistics_.count(Drop::NoBuffer);
            return false;
        }
        rpc::MsgBuffer request = server_.messages_.take_request(slot);
        server_.run_handler(session, slot, packet, request.span(), now);
        server_.statistics_.requests_handled += 1 - server_.take_declined();
        server_.pool_.release(request);
        return true;
    }
    rpc::BackgroundJob* const job = server_.jobs_.prepare(slot.request_type, slot, {});
    if (job == nullptr) {
        return false;
    }
    job->request = server_.messages_.take_request(slot);
    server_.jobs_.submit(session, slot, *job);
    return true;
}

// Sends credit returns. Each says which packets came in order and which are ahead of a gap.
void ServerTransfers::send_credit_returns(Instant now) noexcept {
    for (const CreditDue& due : credits_due_) {
        Session& session = server_.sessions_[due.session];
        ServerSlot* const slot = session.server != nullptr ? &(*session.server)[due.slot] : nullptr;
        if (slot == nullptr || slot->transfer == nullptr || !slot->transfer->credit_due) {
            continue;  // the request was executed or ended meanwhile
        }
        ServerTransfer& transfer = *slot->transfer;
        transfer.credit_due = false;
        send_credit_return(session, *slot, transfer.newest, transfer.received.next(), transfer.received.ahead(), now);
    }
    credits_due_.clear();
}

void ServerTransfers::send_credit_return(Session& session, const ServerSlot& slot, std::uint32_t newest,
                                         std::uint32_t in_order, const std::array<std::uint64_t, 2>& ahead,
                                         Instant now) noexcept {
    const port::PacketRef buffer = server_.writer_.take();
    if (buffer.cookie == nullptr) {
        return;
    }
    CreditReturn said;
    said.newest = static_cast<std::uint16_t>(newest & kPacketNumberMask);
    said.in_order = std::min(in_order, slot.request_packets - 1);  // the response confirms the last packet
    said.held = HeldTime::of(server_.writer_.held(now));
    const std::array<Be64, 2> bits{Be64{ahead[0]}, Be64{ahead[1]}};
    const bool gap = (ahead[0] | ahead[1]) != 0;
    server_.writer_.send(session, buffer, said.header(session.remote(), slot.request_number),
                         {reinterpret_cast<const std::uint8_t*>(&bits), gap ? sizeof(bits) : 0}, now);
}

// Repeats the answer of a request that is executing or executed: a packet of it came again, so the answer was lost.
void ServerTransfers::repeat_answer(const Arrival& arrival, ServerSlot& slot) noexcept {
    const std::uint32_t last = slot.request_packets - 1;
    const std::uint16_t number = arrival.header.packet_number;
    if ((number & kPacketNumberMask) != (last & kPacketNumberMask)) {
        send_credit_return(arrival.session, slot, number, last, {}, arrival.now);
    } else if (slot.state == ServerSlotState::Answered) {
        ++server_.statistics_.responses_resent;
        slot.resent = true;
        server_.send_answer(arrival.session, slot, {0, true}, &arrival.packet(), arrival.now);
    } else if (is_unanswered(slot)) {
        server_.writer_.refuse(arrival.session, slot.request_number, why_unanswered(slot), arrival.now);
    } else {
        server_.statistics_.count(Drop::DuplicateBusy);
    }
}

void ServerTransfers::on_rfr(const Arrival& arrival) noexcept {
    Session& session = arrival.session;
    Statistics& statistics = server_.statistics_;
    if (session.server == nullptr) {
        statistics.count(Drop::StaleRequest);
        return;
    }
    ServerSlot& slot = (*session.server)[arrival.slot_index()];
    const bool current = slot.request_number == arrival.header.request_number;
    if (!current || slot.state != ServerSlotState::Answered) {
        statistics.count(Drop::StaleRequest);
        if (current && is_unanswered(slot)) {
            server_.writer_.refuse(session, slot.request_number, why_unanswered(slot), arrival.now);
        }
        return;
    }
    const std::uint32_t number = resolve_number(arrival.header.packet_number, slot.newest_rfr + slot.request_packets);
    const std::uint32_t index = number + 1 - slot.request_packets;
    if (number < slot.request_packets || index >= packets_of(slot.response.bytes, server_.writer_.packet_bytes())) {
        statistics.count(Drop::BadSize);
        return;
    }
    if (index > slot.newest_rfr) {
        session.last_heard = arrival.now;
    }
    slot.newest_rfr = index;
    slot.resent = true;  // the packet may have been sent before
    server_.send_answer(session, slot, {index, true}, &arrival.packet(), arrival.now);
}

}  // namespace cairn::erpc
