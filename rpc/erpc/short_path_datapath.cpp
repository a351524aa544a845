// The short path of small calls: packets that an endpoint knows by their bytes, and calls that can leave at once.
//
// A packet takes it when a few words equal those of its session's last one and what its slot expects: the words stand
// for BTH, DETH, our header, the sender and the slot's state. Whatever differs, and whatever needs more than one
// packet, more memory, or a decision, goes the long way, which judges each field by itself. The short path never drops
// or counts a drop.
#include <bit>
#include <cstddef>

#include "lib/port/ecn.hpp"
#include "rpc/erpc/endpoint.hpp"
#include "rpc/erpc/header_words.hpp"

namespace cairn::erpc {

namespace {

constexpr std::size_t kHeaders = sizeof(wire::RawUd) + sizeof(RawHeader);
constexpr std::size_t kLeastBytes = kHeaders + port::kIcrcBytes;

// The message is whole, in a packet of the right length.
inline bool is_whole(const port::PacketRef& packet, std::uint32_t message_bytes) noexcept {
    const std::uint32_t pad = wire::Bth::pad_of(*reinterpret_cast<const wire::RawBth*>(packet.data));
    return packet.len == kLeastBytes + message_bytes + pad && (packet.len & 3U) == 0;
}

}  // namespace

std::size_t Endpoint::take_known(std::span<port::PacketRef> burst, Instant now) noexcept {
    std::size_t taken = 0;
    while (taken < burst.size() && take(burst[taken], now)) {
        ++taken;
    }
    return taken;
}

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
    if (packet.path != session.peer.path || !packet.icrc_ok || packet.ecn == port::kCongestionExperienced)
        [[unlikely]] {
        return false;
    }
    const PacketLook look = PacketLook::of(packet, first);
    if (look != session.known_look) [[unlikely]] {
        if (!judge_look(session, packet, first)) {
            return false;
        }
        session.known_look = look;
    }
    const SecondWord second = SecondWord::read(at + sizeof(wire::RawUd) + sizeof(std::uint64_t));
    const SmallPacket small{session, packet, first, second, {packet.data + kHeaders, first.message_bytes()}};
    return session.state == SessionState::Serving ? server_.take_known(small, now) : client_.take_known(small, now);
}

// Of packets that do not look like the session's last one: of another message size, say.
[[gnu::noinline]] bool Endpoint::judge_look(const Session& session, const port::PacketRef& packet,
                                            FirstWord first) const noexcept {
    return known_.fits(packet.data) && first.is_data() &&
           roce::KnownStart::word_of(packet.data) == session.source_word &&
           first.message_bytes() <= writer_.small_bytes() && is_whole(packet, first.message_bytes());
}

// The answer to a request that was sent once, into a session that can take it.
bool Client::take_known(const SmallPacket& small, Instant now) noexcept {
    Session& session = small.session;
    if (session.state != SessionState::Connected || session.client == nullptr) [[unlikely]] {
        return false;
    }
    ClientSession& client = *session.client;
    ClientSlot& slot = client.slots[small.second.slot_index()];
    if (small.second != SecondWord::of(PacketType::Response, slot.request_number) || slot.state != SlotState::Sent ||
        slot.sends != 1 || calls_[slot.call].request.size() >= kTailBytes) [[unlikely]] {
        return false;
    }
    session.last_heard = now;
    ++statistics_.responses_received;
    client.note_round_trip(now - slot.last_sent, small.payload.size(), transfers_.spoils(slot.last_sent), now);
    ++client.credits;
    const Duration latency = now - slot.first_sent;
    calls_.finish(client.free_slot(slot), CallStatus::Ok, small.payload, latency);
    writer_.sender().give_back(small.packet);  // the completion is done with it
    if (!client.backlog.empty()) [[unlikely]] {
        refill_slots(session, now);
    }
    return true;
}

// The next request of a slot whose last answer was read and is small, for a handler that needs no more than the slot
// has.
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
    slot.request_number = (slot.request_number + kSlotsPerSession) & kRequestNumberMask;
    slot.request_type = small.first.request_type();
    slot.request_packets = 1;
    run_handler(session, slot, &small.packet, small.payload, now);
    if (small.packet.cookie != nullptr) [[unlikely]] {  // as on the long way, which lets it go when the burst ends
        writer_.sender().port().release_burst({&small.packet, 1});
    }
    return true;
}

[[gnu::always_inline]] inline bool Client::post_at_once(Session& session, const Call& call, Instant now,
                                                        CallId& id) noexcept {
    if (session.client == nullptr || session.state != SessionState::Connected ||
        call.request.size() > writer_.small_bytes() || calls_.is_full()) [[unlikely]] {
        return false;
    }
    ClientSession& client = *session.client;
    const std::uint8_t free = client.in(SlotState::Free);
    if (free == 0 || client.credits == 0 || client.in_stall_queue || !client.backlog.empty()) [[unlikely]] {
        return false;
    }
    const auto slot_index = static_cast<std::uint32_t>(std::countr_zero(free));
    const std::uint32_t index = calls_.add(call, session.self);
    id = calls_.id_of(index);
    calls_.put_into_slot(index, slot_index);
    ClientSlot& slot = client.slots[slot_index];
    slot.call = index;
    slot.sends = 1;
    slot.first_sent = slot.last_sent = now;
    --client.credits;
    client.move(slot, SlotState::Sent);
    ++statistics_.requests_sent;
    watch_.note_sent(session, now);
    if (const port::PacketRef buffer = writer_.take(); buffer.cookie != nullptr) [[likely]] {
        writer_.send_small(session, buffer, FirstWord::of(call.type, call.request.size(), session.remote),
                           SecondWord::of(PacketType::Request, slot.request_number), call.request, now);
    }
    return true;
}

Posted Endpoint::post(SessionId id, const Call& call, Instant now) noexcept {
    if (!sessions_.has(id)) [[unlikely]] {
        return {PostVerdict::NoSuchSession};
    }
    Session& session = sessions_[id];
    if (CallId known = 0; config_.short_path && client_.post_at_once(session, call, now, known)) [[likely]] {
        return {PostVerdict::Posted, known};
    }
    if (session.state != SessionState::Connected && session.state != SessionState::Connecting) {
        return {PostVerdict::NoSuchSession};
    }
    return client_.post(session, call, now);
}

}  // namespace cairn::erpc
