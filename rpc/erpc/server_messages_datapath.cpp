#include "rpc/erpc/server_messages.hpp"

#include <algorithm>
#include <utility>

#include "lib/base/copy.hpp"
#include "rpc/erpc/server_sessions.hpp"

namespace cairn::erpc {

namespace {

// How long memory counts as scarce after it was last wanted. A client that waits for it is never silent for that long.
constexpr Duration kPressure = kRtoMax + milliseconds(50);
constexpr std::uint64_t kLargePart = 4;  // a larger request than this part of the memory rushes no others

constexpr Duration time_for(std::uint32_t message_bytes) noexcept {
    return milliseconds(message_bytes / ServerMessages::kSlowestBytesPerMs);
}

}  // namespace

std::uint8_t ServerMessages::share_of(const Session& session) const noexcept {
    return static_cast<std::uint8_t>(KeyedHash{key_}(session.peer.path->key().remote.share_holder()));
}

// True if the request is within its host's half of the memory and its session's quarter. Neither limit refuses the
// first request.
bool ServerMessages::within_share(const Session& session, std::uint8_t source, std::uint64_t bytes) const noexcept {
    const std::uint64_t capacity = pool_.capacity_bytes();
    const Holding& host = by_source_[source];
    std::uint64_t own = 0;
    for (const ServerSlot& slot : *session.server) {
        own += slot.transfer != nullptr ? slot.transfer->request.memory.capacity_bytes : 0;
    }
    return (host.bytes == 0 || (host.bytes + bytes <= capacity / 2 && host.requests < transfers_max_ / 2)) &&
           (own == 0 || own + bytes <= capacity / 4);
}

bool ServerMessages::begin_request(Session& session, ServerSlot& slot, const Header& header, Instant now) noexcept {
    end_request(slot);  // its client gave it up
    const std::uint8_t source = share_of(session);
    const std::uint64_t bytes = rpc::MsgPool::bytes_for(header.message_bytes);
    if (!within_share(session, source, bytes)) {
        statistics_.count(Drop::ShareTaken);
        press(by_source_[source], now);
        return false;
    }
    const bool fits = all_.bytes == 0 || all_.bytes + bytes + bytes_for_answers_ <= pool_.capacity_bytes();
    ServerTransfer* const transfer = fits ? transfers_.take() : nullptr;
    const rpc::MsgBuffer memory = transfer != nullptr ? pool_.allocate(header.message_bytes) : rpc::MsgBuffer{};
    if (!memory.valid()) {
        statistics_.count(Drop::NoBuffer);
        if (bytes <= pool_.capacity_bytes() / kLargePart) {  // a larger request waits for a place
            press(all_, now);
            short_ = short_ || transfer != nullptr;
        }
        if (transfer != nullptr) {
            transfers_.give_back(transfer);
        }
        return false;
    }
    retire_answer(slot, header.request_number);
    transfer->request = memory;
    transfer->packets = packets_of(header.message_bytes, packet_bytes_);
    transfer->source = source;
    transfer->begun = transfer->heard = now;
    account(*transfer, 1);
    slot.transfer = transfer;
    slot.request_number = header.request_number;
    slot.request_type = header.request_type;
    slot.request_packets = transfer->packets;
    slot.state = ServerSlotState::Receiving;
    return true;
}

void ServerMessages::account(ServerTransfer& transfer, int sign) noexcept {
    for (Holding* const holding : {&all_, &by_source_[transfer.source]}) {
        holding->bytes += static_cast<std::uint64_t>(sign) * transfer.request.memory.capacity_bytes;
        holding->requests += static_cast<std::uint32_t>(sign);
    }
}

rpc::MsgBuffer ServerMessages::give_back(ServerSlot& slot) noexcept {
    CAIRN_ASSERT(slot.state == ServerSlotState::Receiving);
    account(*slot.transfer, -1);
    const rpc::MsgBuffer request = slot.transfer->request;
    transfers_.give_back(std::exchange(slot.transfer, nullptr));
    return request;
}

void ServerMessages::end_request(ServerSlot& slot) noexcept {
    if (slot.state == ServerSlotState::Receiving) {
        rpc::MsgBuffer request = give_back(slot);
        pool_.release(request);
        slot.state = ServerSlotState::GivenUp;
    }
}

rpc::MsgBuffer ServerMessages::take_request(ServerSlot& slot) noexcept {
    const rpc::MsgBuffer request = give_back(slot);
    slot.state = ServerSlotState::Executing;
    return request;
}

void ServerMessages::skip_to(ServerSlot& slot, std::uint64_t number) noexcept {
    const std::uint64_t ahead = numbers_ahead(number, slot.request_number);
    if (slot.state == ServerSlotState::Executing || ahead <= kMaxRequestJump || ahead > kRequestNumberMask / 2) {
        return;
    }
    end_request(slot);
    forget_answer(slot);
    slot.request_number = (number - kSlotsPerSession) & kRequestNumberMask;
    slot.state = ServerSlotState::Idle;
}

// Lets slots that hold memory take turns with slots that found none. Otherwise the first ones would keep memory for
// ever.
bool ServerMessages::has_room(ServerSlot& slot, std::uint32_t bytes, Instant now) noexcept {
    if (wanted_.bytes != 0 && yields_left_ != 0 && slot.response.valid()) {
        --yields_left_;
        wanted_.bytes -= std::min<std::uint64_t>(wanted_.bytes, slot.response.memory.capacity_bytes);
        wanted_.newly = std::min(wanted_.newly, wanted_.bytes);
        forget_answer(slot);
        return false;
    }
    const bool holds_too_much = slot.response.valid() && now < scarce_until_ &&
                                (bytes == 0 || rpc::MsgPool::bytes_for(bytes) < slot.response.memory.capacity_bytes);
    if (holds_too_much) {
        forget_answer(slot);
    }
    return slot.response.capacity >= bytes || make_room(slot, bytes);
}

[[gnu::noinline]] bool ServerMessages::make_room(ServerSlot& slot, std::uint32_t bytes) noexcept {
    forget_answer(slot);
    slot.response = pool_.allocate(bytes);
    if (!slot.response.valid()) {
        want(rpc::MsgPool::bytes_for(bytes));
        return false;
    }
    slot.response.bytes = 0;
    return true;
}

void ServerMessages::forget_answer(ServerSlot& slot) noexcept {
    settle({slot.response.data, slot.response.capacity});
    drop_answer(slot);
}

void ServerMessages::drop_answer(ServerSlot& slot) noexcept {
    pool_.release(slot.response);
    if (slot.state == ServerSlotState::Answered) {
        slot.state = ServerSlotState::Forgotten;
    }
}

[[gnu::noinline]] void ServerMessages::move_to_fitting(ServerSlot& slot) noexcept {
    if (rpc::MsgPool::bytes_for(slot.response.bytes) > slot.response.memory.capacity_bytes / 2) {
        return;
    }
    const rpc::MsgBuffer fitting = pool_.allocate(slot.response.bytes);
    if (fitting.valid()) {
        copy_bytes(fitting.data, slot.response.data, slot.response.bytes);
        settle({slot.response.data, slot.response.capacity});  // the answer before this one may still wait
        pool_.release(slot.response);
        slot.response = fitting;
    }
}

void ServerMessages::release(ServerSlots& slots) noexcept {
    const bool large = std::any_of(slots.begin(), slots.end(),
                                   [](const ServerSlot& slot) { return slot.response.capacity >= kTailBytes; });
    if (large) {
        sender_.settle_tails();
    }
    for (ServerSlot& slot : slots) {
        end_request(slot);
        drop_answer(slot);
    }
}

void ServerMessages::press(Holding& holding, Instant now) noexcept {
    holding.pressed_until = hurry_until_ = now + kPressure;
}

bool ServerMessages::on_scan(Instant now) noexcept {
    wanted_.bytes = std::exchange(wanted_.newly, 0);
    yields_left_ = kYieldsPerScan;
    const Duration gone = last_scan_ == Instant{} ? Duration{} : now - last_scan_;
    // A pause grants clients time to be heard. While that time runs, only a pause that uses all of it up grants more.
    const bool grants = patient_until_ <= last_scan_ ? gone >= patience_.pressed / 2 : gone >= kRtoMax;
    if (grants) {
        patient_until_ = now + kRtoMax;
    }
    last_scan_ = now;
    if (std::exchange(short_, false)) {
        press(all_, now);
        scarce_until_ = hurry_until_;
    }
    return now < hurry_until_ && now >= patient_until_;
}

bool ServerMessages::is_overdue(const ServerTransfer& transfer, Instant now) const noexcept {
    const Duration silent = now - transfer.heard;
    if (now >= all_.pressed_until && now >= by_source_[transfer.source].pressed_until) {
        return silent >= patience_.request;
    }
    const Duration granted = patience_.slow + time_for(transfer.request.bytes);
    return silent >= patience_.pressed || now - transfer.begun >= granted;
}

bool ServerMessages::is_stale(const ServerSlot& slot, Instant now) const noexcept {
    Duration patience = patience_.answer;
    if (now < scarce_until_) {
        const bool half_read = slot.newest_rfr + 1 < packets_of(slot.response.bytes, packet_bytes_);
        patience = half_read ? patience_.slow + time_for(slot.response.bytes) : patience_.pressed;
    }
    return microseconds_of(now) - slot.answered_us >= microseconds_of(Instant{patience.ns});
}

void ServerMessages::give_up_old(ServerSlots& slots, Instant now) noexcept {
    if (now < patient_until_) {
        return;
    }
    for (ServerSlot& slot : slots) {
        if (slot.state == ServerSlotState::Receiving && is_overdue(*slot.transfer, now)) {
            end_request(slot);
            statistics_.count(Drop::RequestGivenUp);
        }
        const bool idle = slot.state != ServerSlotState::Receiving && slot.state != ServerSlotState::Executing;
        if (idle && slot.response.valid() && is_stale(slot, now)) {
            statistics_.count(Drop::AnswerForgotten);
            forget_answer(slot);
        }
    }
}

}  // namespace cairn::erpc
