// The short path of small calls: packets that an endpoint knows by their bytes, and calls that can leave at once.
//
// A packet takes the short path if a few words equal those of its session's last packet and the word that its slot
// expects. The words stand for BTH, DETH, our header, the sender and the slot's state. All other packets take the long
// path, which judges each field by itself. So do calls that need more than one packet, more memory, or a decision. The
// short path never drops a packet that came.
#include <bit>
#include <cstddef>
#include <utility>

#include "lib/port/ecn.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "rpc/erpc/header_words.hpp"

namespace cairn::erpc {

namespace {

constexpr std::size_t kLeastBytes = SmallPacket::kHeaders + port::kIcrcBytes;

// True if the packet has the right length for a whole message.
inline bool is_whole(const port::PacketRef& packet, std::uint32_t message_bytes) noexcept {
    const std::uint32_t pad = wire::Bth::pad_of(*reinterpret_cast<const wire::RawBth*>(packet.data));
    return packet.len == kLeastBytes + message_bytes + pad && (packet.len & 3U) == 0;
}

}  // namespace

std::size_t Endpoint::take_known(std::span<port::PacketRef> burst, Instant now) noexcept {
    const auto inside = guard_.enter();
    client_.transfers().begin_turn(now);
    std::size_t taken = 0;
    std::size_t more = 0;
    do {
        more = take_run<SessionState::Serving>(burst.subspan(taken), now);
        more += take_run<SessionState::Connected>(burst.subspan(taken + more), now);
        taken += more;
    } while (more != 0 && taken < burst.size());
    return taken;
}

// Takes packets from the front that are for sessions in this state, and returns how many. Requests and responses have
// separate loops, since the compiler runs out of registers in a common one.
template <SessionState kState>
[[gnu::noinline]] std::size_t Endpoint::take_run(std::span<port::PacketRef> burst, Instant now) noexcept {
    port::PacketRef* packet = burst.data();
    port::PacketRef* const end = packet + burst.size();
    while (packet != end && take<kState>(*packet, now)) {
        ++packet;
    }
    const auto taken = static_cast<std::size_t>(packet - burst.data());
    if constexpr (kState == SessionState::Serving) {
        statistics_.requests_handled += taken - server_.take_declined();
    } else {
        statistics_.responses_received += taken;
    }
    return taken;
}

template <SessionState kState>
inline bool Endpoint::take(port::PacketRef& packet, Instant now) noexcept {
    if (packet.len < kLeastBytes) [[unlikely]] {
        return false;
    }
    const std::uint8_t* const at = packet.data;
    const FirstWord first = FirstWord::read(at + sizeof(wire::RawUd));
    if (!sessions_.has(first.session())) [[unlikely]] {
        return false;
    }
    Session& session = sessions_[first.session()];
    if (packet.path != session.peer.path) [[unlikely]] {
        return false;
    }
    if (!session.known_look.is_of(packet, first)) [[unlikely]] {
        if (!judge_look(session, packet, first)) {
            return false;
        }
        session.known_look.note(packet, first);
    }
    const SecondWord second = SecondWord::read(at + sizeof(wire::RawUd) + sizeof(std::uint64_t));
    const SmallPacket small{session, packet, first, second};
    if constexpr (kState == SessionState::Serving) {
        return server_.take_known(small, now);
    } else {
        return client_.take_known(small, now);
    }
}

// Judges a packet that differs from the session's last one, for instance because its message has another size.
[[gnu::noinline]] bool Endpoint::judge_look(const Session& session, const port::PacketRef& packet,
                                            FirstWord first) const noexcept {
    const bool is_up = session.state == SessionState::Serving || session.state == SessionState::Connected;
    return is_up && packet.icrc_ok && packet.ecn != port::kCongestionExperienced && known_.fits(packet.data) &&
           first.is_data() && roce::KnownStart::word_of(packet.data) == session.source_word &&
           first.message_bytes() <= writer_.small_bytes() && is_whole(packet, first.message_bytes());
}

// Takes the answer to a request that was sent once.
bool Client::take_known(const SmallPacket& small, Instant now) noexcept {
    Session& session = small.session;
    if (session.client == nullptr) [[unlikely]] {
        return false;
    }
    ClientSession& client = *session.client;
    const std::uint32_t slot_index = small.second.slot_index();
    ClientSlot& slot = client.slots[slot_index];
    if (small.second != slot.awaited) [[unlikely]] {
        return false;
    }
    session.last_heard = now;
    transfers_.note_round_trip(client, slot, small.first.message_bytes(), now);
    ++client.credits;
    stalled_.credits_came(session);
    client.move(slot, slot_index, SlotState::Sent, SlotState::Free);
    slot.sends = 0;
    slot.request_number = number_of_next(slot.request_number);
    calls_.finish(std::exchange(slot.call, kNone), CallStatus::Ok, small.payload(), now);
    writer_.sender().give_back(small.packet);  // the completion has read the packet
    if (!client.backlog.empty()) [[unlikely]] {
        refill_slots(session, now);
    }
    return true;
}

// Takes the next request of a slot. The slot's last answer was read and is small, and its memory suffices for the
// handler.
bool Server::take_known(const SmallPacket& small, Instant now) noexcept {
    Session& session = small.session;
    if (session.server == nullptr) [[unlikely]] {
        return false;
    }
    ServerSlot& slot = (*session.server)[small.second.slot_index()];
    const auto& entry = handlers_[small.first.request_type()];
    if (small.second != SecondWord::of(PacketType::Request, slot.request_number).of_next_call() ||
        slot.state != ServerSlotState::Answered || slot.resent || slot.response.bytes >= kTailBytes ||
        entry.function == nullptr || slot.response.capacity < entry.response_bytes_max || messages_.wanted(now))
        [[unlikely]] {
        return false;
    }
    session.last_heard = now;
    slot.response.bytes = 0;
    slot.request_number = number_of_next(slot.request_number);
    slot.request_type = small.first.request_type();
    slot.request_packets = 1;
    run_handler(session, slot, &small.packet, small.payload(), now);
    if (small.packet.cookie != nullptr) [[unlikely]] {  // the answer did not use the buffer
        writer_.sender().port().release_burst({&small.packet, 1});
    }
    return true;
}

[[gnu::always_inline]] inline bool Client::post_at_once(Session& session, const Call& call, Instant now,
                                                        CallId& id) noexcept {
    if (session.client == nullptr || session.state != SessionState::Connected ||
        call.request.size() >= at_once_below_ || calls_.is_full()) [[unlikely]] {
        return false;
    }
    ClientSession& client = *session.client;
    const std::uint8_t free = client.in(SlotState::Free);
    if (free == 0 || client.credits == 0 || client.stall != Stall::None || !client.backlog.empty()) [[unlikely]] {
        return false;
    }
    const auto slot_index = static_cast<std::uint32_t>(std::countr_zero(free));
    const std::uint32_t index = calls_.add(call, session.self, now, static_cast<std::uint8_t>(slot_index));
    id = calls_.id_of(index);
    ClientSlot& slot = client.slots[slot_index];
    slot.call = index;
    slot.sends = 1;
    slot.last_sent = now;
    --client.credits;
    client.move(slot, slot_index, SlotState::Free, SlotState::Sent);
    ++statistics_.requests_sent;
    watch_.note_sent(session, client, now);
    if (const port::PacketRef buffer = writer_.take(); buffer.cookie != nullptr) [[likely]] {
        const SecondWord second = SecondWord::of(PacketType::Request, slot.request_number);
        slot.awaited = second.of_answer();
        writer_.send_small(session, buffer, session.first_word.with(call.type, call.request.size()), second,
                           call.request, now);
    }
    return true;
}

Posted Endpoint::post(SessionId id, const Call& call, Instant now) noexcept {
    if (!sessions_.knows(id)) [[unlikely]] {
        return {PostVerdict::NoSuchSession};
    }
    Session& session = sessions_[id];
    if (CallId known = 0; client_.post_at_once(session, call, now, known)) [[likely]] {
        return {PostVerdict::Posted, known};
    }
    if (session.state != SessionState::Connected && session.state != SessionState::Connecting) {
        return {PostVerdict::NoSuchSession};
    }
    return client_.post(session, call, now);
}

}  // namespace cairn::erpc
