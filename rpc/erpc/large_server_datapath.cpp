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
    switch (judge_request_packet(slot, header, packet_bytes_, max_message_bytes_)) {
        case PacketVerdict::Part:
            break;
        case PacketVerdict::Begin:
            if (!begin_request(slot, header)) {
                return;
            }
            break;
        case PacketVerdict::Known:
            repeat_answer(session, slot, datagram, header, now);
            return;
        case PacketVerdict::Busy:
            statistics_.count(Drop::DuplicateBusy);
            return;
        case PacketVerdict::Stale:
            statistics_.count(Drop::StaleRequest);
            return;
        case PacketVerdict::Future:
            statistics_.count(Drop::FutureRequest);
            return;
        case PacketVerdict::WrongSize:
            statistics_.count(Drop::BadSize);
            return;
    }
    take_request_packet(session, slot, datagram, header, now);
}

// False: there is no handler, or no memory now; the client tries again.
bool Endpoint::begin_request(ServerSlot& slot, const Header& header) noexcept {
    if (!handlers_[header.request_type].registered()) {
        statistics_.count(Drop::NoHandler);
        return false;
    }
    end_request(slot);  // of a request that its client gave up
    ServerTransfer* const transfer = server_transfers_.take();
    const rpc::MsgBuffer memory = transfer != nullptr ? pool_.allocate(header.message_bytes) : rpc::MsgBuffer{};
    if (!memory.valid()) {
        statistics_.count(Drop::NoBuffer);
        if (transfer != nullptr) {
            server_transfers_.give_back(transfer);
        }
        return false;
    }
    settle(slot.response.span());
    transfer->request = memory;
    transfer->packets = packets_of(header.message_bytes, packet_bytes_);
    slot.transfer = transfer;
    slot.request_number = header.request_number;
    slot.request_type = header.request_type;
    slot.request_packets = transfer->packets;
    slot.state = ServerSlotState::Receiving;
    slot.response.bytes = 0;
    slot.resent = false;
    return true;
}

void Endpoint::end_request(ServerSlot& slot) noexcept {
    if (slot.transfer != nullptr) {
        pool_.release(slot.transfer->request);
        server_transfers_.give_back(slot.transfer);
        slot.transfer = nullptr;
    }
}

void Endpoint::take_request_packet(Session& session, ServerSlot& slot, const roce::UdDatagram& datagram,
                                   const Header& header, Instant now) noexcept {
    ServerTransfer& transfer = *slot.transfer;
    const std::uint32_t index = resolve_number(header.packet_number, transfer.received.next());
    const std::size_t payload_bytes = datagram.payload_bytes - sizeof(RawHeader);
    if (index >= transfer.packets || payload_bytes != bytes_of_packet(header.message_bytes, packet_bytes_, index)) {
        statistics_.count(Drop::BadSize);
        return;
    }
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
        std::memcpy(transfer.request.data + std::size_t{index} * packet_bytes_, datagram.payload + sizeof(RawHeader),
                    payload_bytes);
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

// All of a request is there. False: it can not be executed in the background now.
bool Endpoint::execute_transfer(Session& session, ServerSlot& slot, port::PacketRef* packet, Instant now) noexcept {
    if (handlers_[slot.request_type].function != nullptr) {
        run_handler(session, slot, packet, slot.transfer->request.span(), now);
        end_request(slot);
        return true;
    }
    BackgroundJob* const job = prepare_job(slot.request_type, slot, {});
    if (job == nullptr) {
        return false;
    }
    job->request = slot.transfer->request;  // changes hands
    slot.transfer->request = {};
    end_request(slot);
    submit_job(session, slot, *job);
    return true;
}

// One for all of a burst: what came in order, and which packets are ahead of a gap.
void Endpoint::send_credit_returns(Instant now) noexcept {
    for (const CreditDue& due : credits_due_) {
        Session& session = sessions_[due.session];
        ServerSlot* const slot = session.server_slots != nullptr ? &(*session.server_slots)[due.slot] : nullptr;
        if (slot == nullptr || slot->transfer == nullptr || !slot->transfer->credit_due) {
            continue;  // answered meanwhile, or gone
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
    header.request_type = held_code(now - sender_.carrier().empty_at());
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
        answer(session, slot, 0, datagram.packet, now);
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
        return;
    }
    const std::uint32_t number = resolve_number(header.packet_number, slot.newest_rfr + slot.request_packets);
    const std::uint32_t index = number + 1 - slot.request_packets;
    if (number < slot.request_packets || index >= packets_of(slot.response.bytes, packet_bytes_)) {
        statistics_.count(Drop::BadSize);
        return;
    }
    slot.newest_rfr = index;
    slot.resent = true;  // perhaps
    answer(session, slot, index, datagram.packet, now);
}

}  // namespace cairn::erpc
