// The memory that the server gives to a client, and takes back from clients.
#include <fmt/format.h>

#include <array>
#include <bit>

#include "apps/perf/server.hpp"

namespace cairn::perf {

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30U;  // of one host
constexpr std::uint64_t kSlotBytes = 320;                      // of a queue entry and its completion, approximately
// Limit of memory written for clients that did nothing yet: queues, and the contents for READs that are checked.
constexpr std::uint64_t kMostWrittenBytes = std::uint64_t{64} << 20U;
// Receive requests of an unreliable client, which does not wait for the server, within the memory limit below.
constexpr std::uint32_t kUnreliableReceives = 256;
constexpr std::uint32_t kUnreliableBytes = 4U << 20U;
// Limit of connections that were never used. An honest client makes at most this many before it begins.
constexpr std::size_t kMostUnused = 1024;

bool is_sane(const Hello& hello) noexcept {
    return hello.share >= 1 && hello.share <= kMostOutstanding && hello.slots >= 1 && hello.slots <= kMostOutstanding &&
           std::has_single_bit(hello.slots) && hello.message_bytes <= roce::kMaxMessageBytes;
}

// Returns whether the memory gets a pattern before the client begins, since its READs are checked.
bool is_filled(const Hello& hello) noexcept {
    return hello.check && hello.operation == Operation::Read;
}

}  // namespace

std::string Server::prepare_guest(Guest& guest, std::span<const std::uint8_t> said, Instant now) {
    const std::optional<Hello> hello = parse_hello(said);
    if (!hello || !is_sane(*hello)) {
        return fmt::format("this is the server of cairn-perf, protocol version {}", kVersion);
    }
    if (!passes_->is_good(hello->pass, guest.remote, now)) {
        return "the client shows no pass of this server, or one that is too old; start it again";
    }
    guest.hello = *hello;
    guest.heard_at = now;
    guest.layout = layout_of(guest);
    measure(guest);
    if (guest.bytes + bytes_of_.of(guest.remote) > kMostBytes / crew().workers ||
        guest.written_bytes > kMostWrittenBytes / crew().workers) {
        return "the host's tests need more memory than the server gives; choose a smaller --size or --depth";
    }
    while (unused_.size() >= kMostUnused / crew().workers ||
           unused_written_bytes_ + guest.written_bytes > kMostWrittenBytes / crew().workers) {
        if (!look_at_own(guest) && !make_room(guest, now)) {
            return "the client has too many connections that it does not use";
        }
    }
    const Status room = take_completions(guest);
    if (!room.ok()) {
        return room.error().text();
    }
    Status made = make_guest(guest);
    while (!made.ok() && unused_bytes_ >= guest.bytes && make_room(guest, now)) {
        made = make_guest(guest);
    }
    return made.ok() ? "" : made.error().text();
}

// Takes back the memory of clients that did nothing. It takes that of the oldest one of the host that holds most,
// unless that is the new client's own host.
bool Server::make_room(const Guest& guest, Instant now) {
    while (const std::optional<std::uint32_t> oldest = unused_.who_gives_way_to(guest.remote)) {
        Guest& holder = *guests_[*oldest];
        if (!is_used(holder)) {
            ++lost_;
            remove(*oldest, now);
            return true;
        }
        count_as_used(holder);
    }
    return false;
}

// Returns true if the client's host has used some of its oldest connections. These no longer count.
bool Server::look_at_own(const Guest& guest) {
    std::array<std::uint32_t, 16> oldest;
    bool used = false;
    for (const std::uint32_t index : std::span(oldest).first(unused_.oldest_of(guest.remote, oldest))) {
        if (is_used(*guests_[index])) {
            count_as_used(*guests_[index]);
            used = true;
        }
    }
    return used;
}

bool Server::is_used(Guest& guest) noexcept {
    return guest.received != 0 || guest.completed != 0 ||
           (guest.transport != Transport::Ud && guest.channel->connected().next_receive_psn() != guest.first_psn);
}

void Server::count_as_used(Guest& guest) {
    if (guest.unused_ticket != 0) {
        unused_.remove(guest.remote, std::exchange(guest.unused_ticket, 0));
        unused_bytes_ -= guest.bytes;
        unused_written_bytes_ -= guest.written_bytes;
    }
}

