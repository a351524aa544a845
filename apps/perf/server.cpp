#include "apps/perf/server.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <variant>

namespace cairn::perf {

namespace {

constexpr std::uint32_t kBacklog = 256;
constexpr Duration kProbePeriod = seconds(2);
constexpr Duration kClientSilence = seconds(30);
constexpr Duration kLinger = milliseconds(250);
constexpr std::uint32_t kFirstSlots = 4096;  // initial size of a completion queue
constexpr std::size_t kLongestText = 136;    // fits any refusal

bool watches_memory(const Hello& hello) noexcept {
    return hello.operation == Operation::Write && hello.test == Test::Latency && hello.message_bytes != 0;
}

}  // namespace

Server::~Server() {
    close_connections();
}

Status Server::prepare() {
    auto sends = device().create_cq(kFirstSlots);
    auto receives = device().create_cq(kFirstSlots);
    if (!sends.ok() || !receives.ok()) {
        return sends.ok() ? receives.error() : sends.error();
    }
    sends_.emplace(std::move(sends).value());
    receives_.emplace(std::move(receives).value());
    passes_.emplace(crew().pass_key);
    const Status listening = connector().listen(options().service_port, kBacklog, connections::Sharing::Shared);
    const bool answers = listening.ok() && seat().number == 0;
    return answers ? connector().listen_datagrams(options().service_port) : listening;
}

Server::Guest* Server::find(verbs::ConnectionId id) noexcept {
    const auto found = guest_of_.find(id.value);
    return found == guest_of_.end() ? nullptr : guests_[found->second].get();
}

void Server::on_event(const cm::Event& event, Instant now) {
    if (const auto* requested = std::get_if<cm::Requested>(&event)) {
        admit(*requested, now);
    } else if (const auto* up = std::get_if<cm::Established>(&event)) {
        if (Guest* const guest = find(up->id); guest != nullptr && guest->hello.both_ways) {
            start_back(*guest, now);
        }
    } else if (const auto* asked = std::get_if<cm::DatagramRequested>(&event)) {
        on_asked(*asked, now);
    } else if (const auto* leaving = std::get_if<cm::DisconnectRequested>(&event)) {
        if (Guest* const guest = find(leaving->id); guest != nullptr) {
            part_from(*guest, now);
        }
    } else {
        remove_if_over(event, now);
    }
}

// Removes a connection that has ended. One that was not made has nothing to wait for.
void Server::remove_if_over(const cm::Event& event, Instant now) {
    const std::optional<verbs::ConnectionId> ended = ended_by(event);
    if (Guest* const guest = ended ? find(*ended) : nullptr; guest != nullptr) {
        remove(guest->index, now);
    }
}

void Server::admit(const cm::Requested& requested, Instant now) {
    if (requested.qp.path_mtu_bytes > own_path_mtu()) {
        (void)connector().reject(requested.id, bytes_of(path_mtu_offer()), now);
        return;
    }
    auto guest = std::make_unique<Guest>();
    const bool reliable = requested.qp.transport == wire::TransportService::Rc;
    guest->transport = reliable ? Transport::Rc : Transport::Uc;
    guest->remote = requested.route.remote;
    const std::string refusal = prepare_guest(*guest, requested.private_data.view(), now);
    if (!refusal.empty()) {
        (void)connector().reject(requested.id, bytes_of_text(refusal), now);
        return;
    }
    const RawAnswer answer = answer_of(*guest);
    if (!connector().accept(requested.id, guest->channel->connected(), choice(bytes_of(answer)), now).ok()) {
        (void)connector().reject(requested.id, bytes_of_text("the server can not accept the connection"), now);
        return;
    }
    guest->id = requested.id;
    guest->first_psn = guest->channel->connected().next_receive_psn();
    guest_of_[requested.id.value] = add_guest(std::move(guest));
}

RawPathMtu Server::path_mtu_offer() const {
    return {Be32{kPathMtuMagic}, Be32{own_path_mtu()}};
}

RawAnswer Server::answer_of(const Guest& guest) {
    return {Be32{kMagic}, Be32{guest.mr->rkey().value}, Be64{guest.mr->address()}};
}

std::span<const std::uint8_t> Server::bytes_of_text(std::string_view text) noexcept {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), std::min(text.size(), kLongestText)};
}

