// The server's side of messages of several packets: requests put together, credit returns, responses by the packet.
#include <algorithm>
#include <array>
#include <cstring>

#include "rpc/erpc/background.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "rpc/erpc/judge.hpp"

namespace cairn::erpc {

// A packet of a request that has several.
void Endpoint::on_request_packet(Session& session, const roce::UdDatagram& datagram, const Header& header,
                                 Instant now) noexcept {
    ServerSlot& slot = (*session.server_slots)[header.request_number % kSlotsPerSession];
    const std::size_t payload_bytes = datagram.payload_bytes - sizeof(RawHeader);
    switch (judge_request_packet(slot, header, payload_bytes,
                                 {packet_bytes_, messages_.longest_request(), session.selective})) {
        case PacketVerdict::Part:
            take_request_packet(session, slot, datagram, header, now);
            return;
        case PacketVerdict::Begin:
            if (!handlers_[header.request_type].registered()) {
                statistics_.count(Drop::NoHandler);
                refuse(session, header.request_number, RefuseReason::NoHandler, now);
            } else if (messages_.begin_request(session, slot, header, now)) {
                take_request_packet(session, slot, datagram, header, now);
            }
            return;
        case PacketVerdict::Known:
            repeat_answer(session, slot, datagram, header, now);
            return;
        case PacketVerdict::GivenUp:
            refuse(session, header.request_number, RefuseReason::GivenUp, now);
            return;
        case PacketVerdict::Early:
            statistics_.count(Drop::OutOfOrder);
            return;
        case PacketVerdict::Busy:
            statistics_.count(Drop::DuplicateBusy);
            return;
        case PacketVerdict::Stale:
            statistics_.count(Drop::StaleRequest);
            return;
        case PacketVerdict::Future:
            statistics_.count(Drop::FutureRequest);
            refuse(session, header.request_number, RefuseReason::Ahead, now);
            return;
        case PacketVerdict::TooLong:
            statistics_.count(Drop::BadSize);
            refuse(session, header.request_number, RefuseReason::TooLong, now);
            return;
        case PacketVerdict::WrongSize:
            statistics_.count(Drop::BadSize);
            return;
    }
}

// Of the size that its place in the message says.
void Endpoint::take_request_packet(Session& session, ServerSlot& slot, const roce::UdDatagram& datagram,
                                   const Header& header, Instant now) noexcept {
    ServerTransfer& transfer = *slot.transfer;
    const std::uint32_t index = index_of(slot, header);
    transfer.heard = now;
    if (!session.selective && index > transfer.received.next()) {
        statistics_.count(Drop::OutOfOrder);
        return;
    }
    const PacketWindow::Seen seen = transfer.received.see(index);
    if (seen == PacketWindow::Seen::Outside) {
        statistics_.count(Drop::OutOfOrder);
        return;
    }
    if (seen == PacketWindow::Seen::New) {
        session.last_heard = now;
        std::memcpy(transfer.request.data + std::size_t{index} * packet_bytes_, datagram.payload + sizeof(RawHeader),
                    datagram.payload_bytes - sizeof(RawHeader));
    }
    if (transfer.received.next() == transfer.packets) {
        if (execute_transfer(session, slot, datagram.packet, now) || index + 1 == transfer.packets) {
            return;  // the last packet has no credit return: put off, it comes again
        }
    }
    transfer.newest = index;
    if (!transfer.credit_due) {
        transfer.credit_due = true;
        credits_due_.push_back(
            {session.self.value, static_cast<std::uint8_t>(header.request_number % kSlotsPerSession)});
    }
}

// All of a request is there. False: it can not be executed now.
bool Endpoint::execute_transfer(Session& session, ServerSlot& slot, port::PacketRef* packet, Instant now) noexcept {
    const TypeEntry& entry = handlers_[slot.request_type];
    if (entry.function != nullptr) {
        if (!messages_.has_room(slot, entry.response_bytes_max, now)) {
            statistics_.count(Drop::NoBuffer);
            return false;
        }
        rpc::MsgBuffer request = messages_.take_request(slot);
        run_handler(session, slot, packet, request.span(), now);
        pool_.release(request);
        return true;
    }
    BackgroundJob* const job = prepare_job(slot.request_type, slot, {});
    if (job == nullptr) {
        return false;
    }
    job->request = messages_.take_request(slot);
    submit_job(session, slot, *job);
    return true;
}

// One for all of a burst: what came in order, and which packets are ahead of a gap.
void Endpoint::send_credit_returns(Instant now) noexcept {
    for (const CreditDue& due : credits_due_) {
        Session& session = sessions_[due.session];
        ServerSlot* const slot = session.server_slots != nullptr ? &(*session.server_slots)[due.slot] : nullptr;
        if (slot == nullptr || slot->transfer == nullptr || !slot->transfer->credit_due) {
            continue;  // executed meanwhile, or gone
        }
        ServerTransfer& transfer = *slot->transfer;
        transfer.credit_due = false;
        send_credit_return(session, *slot, transfer.newest, transfer.received.next(), transfer.received.ahead(), now);
    }
    credits_due_.clear();
}

void Endpoint::send_credit_return(Session& session, const ServerSlot& slot, std::uint32_t newest,
                                  std::uint32_t in_order, const std::array<std::uint64_t, 2>& ahead,
                                  Instant now) noexcept {
    const port::PacketRef buffer = sender_.take();
    if (buffer.cookie == nullptr) {
        statistics_.count(Drop::NoBuffer);
        return;
    }
    Header header;
    header.request_type = held_code(now - sender_.port().empty_at());
    header.session = session.remote;
    header.type = PacketType::CreditReturn;
    header.packet_number = static_cast<std::uint16_t>(newest & kPacketNumberMask);
    header.message_bytes = std::min(in_order, slot.request_packets - 1);  // the last one is the response's to confirm
    header.request_number = slot.request_number;
    const std::array<Be64, 2> bits{Be64{ahead[0]}, Be64{ahead[1]}};
    const bool gap = (ahead[0] | ahead[1]) != 0;
    send_packet(session, buffer, header, {reinterpret_cast<const std::uint8_t*>(&bits), gap ? sizeof(bits) : 0}, now);
}

// A copy of what is executing or answered: whatever answered it got lost.
void Endpoint::repeat_answer(Session& session, ServerSlot& slot, const roce::UdDatagram& datagram, const Header& header,
                             Instant now) noexcept {
    const std::uint32_t last = slot.request_packets - 1;
    if ((header.packet_number & kPacketNumberMask) != (last & kPacketNumberMask)) {
        send_credit_return(session, slot, header.packet_number, last, {}, now);
    } else if (slot.state == ServerSlotState::Answered) {
        ++statistics_.responses_resent;
        slot.resent = true;
        answer(session, slot, {0, true}, datagram.packet, now);
    } else if (slot.state == ServerSlotState::Forgotten) {
        refuse(session, slot.request_number, RefuseReason::AnswerLost, now);
    } else {
        statistics_.count(Drop::DuplicateBusy);
    }
}

void Endpoint::on_rfr(Session& session, const roce::UdDatagram& datagram, const Header& header, Instant now) noexcept {
    if (session.server_slots == nullptr) {
        statistics_.count(Drop::StaleRequest);
        return;
    }
    ServerSlot& slot = (*session.server_slots)[header.request_number % kSlotsPerSession];
    if (slot.request_number != header.request_number || slot.state != ServerSlotState::Answered) {
        statistics_.count(Drop::StaleRequest);
        if (slot.request_number == header.request_number && slot.state == ServerSlotState::Forgotten) {
            refuse(session, slot.request_number, RefuseReason::AnswerLost, now);
        }
        return;
    }
    const std::uint32_t number = resolve_number(header.packet_number, slot.newest_rfr + slot.request_packets);
    const std::uint32_t index = number + 1 - slot.request_packets;
    if (number < slot.request_packets || index >= packets_of(slot.response.bytes, packet_bytes_)) {
        statistics_.count(Drop::BadSize);
        return;
    }
    if (index > slot.newest_rfr) {
        session.last_heard = now;
    }
    slot.newest_rfr = index;
    slot.resent = true;  // perhaps
    answer(session, slot, {index, true}, datagram.packet, now);
}

}  // namespace cairn::erpc