// Takes room for a completion of each request, and for one of a probe. The probe may take the send slot of a request
// whose completion was not polled yet.
Status Server::take_completions(Guest& guest) {
    const verbs::QpCapacity capacity = capacity_of(guest);
    auto sends = sends_->take(guest.remote, capacity.send_slots + 1);
    if (!sends.ok()) {
        return sends.error();
    }
    auto receives = receives_->take(guest.remote, capacity.receive_slots);
    if (!receives.ok()) {
        return receives.error();
    }
    guest.send_room = std::move(sends).value();
    guest.receive_room = std::move(receives).value();
    return Nothing{};
}

Result<Server::GuestMemory> Server::allocate(std::size_t bytes) {
    if (auto spare = spares_.take(bytes); spare != nullptr) {
        return GuestMemory{std::move(spare), bytes};
    }
    for (;;) {
        auto block = pmd::HeapBlock::allocate(bytes, "messages");
        if (block.ok()) {
            return GuestMemory{std::make_unique<pmd::HeapBlock>(std::move(block).value()), bytes};
        }
        if (!spares_.give_up_one()) {
            return block.error();
        }
    }
}

// Keeps the memory of a client that did nothing, unless the server wrote to it. A client's datagrams may have come
// unnoticed.
void Server::keep_spare(Guest& guest) {
    const bool spares = guest.memory.heap != nullptr && !guest.memory.heap->is_given_back();
    if (!spares || guest.transport == Transport::Ud || is_filled(guest.hello) || is_used(guest)) {
        return;
    }
    guest.channel.reset();
    guest.mr.reset();
    spares_.keep(std::move(guest.memory.heap));
}

std::uint32_t Server::Guest::receives() const noexcept {
    const std::uint32_t more = std::min(kUnreliableReceives, kUnreliableBytes / std::max(hello.message_bytes, 1U));
    return takes_receives() ? std::max(2 * hello.share, unreliable() ? more : 0U) : 0U;
}

// Returns the layout. SENDs with checked contents have a place for each receive request.
MessageLayout Server::layout_of(const Guest& guest) noexcept {
    const Hello& hello = guest.hello;
    const bool of_their_own = hello.check && guest.takes_receives();
    const std::uint32_t least = hello.operation == Operation::Send ? 2 * hello.slots : hello.slots;
    return {hello.message_bytes, of_their_own ? std::max(least, std::bit_ceil(guest.receives())) : least};
}

verbs::QpCapacity Server::capacity_of(const Guest& guest) const noexcept {
    verbs::QpCapacity capacity;
    capacity.send_slots = guest.unreliable() ? 64 : 8 + (guest.hello.both_ways ? guest.hello.share : 0);
    capacity.receive_slots = std::max(1U, guest.receives());
    capacity.inline_bytes = 0;
    capacity.window_packets = options().packet_window;
    return capacity;
}

void Server::measure(Guest& guest) const noexcept {
    const verbs::QpCapacity capacity = capacity_of(guest);
    const std::uint64_t queues = std::uint64_t{capacity.send_slots + capacity.receive_slots} * kSlotBytes;
    guest.bytes = guest.layout.area_bytes() + queues;
    guest.written_bytes = queues + (is_filled(guest.hello) ? guest.layout.area_bytes() : 0);
}

Status Server::make_guest(Guest& guest) {
    const Hello& hello = guest.hello;
    guest.mr.reset();
    guest.memory = {};
    auto memory = allocate(guest.layout.area_bytes() + kHeaderArea);
    if (!memory.ok()) {
        return memory.error();
    }
    guest.memory = std::move(memory).value();
    auto mr = device().register_memory(pd(), guest.memory.bytes(), kRemoteRights | verbs::Right::LocalWrite);
    if (!mr.ok()) {
        return mr.error();
    }
    guest.mr = std::move(mr).value();
    for (std::uint32_t slot = 0; is_filled(hello) && slot < hello.slots; ++slot) {
        fill_pattern(guest.message(slot), slot);
    }
    auto channel =
        Channel::create(guest.transport, device(), pd(), capacity_of(guest), {sends_->queue(), receives_->queue()});
    if (!channel.ok()) {
        return channel.error();
    }
    guest.channel = std::move(channel).value();
    return Nothing{};
}

}  // namespace cairn::perf
