// The server of the rping exchange.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "apps/perf/rping.hpp"

namespace cairn::perf {

namespace {

constexpr std::uint32_t kPingBacklog = 16;
constexpr std::uint32_t kCompletionSlots = 4096;

}  // namespace

RpingServer::~RpingServer() {
    close_connections();
}

Status RpingServer::prepare() {
    auto made = device().create_cq(kCompletionSlots);
    if (!made.ok()) {
        return made.error();
    }
    completions_ = std::move(made).value();
    return connector().listen(options().service_port, kPingBacklog);
}

bool RpingServer::finished(Instant) const noexcept {
    return options().once && connections_ != 0 && guests_.empty();
}

void RpingServer::on_event(const cm::Event& event, Instant now) {
    if (const auto* requested = std::get_if<cm::Requested>(&event)) {
        admit(requested->id, now);
    } else if (std::holds_alternative<cm::Established>(event)) {
        ++connections_;  // a host that only asks is no client
    } else if (const auto* leaving = std::get_if<cm::DisconnectRequested>(&event)) {
        (void)connector().disconnect(leaving->id, {}, now);
    } else if (const auto ended = ended_by(event)) {
        // A connection that was not made needs no memory, and its end makes no completion.
        connector().abandon(*ended, now);
        guests_.erase(ended->value);
    }
}

void RpingServer::admit(verbs::ConnectionId id, Instant now) {
    auto end = PingEnd::create(device(), pd(), *completions_, PingEnd::kLongest);
    if (!end.ok() || !connector().accept(id, end.value()->qp(), choice({}), now).ok() ||
        !end.value()->post_receive(id.value)) {
        (void)connector().reject(id, {}, now);
        return;
    }
    guests_[id.value].end = std::move(end).value();
}

// Takes all completions. Only an empty queue has room for those of a burst of packets.
bool RpingServer::step(Instant now) {
    bool worked = false;
    while (collect(now) != 0) {
        worked = true;
    }
    return worked;
}

std::size_t RpingServer::collect(Instant now) {
    std::array<verbs::Completion, 32> done;
    const std::size_t count = completions_->poll(done);
    for (const verbs::Completion& completion : std::span(done).first(count)) {
        const auto id = static_cast<std::uint32_t>(completion.wr_id);
        const auto found = guests_.find(id);
        if (found == guests_.end() || completion.status == verbs::CompletionStatus::Flushed) {
            continue;
        }
        if (!on_completion(found->second, completion)) {
            ++broken_;
            connector().abandon(verbs::ConnectionId{id}, now);
            guests_.erase(found);
        }
    }
    return count;
}

bool RpingServer::on_completion(Guest& guest, const verbs::Completion& completion) {
    if (completion.status != verbs::CompletionStatus::Success) {
        return false;
    }
    if (completion.opcode == verbs::CompletionOpcode::Receive) {
        return completion.bytes == sizeof(RawOffer) && on_offer(guest, completion.wr_id);
    }
    if (completion.opcode == verbs::CompletionOpcode::RdmaRead) {
        guest.stage = Stage::AwaitsSink;
        return guest.end->tell({}, completion.wr_id);
    }
    if (completion.opcode == verbs::CompletionOpcode::RdmaWrite) {
        guest.stage = Stage::AwaitsSource;
        ++pings_;
        return guest.end->tell({}, completion.wr_id);
    }
    return completion.opcode == verbs::CompletionOpcode::Send;
}

bool RpingServer::on_offer(Guest& guest, std::uint64_t tag) {
    const RawOffer offer = guest.end->received();
    const std::uint32_t bytes = offer.bytes.get();
    if (bytes == 0 || bytes > PingEnd::kLongest || !guest.end->post_receive(tag)) {
        return false;
    }
    if (guest.stage == Stage::AwaitsSource) {
        guest.stage = Stage::Reads;
        return guest.end->move(verbs::WorkOpcode::RdmaRead, offer, bytes, tag);
    }
    if (guest.stage == Stage::AwaitsSink) {
        guest.stage = Stage::Writes;
        // The text includes its final zero, as with rping.
        const std::span<const std::uint8_t> text = guest.end->text(0).first(bytes);
        const auto end = std::find(text.begin(), text.end(), std::uint8_t{0});
        const auto length = static_cast<std::uint32_t>(end - text.begin());
        return guest.end->move(verbs::WorkOpcode::RdmaWrite, offer, std::min(length + 1, bytes), tag);
    }
    return false;
}

void RpingServer::look(Instant) {
    show(PerfCounter::Received, pings_);
    show(PerfCounter::Connections, connections_);
}

std::string RpingServer::json() const {
    return fmt::format("{{\"test\":\"rping\",\"pings\":{},\"connections\":{},\"broken\":{}}}", pings_, connections_,
                       broken_);
}

std::string RpingServer::table() const {
    return fmt::format(" pings: {}\n connections: {}, broken: {}\n", pings_, connections_, broken_);
}

}  // namespace cairn::perf
