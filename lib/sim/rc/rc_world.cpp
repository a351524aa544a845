#include "lib/sim/rc/rc_world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cairn::sim {

namespace {

constexpr std::uint32_t kWorkPerSide = 40;
constexpr Duration kLatency = microseconds(5);
constexpr Duration kHealAfter = milliseconds(20);
constexpr Duration kBound = seconds(30);
constexpr std::uint64_t kMostRestarts = 4;

std::vector<roce::Completion> drain(roce::CompletionQueue& queue) {
    std::vector<roce::Completion> all(queue.size());
    all.resize(queue.poll(all));
    return all;
}

}  // namespace

RcWorld::RcWorld(std::uint64_t seed) : random_(seed) {
    service_ = random_.chance(kMillion / 5)   ? wire::Service::Uc
               : random_.chance(kMillion / 4) ? wire::Service::Xrc
                                              : wire::Service::Rc;
    choose_faults();
    choose_attributes();
    roce::QpCapacity capacity;
    capacity.service = service_;
    capacity.send_slots = static_cast<std::uint32_t>(random_.between(1, 32));
    capacity.receive_slots = 8;
    capacity.window_packets = static_cast<std::uint32_t>(random_.between(2, 40));
    capacity.inline_bytes = 64;
    const std::uint32_t completion_slots = faults_.lazy_poller_per_million != 0 ? 5 : 1024;
    const auto held_slots = static_cast<std::uint32_t>(random_.between(1, 40));
    const bool equal_writes = random_.chance(kMillion / 2);
    const double link_bytes_per_s = static_cast<double>(random_.between(50'000'000, 3'000'000'000));
    for (std::size_t i = 0; i < 2; ++i) {
        RcNode& side = sides_.emplace_back(capacity, completion_slots, held_slots, equal_writes, is_xrc() && i == 1,
                                           link_bytes_per_s);
        for (std::uint32_t at = 0; at < RcNode::kSourceBytes; ++at) {
            side.at(RcNode::kSource)[at] = static_cast<std::uint8_t>(random_.next());
        }
        side.to_post = !is_xrc() ? kWorkPerSide : i == 0 ? 2 * kWorkPerSide : 0;
    }
    for (Psn& psn : first_) {
        psn = Psn{0xffffffU - static_cast<std::uint32_t>(random_.below(200))};  // the wrap is never far
    }
    start_life();
}

void RcWorld::choose_faults() {
    const auto some = [this](std::uint64_t most) {
        return random_.chance(kMillion / 2) ? static_cast<std::uint32_t>(random_.between(1, most)) : 0;
    };
    faults_.loss_per_million = some(80'000);
    faults_.double_per_million = some(200'000);
    faults_.jitter = microseconds(some(60));
    faults_.late_copy_per_million = some(50'000);
    faults_.stall_per_million = some(100'000);
    faults_.lazy_receiver_per_million = some(900'000);
    faults_.restart_per_million = random_.chance(kMillion / 3) ? some(5'000) : 0;
    faults_.lazy_poller_per_million = random_.chance(kMillion / 3) ? some(900'000) : 0;
    faults_.mark_per_million = random_.chance(kMillion / 3) ? some(500'000) : 0;
    faults_.pause_per_million = random_.chance(kMillion / 3) ? some(5'000) : 0;
}

void RcWorld::choose_attributes() {
    attributes_.access = roce::Rights{roce::Right::RemoteWrite} | roce::Right::RemoteRead | roce::Right::RemoteAtomic |
                         roce::Right::FlushPersistent;
    attributes_.path_mtu_bytes = 256U << random_.below(5);
    attributes_.dest_qpn = RcNode::kQpn;
    attributes_.max_rd_atomic = static_cast<std::uint8_t>(random_.between(1, roce::kMaxRdAtomic));
    attributes_.max_dest_rd_atomic = attributes_.max_rd_atomic;
    attributes_.min_rnr_timer = wire::RnrTimer{static_cast<std::uint8_t>(random_.between(1, 12))};
    attributes_.selective = random_.chance(kMillion / 2);
    attributes_.delayed_acks = random_.chance(kMillion / 2);
    // The timeout times the retries is longer than any stall or pause. The longest ones leave room for losses that are
    // noticed earlier.
    const bool is_long = faults_.pause_per_million != 0 || random_.chance(kMillion / 3);
    attributes_.ack_timeout = static_cast<std::uint8_t>(is_long ? random_.between(12, 15) : random_.between(6, 9));
}

void RcWorld::start_life() {
    for (std::size_t i = 0; i < 2; ++i) {
        attributes_.send_psn = first_[i];
        attributes_.receive_psn = first_[1 - i];
        sides_[i].start_life(attributes_);
    }
}

// Begins a new life of both ends at times. Packets under way stay so: they are of an earlier connection between the
// same queue pairs. An unreliable service would take them, whatever their PSN (9.8.2.2). There the new life's queue
// pairs have other numbers, by which the port tells them apart.
void RcWorld::maybe_restart() {
    const bool by_chance =
        !healed_ && counters_.restarts < kMostRestarts && random_.chance(faults_.restart_per_million);
    if (!by_chance && !restart_wanted_) {
        return;
    }
    restart_wanted_ = false;
    ++counters_.restarts;
    for (std::size_t i = 0; i < 2; ++i) {
        // The PSN is far from the last life's, as a number by chance is.
        const auto far = static_cast<std::uint32_t>(random_.between(1U << 20U, 0xf00000U));
        first_[i] = first_[i].plus(far);
        counters_.stale += sides_[i].in.size();
        if (!is_reliable()) {
            sides_[i].in.clear();
        }
    }
    start_life();
}

bool RcWorld::expect(bool holds, const char* what) {
    if (!holds && !broken_) {
        broken_ = std::string(what) + " at " + std::to_string(now_.ns) + " ns";
    }
    return holds;
}

std::optional<std::string> RcWorld::run() {
    const Instant end = now_ + kBound;
    while (!broken_ && !finished()) {
        expect(now_ < end, "no progress once the network healed");
        step();
    }
    for (RcNode& side : sides_) {
        check_memory(side);
        counters_.transport += side.counters.snapshot();
        expect(side.qp->state() == roce::QpState::Rts, "the connection ended");
        expect(counters_.restarts != 0 || side.counters.of(rc::RcCounter::UnsentResponse) == 0,
               "an answer to what was never sent");
        expect(side.counters.of(rc::RcCounter::BadResponse) == 0, "a READ response of a wrong length");
    }
    return broken_;
}

std::string RcWorld::text() const {
    return fmt::format(
        "{}{}{}, path MTU {}; {} requests, {} datagrams, {} lost, {} restarts, {} overruns, {} pauses; loss {}, "
        "doubled {}, late copies {}, stalls {}, marks {} per million, jitter {} ns",
        name_of(service_), attributes_.selective ? " selective" : "", attributes_.delayed_acks ? " delayed acks" : "",
        attributes_.path_mtu_bytes, requests(), log_.datagrams(), counters_.lost, counters_.restarts,
        counters_.overruns, counters_.pauses, faults_.loss_per_million, faults_.double_per_million,
        faults_.late_copy_per_million, faults_.stall_per_million, faults_.mark_per_million, faults_.jitter.ns);
}

bool RcWorld::finished() const {
    return !restart_wanted_ && std::all_of(sides_.begin(), sides_.end(), [this](const RcNode& side) {
        const bool received = side.expected_receives.empty() || !is_reliable();
        return side.to_post == 0 && side.expected_sends.empty() && received && side.in.empty() &&
               side.qp->next_deadline() == Instant::never();
    });
}

void RcWorld::step() {
    healed_ = healed_ || now_ >= Instant{} + kHealAfter;
    maybe_restart();
    for (std::size_t i = 0; i < 2; ++i) {
        RcNode& side = sides_[i];
        RcNode& peer = sides_[1 - i];
        if (is_away(side)) {
            continue;
        }
        side.turns.on_turn(now_);
        side.qp->on_timeout(now_);
        deliver(side);
        const bool polls = healed_ || !random_.chance(faults_.lazy_poller_per_million);
        if (polls) {
            check_receives(side);
            check_sends(side);
        }
        post_receives(side);
        post_some(side, peer);
        transmit(side, peer);
        side.qp->check_invariants();
        expect(side.settle_buffers(), "kept buffers were lost");
        heed_events(side);
    }
    now_ = std::max(now_ + nanoseconds(200), next_time());
}

// Takes in events. Only a completion queue that overruns because it is not polled may end its connection.
void RcWorld::heed_events(RcNode& side) {
    while (const std::optional<roce::QpEvent> event = side.qp->poll_event()) {
        const bool overrun = side.send_completions->overrun() || side.receive_completions->overrun();
        if (is_xrc() && overrun && *event == roce::QpEvent::LastWqeReached) {
            continue;
        }
        expect(*event == roce::QpEvent::CqOverrun && overrun && faults_.lazy_poller_per_million != 0,
               "an event that nothing explains");
        ++counters_.overruns;
        restart_wanted_ = true;
    }
}

Instant RcWorld::next_time() const {
    Instant next = now_ + microseconds(50);
    for (const RcNode& side : sides_) {
        next = std::min(next, std::max(side.qp->next_deadline(), side.paused_until));
        if (!side.in.empty()) {
            next = std::min(next, std::max(Instant{side.in.begin()->first}, side.paused_until));
        }
    }
    return next;
}

void RcWorld::transmit(RcNode& from, RcNode& to) {
    const RcFaults& faults = healed_ ? none_ : faults_;
    if (now_ > from.stalled_until + milliseconds(1) && random_.chance(faults.stall_per_million)) {
        from.stalled_until = now_ + random_.between(microseconds(1), microseconds(400));
    }
    if (!healed_ && now_ < from.stalled_until) {
        return;
    }
    std::array<rc::OutPacket, 16> burst;
    const std::size_t count = from.qp->poll_transmit(std::span(burst).first(random_.between(1, 16)), now_);
    for (const rc::OutPacket& packet : std::span(burst).first(count)) {
        const Datagram datagram = datagram_of(packet);
        note((std::uint64_t{packet.header[0]} << 32U) | packet_of(datagram).bth().psn.value());
        if (random_.chance(faults.late_copy_per_million)) {
            to.in.emplace((now_ + random_.between(milliseconds(1), milliseconds(8))).ns, datagram);
        }
        const int copies = random_.chance(faults.loss_per_million)     ? 0
                           : random_.chance(faults.double_per_million) ? 2
                                                                       : 1;
        counters_.lost += copies == 0 ? 1 : 0;
        const auto host = static_cast<std::size_t>(&from == &sides_[1]);
        log_.add({now_, host, 1 - host, copies == 0 ? "lost" : copies == 1 ? "delivered" : "doubled"}, datagram);
        for (int i = 0; i < copies; ++i) {
            const Duration delay = kLatency + (faults.jitter.ns > 0 ? random_.between({}, faults.jitter) : Duration{});
            to.in.emplace((now_ + delay).ns, datagram);
        }
    }
}

void RcWorld::deliver(RcNode& side) {
    while (!side.in.empty() && side.in.begin()->first <= now_.ns) {
        const Datagram datagram = std::move(side.in.begin()->second);
        side.in.erase(side.in.begin());
        side.take(datagram, !healed_ && random_.chance(faults_.mark_per_million), now_);
    }
}

void RcWorld::check_receives(RcNode& side) {
    for (const roce::Completion& got : drain(*side.receive_completions)) {
        if (got.status == roce::CompletionStatus::Flushed && side.qp->state() == roce::QpState::Err) {
            continue;  // the overrun's event comes later
        }
        if (!expect(got.status == roce::CompletionStatus::Success, "a receive request failed") ||
            !expect(find_expected(side, got), "received what nobody sent, or twice")) {
            return;
        }
        check_receive(side, got);
        if (is_reliable()) {
            side.expected_receives.pop_front();
        }
        side.inbox_of(got.wr_id).posted.pop_front();
        side.free_receives.push_back(got.wr_id);
        note(got.wr_id + got.bytes);
    }
}

// Looks for the message. If the service is reliable, it has to be the next of all. Otherwise it is any that was sent,
// whole; the link doubles and reorders them.
bool RcWorld::find_expected(RcNode& side, const roce::Completion& got) {
    const auto same = [&](const ExpectedReceive& one) {
        return got.opcode == one.opcode && got.bytes == one.bytes && got.immediate == one.immediate.value_or(0) &&
               got.has_immediate == one.immediate.has_value() && got.solicited == one.solicited &&
               side.bytes_at(RcNode::kReceives + got.wr_id * RcNode::kMaxBytes, one.payload.size()) == one.payload;
    };
    if (is_reliable()) {
        return !side.expected_receives.empty() && same(side.expected_receives.front());
    }
    return std::any_of(side.expected_receives.begin(), side.expected_receives.end(), same);
}

void RcWorld::check_receive(RcNode& side, const roce::Completion& got) {
    const Inbox& inbox = side.inbox_of(got.wr_id);
    expect(got.wr_id == inbox.posted.front(), "a receive request was taken out of its turn");
    if (!is_reliable()) {
        return;
    }
    const ExpectedReceive& wanted = side.expected_receives.front();
    expect(&inbox == &side.inboxes[wanted.inbox], "a message went to another receive queue than it named");
    expect(got.srqn == inbox.srqn, "a completion names another receive queue");
    counters_.xrc_messages[wanted.inbox] += is_xrc() ? 1U : 0U;
    expect(got.has_invalidate == wanted.invalidated.has_value(), "an invalidation is missing or made up");
    if (!wanted.invalidated) {
        return;
    }
    expect(got.invalidated == *wanted.invalidated, "another key was invalidated");
    expect(side.memory.judge_invalidate(got.invalidated, {side.pd, RcNode::kQpn}) == roce::MemoryRefusal::UnknownKey,
           "an invalidated key still lives");
    if (got.invalidated == side.window.key) {
        side.window.state = WindowOfNode::State::Free;
    }
}

void RcWorld::check_sends(RcNode& side) {
    for (const roce::Completion& got : drain(*side.send_completions)) {
        if (got.status == roce::CompletionStatus::Flushed && side.qp->state() == roce::QpState::Err) {
            continue;
        }
        expect(got.status == roce::CompletionStatus::Success, "a send request failed");
        while (!side.expected_sends.empty() && !side.expected_sends.front().signalled) {
            on_sent(side, side.expected_sends.front());
            side.expected_sends.pop_front();
        }
        if (!expect(!side.expected_sends.empty(), "a send request completed twice")) {
            return;
        }
        const ExpectedSend wanted = side.expected_sends.front();
        side.expected_sends.pop_front();
        expect(got.wr_id == wanted.wr_id, "send requests completed out of order");
        expect(side.bytes_at(wanted.landing, wanted.answer.size()) == wanted.answer, "a wrong answer");
        ++counters_.done[static_cast<std::size_t>(wanted.opcode)];
        on_sent(side, wanted);
        note(got.wr_id);
    }
}

void RcWorld::on_sent(RcNode& side, const ExpectedSend& sent) {
    if (sent.opcode == roce::WorkOpcode::BindWindow && side.window.state == WindowOfNode::State::Binding) {
        side.window.state = WindowOfNode::State::Bound;
    } else if (sent.opcode == roce::WorkOpcode::LocalInvalidate) {
        side.window.state = WindowOfNode::State::Free;
    }
}

void RcWorld::check_memory(RcNode& side) {
    if (!is_reliable()) {
        counters_.unreliable_messages_lost += side.expected_receives.size();
        return;
    }
    expect(side.bytes_at(RcNode::kTarget, RcNode::kTargetBytes) == side.shadow_target, "memory differs from its model");
    std::array<std::uint64_t, RcNode::kWordCount> words{};
    std::memcpy(words.data(), side.at(RcNode::kWords), sizeof(words));
    expect(words == side.shadow_words, "atomics differ from their model");
    expect(side.flushes_done == side.flushes_wanted, "a FLUSH was done twice, or not at all");
}

}  // namespace cairn::sim
