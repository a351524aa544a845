// What the server gives to a client, and from whom it takes that back.
#include <fmt/format.h>

#include <bit>

#include "apps/perf/server.hpp"

namespace cairn::perf {

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30U;
// Unreliable clients do not wait for us: so many receive requests, as far as they take no more memory than that.
constexpr std::uint32_t kUnreliableReceives = 256;
constexpr std::uint32_t kUnreliableBytes = 4U << 20U;

bool is_sane(const Hello& hello) noexcept {
    return hello.share >= 1 && hello.share <= kMostOutstanding && hello.slots >= 1 && hello.slots <= kMostOutstanding &&
           std::has_single_bit(hello.slots) && hello.message_bytes <= roce::rc::kMaxMessageBytes;
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
    if (guest.layout.area_bytes() > kMostBytes) {
        return "the test needs more memory than the server gives; choose a smaller --size or --depth";
    }
    Status made = make_guest(guest);
    while (!made.ok() && make_room(guest, now)) {
        made = make_guest(guest);
    }
    return made.ok() ? "" : made.error().text();
}

// What was given to clients that were not heard of since, oldest first of the host that has most of it.
bool Server::make_room(const Guest& guest, Instant now) {
    const std::optional<std::uint32_t> oldest = unbegun_.first_to_go();
    if (!oldest || unbegun_bytes_ < guest.layout.area_bytes()) {
        return false;
    }
    ++lost_;
    remove(*oldest, now);
    return true;
}

// Its client was heard of.
void Server::begin(Guest& guest) {
    if (guest.unbegun_ticket != 0) {
        unbegun_.remove(guest.remote, guest.unbegun_ticket);
        unbegun_bytes_ -= guest.layout.area_bytes();
        guest.unbegun_ticket = 0;
    }
}

std::uint32_t Server::Guest::receives() const noexcept {
    const std::uint32_t more = std::min(kUnreliableReceives, kUnreliableBytes / std::max(hello.message_bytes, 1U));
    return takes_receives() ? std::max(2 * hello.share, unreliable() ? more : 0U) : 0U;
}

// SENDs that are looked at have a place for each receive request.
MessageLayout Server::layout_of(const Guest& guest) noexcept {
    const Hello& hello = guest.hello;
    const bool of_their_own = hello.check && guest.takes_receives();
    const std::uint32_t least = hello.operation == Operation::Send ? 2 * hello.slots : hello.slots;
    return {hello.message_bytes, of_their_own ? std::max(least, std::bit_ceil(guest.receives())) : least};
}

Status Server::make_guest(Guest& guest) {
    const Hello& hello = guest.hello;
    guest.mr.reset();
    guest.memory.reset();
    auto memory = pmd::HeapBlock::allocate(guest.layout.area_bytes() + kHeaderArea, "messages");
    if (!memory.ok()) {
        return memory.error();
    }
    guest.memory = std::make_unique<pmd::HeapBlock>(std::move(memory).value());
    auto mr = device().register_memory(pd(), guest.memory->bytes(), kRemoteRights | verbs::Right::LocalWrite);
    if (!mr.ok()) {
        return mr.error();
    }
    guest.mr = std::move(mr).value();
    for (std::uint32_t slot = 0; hello.check && hello.operation == Operation::Read && slot < hello.slots; ++slot) {
        fill_pattern(guest.message(slot), slot);
    }
    verbs::QpCapacity capacity;
    capacity.send_slots = guest.unreliable() ? 64 : 8 + (hello.both_ways ? hello.share : 0);
    capacity.receive_slots = std::max(1U, guest.receives());
    capacity.inline_bytes = 0;
    capacity.window_packets = options().packet_window;
    auto channel = Channel::create(guest.transport, device(), pd(), capacity, {*sends_, *receives_});
    if (!channel.ok()) {
        return channel.error();
    }
    guest.channel = std::move(channel).value();
    return Nothing{};
}

}  // namespace cairn::perf