std::uint32_t Server::add_guest(std::unique_ptr<Guest> guest) {
    guest->index = free_.empty() ? static_cast<std::uint32_t>(guests_.size()) : free_.back();
    if (free_.empty()) {
        guests_.emplace_back();
    } else {
        free_.pop_back();
    }
    const Hello& hello = guest->hello;
    for (std::uint32_t i = guest->receives(); i > 0; --i) {
        post_receive(*guest);
    }
    if (watches_memory(hello)) {
        watched_.push_back(guest->index);
    }
    guest->unused_ticket = unused_.add(guest->remote, guest->index);
    unused_bytes_ += guest->bytes;
    unused_written_bytes_ += guest->written_bytes;
    bytes_of_.add(guest->remote, guest->bytes);
    crew().guests.fetch_add(1, std::memory_order_relaxed);
    if (hello.last) {
        crew().last_came.store(true, std::memory_order_release);
    }
    ++connections_;
    const std::uint32_t index = guest->index;
    guests_[index] = std::move(guest);
    return index;
}

void Server::part_from(Guest& guest, Instant now) {
    const RawFarewell farewell = end_of(guest, now);
    (void)connector().disconnect(guest.id, bytes_of(farewell), now);
}

RawFarewell Server::end_of(Guest& guest, Instant now) {
    while (collect_messages() != 0) {  // messages that came before the end
    }
    std::erase(watched_, guest.index);
    bad_ += guest.bad;
    return {Be32{kMagic},          Be32{},
            Be64{guest.received},  Be64{guest.bad},
            Be64{guest.completed}, Be64{static_cast<std::uint64_t>((now - guest.up_at).ns)}};
}

// Removes a connection that is over: no completion or event of it comes any more.
void Server::remove(std::uint32_t index, Instant now) {
    Guest& guest = *guests_[index];
    std::erase(watched_, index);
    count_as_used(guest);
    guest_at_.erase(guest.channel->qpn().value);
    if (guest.transport != Transport::Ud) {
        guest_of_.erase(guest.id.value);
        connector().abandon(guest.id, now);
    }
    bytes_of_.remove(guest.remote, guest.bytes);
    keep_spare(guest);
    guests_[index].reset();
    free_.push_back(index);
    crew().left_at.store(now, std::memory_order_relaxed);
    crew().guests.fetch_sub(1, std::memory_order_release);
}

// Waits for a moment after the last client has gone, since the last answer may still be on its way. A memif link loses
// its packets when one end goes.
bool Server::finished(Instant now) const noexcept {
    return is_over() || (options().once && crew().last_came.load(std::memory_order_acquire) &&
                         crew().guests.load(std::memory_order_acquire) == 0 &&
                         now - crew().left_at.load(std::memory_order_relaxed) >= kLinger);
}

void Server::look(Instant now) {
    show(PerfCounter::Received, received_);
    show(PerfCounter::Bytes, received_bytes_);
    show(PerfCounter::Connections, connections_);
    probe_guests(now);
}

// Finds clients that vanished: by a WRITE of no bytes now and then, or, if they are unreliable, by their silence.
void Server::probe_guests(Instant now) {
    while (now >= probe_at_ && !guests_.empty()) {
        next_probe_ = next_probe_ + 1 < guests_.size() ? next_probe_ + 1 : 0;
        probe_at_ = now + kProbePeriod / static_cast<std::int64_t>(guests_.size());
        Guest* const guest = guests_[next_probe_].get();
        if (guest != nullptr && guest->channel->is_up()) {
            probe(*guest, now);
        }
    }
}

void Server::probe(Guest& guest, Instant now) {
    if (!guest.unreliable()) {
        verbs::SendRequest write;
        write.wr_id = guest.index;
        write.opcode = verbs::WorkOpcode::RdmaWrite;
        write.signalled = false;
        (void)guest.channel->post_send(write);  // a full queue has probes enough
    } else if (guest.received != guest.heard) {
        guest.heard = guest.received;
        guest.heard_at = now;
    } else if (now - guest.heard_at > kClientSilence) {
        ++lost_;
        remove(guest.index, now);
    }
}

void Server::absorb(const PerfWorker& other) {
    const auto& server = dynamic_cast<const Server&>(other);
    connections_ += server.connections_;
    lost_ += server.lost_;
    received_ += server.received_;
    bad_ += server.bad_;
}

std::string Server::json() const {
    return fmt::format("{{\"role\":\"server\",\"connections\":{},\"lost\":{},\"received\":{},\"bad\":{}}}",
                       connections_, lost_, received_, bad_);
}

std::string Server::table() const {
    return fmt::format(" connections: {}, of them lost: {}\n messages received: {}, not as they were sent: {}\n",
                       connections_, lost_, received_, bad_);
}

}  // namespace cairn::perf
