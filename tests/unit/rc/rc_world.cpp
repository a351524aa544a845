#include "tests/unit/rc/rc_world.hpp"

#include <algorithm>

namespace cairn::roce::rc {

namespace {

constexpr std::uint32_t kWorkPerSide = 40;
constexpr Duration kLatency = microseconds(5);
constexpr Duration kHealAfter = milliseconds(20);
constexpr Duration kBound = seconds(30);

}  // namespace

RcWorld::RcWorld(std::uint64_t seed) : random_(seed) {
    choose_faults();
    QpCapacity capacity;
    capacity.send_slots = static_cast<std::uint32_t>(random_.between(1, 32));
    capacity.receive_slots = 8;
    capacity.window_packets = static_cast<std::uint32_t>(random_.between(2, 40));
    capacity.inline_bytes = 64;
    std::array<Psn, 2> first{};
    for (Psn& psn : first) {
        psn = Psn{0xffffffU - static_cast<std::uint32_t>(random_.below(200))};  // the wrap is never far
    }
    const std::uint32_t mtu = 256U << random_.below(5);
    const auto depth = static_cast<std::uint8_t>(random_.between(1, kMaxRdAtomic));
    const bool selective = random_.chance(sim::kMillion / 2);
    for (std::size_t i = 0; i < 2; ++i) {
        RcSide& side = sides_.emplace_back(capacity);
        QpAttributes values = RcHost::usual_attributes();
        values.path_mtu_bytes = mtu;
        values.send_psn = first[i];
        values.receive_psn = first[1 - i];
        values.max_rd_atomic = depth;
        values.max_dest_rd_atomic = depth;
        values.selective = selective;
        values.min_rnr_timer = wire::RnrTimer{static_cast<std::uint8_t>(random_.between(1, 12))};
        values.ack_timeout = static_cast<std::uint8_t>(random_.between(6, 9));  // beyond any stall times the retries
        side.host.bring_to(QpState::Rts, values);
        for (std::uint32_t at = 0; at < RcSide::kSourceBytes; ++at) {
            side.host.at(RcSide::kSource)[at] = static_cast<std::uint8_t>(random_.next());
        }
        for (std::uint64_t slot = 0; slot < RcSide::kReceiveSlots; ++slot) {
            side.free_receives.push_back(slot);
        }
        side.to_post = kWorkPerSide;
    }
}

void RcWorld::choose_faults() {
    const auto some = [this](std::uint64_t most) {
        return random_.chance(sim::kMillion / 2) ? static_cast<std::uint32_t>(random_.between(1, most)) : 0;
    };
    faults_.loss_per_million = some(80'000);
    faults_.double_per_million = some(200'000);
    faults_.jitter = microseconds(some(60));
    faults_.late_copy_per_million = some(50'000);
    faults_.stall_per_million = some(100'000);
    faults_.lazy_receiver_per_million = some(900'000);
}

void RcWorld::run() {
    const Instant end = now_ + kBound;
    while (!finished() && !testing::Test::HasFatalFailure()) {
        ASSERT_LT(now_, end) << "no progress once the network healed";
        step();
    }
    for (RcSide& side : sides_) {
        check_memory(side);
        retransmissions_ += side.host.counters.of(RcCounter::DuplicateRequest);
        EXPECT_EQ(side.host.qp->state(), QpState::Rts);
        EXPECT_EQ(side.host.counters.of(RcCounter::UnsentResponse), 0U);
        EXPECT_EQ(side.host.counters.of(RcCounter::BadResponse), 0U);
    }
}

bool RcWorld::finished() const {
    return std::all_of(sides_.begin(), sides_.end(), [](const RcSide& side) {
        return side.to_post == 0 && side.expected_sends.empty() && side.expected_receives.empty() &&
               side.in.under_way.empty() && side.host.qp->next_deadline() == Instant::never();
    });
}

void RcWorld::step() {
    healed_ = healed_ || now_ >= Instant{} + kHealAfter;
    for (std::size_t i = 0; i < 2; ++i) {
        RcSide& side = sides_[i];
        RcSide& peer = sides_[1 - i];
        side.host.qp->on_timeout(now_);
        deliver(side);
        check_receives(side);
        check_sends(side);
        post_receives(side);
        post_some(side, peer);
        transmit(side, peer);
        side.host.qp->check_invariants();
        ASSERT_FALSE(side.host.qp->poll_event().has_value());
    }
    now_ = std::max(now_ + nanoseconds(200), next_time());
}

Instant RcWorld::next_time() {
    Instant next = now_ + microseconds(50);
    for (RcSide& side : sides_) {
        next = std::min(next, side.host.qp->next_deadline());
        if (!side.in.under_way.empty()) {
            next = std::min(next, Instant{side.in.under_way.begin()->first});
        }
    }
    return next;
}

void RcWorld::transmit(RcSide& from, RcSide& to) {
    const RcFaults& faults = healed_ ? none_ : faults_;
    if (now_ > from.stalled_until + milliseconds(1) && random_.chance(faults.stall_per_million)) {
        from.stalled_until = now_ + random_.between(microseconds(1), microseconds(400));
    }
    if (!healed_ && now_ < from.stalled_until) {
        return;
    }
    std::array<OutPacket, 16> burst;
    const std::size_t count = from.host.qp->poll_transmit(std::span(burst).first(random_.between(1, 16)), now_);
    for (const OutPacket& packet : std::span(burst).first(count)) {
        const Datagram datagram = datagram_of(packet);
        note((std::uint64_t{packet.header[0]} << 32U) | packet_of(datagram).bth().psn.value());
        if (random_.chance(faults.late_copy_per_million)) {
            to.in.under_way.emplace((now_ + random_.between(milliseconds(1), milliseconds(8))).ns, datagram);
        }
        const int copies = random_.chance(faults.loss_per_million)     ? 0
                           : random_.chance(faults.double_per_million) ? 2
                                                                       : 1;
        for (int i = 0; i < copies; ++i) {
            const Duration delay = kLatency + (faults.jitter.ns > 0 ? random_.between({}, faults.jitter) : Duration{});
            to.in.under_way.emplace((now_ + delay).ns, datagram);
        }
    }
}

void RcWorld::deliver(RcSide& side) {
    while (!side.in.under_way.empty() && side.in.under_way.begin()->first <= now_.ns) {
        const Datagram datagram = std::move(side.in.under_way.begin()->second);
        side.in.under_way.erase(side.in.under_way.begin());
        side.host.take(datagram, now_);
    }
}

void RcWorld::post_receives(RcSide& side) {
    if (!healed_ && random_.chance(faults_.lazy_receiver_per_million)) {
        return;
    }
    while (!side.free_receives.empty()) {
        const std::uint64_t slot = side.free_receives.front();
        side.free_receives.pop_front();
        side.posted_receives.push_back(slot);
        // In two pieces, split anywhere.
        const auto split = static_cast<std::uint32_t>(random_.below(RcSide::kMaxBytes + 1));
        const std::uint64_t at = RcSide::kReceives + slot * RcSide::kMaxBytes;
        const std::array<Sge, 2> sges{side.host.sge(at, split), side.host.sge(at + split, RcSide::kMaxBytes - split)};
        ASSERT_EQ(side.host.qp->post_receive({slot, sges}), PostVerdict::Posted);
    }
}

void RcWorld::check_receives(RcSide& side) {
    for (const Completion& got : RcHost::drain(side.host.receive_completions)) {
        ASSERT_EQ(got.status, CompletionStatus::Success);
        ASSERT_FALSE(side.expected_receives.empty()) << "received what nobody sent, or twice";
        const ExpectedReceive wanted = side.expected_receives.front();
        side.expected_receives.pop_front();
        ASSERT_EQ(got.wr_id, side.posted_receives.front());
        ASSERT_EQ(got.opcode, wanted.opcode);
        ASSERT_EQ(got.bytes, wanted.bytes);
        ASSERT_EQ(got.solicited, wanted.solicited);
        ASSERT_EQ(got.has_immediate, wanted.immediate.has_value());
        ASSERT_EQ(got.immediate, wanted.immediate.value_or(0));
        ASSERT_EQ(got.has_invalidate, wanted.invalidated.has_value());
        if (wanted.invalidated) {
            ASSERT_EQ(got.invalidated, *wanted.invalidated);
            ASSERT_FALSE(side.host.memory.destroy_region(got.invalidated)) << "the key still lives";
        }
        const std::uint8_t* at = side.host.at(RcSide::kReceives + got.wr_id * RcSide::kMaxBytes);
        ASSERT_EQ(std::vector<std::uint8_t>(at, at + wanted.payload.size()), wanted.payload);
        side.posted_receives.pop_front();
        side.free_receives.push_back(got.wr_id);
        note(got.wr_id + got.bytes);
    }
}

void RcWorld::check_sends(RcSide& side) {
    for (const Completion& got : RcHost::drain(side.host.send_completions)) {
        ASSERT_EQ(got.status, CompletionStatus::Success);
        while (!side.expected_sends.empty() && !side.expected_sends.front().signalled) {
            side.expected_sends.pop_front();
        }
        ASSERT_FALSE(side.expected_sends.empty());
        const ExpectedSend& wanted = side.expected_sends.front();
        ASSERT_EQ(got.wr_id, wanted.wr_id);
        ASSERT_EQ(got.opcode, wanted.opcode);
        const std::uint8_t* at = side.host.at(wanted.landing);
        ASSERT_EQ(std::vector<std::uint8_t>(at, at + wanted.answer.size()), wanted.answer);
        side.expected_sends.pop_front();
        note(got.wr_id);
    }
    // The rest of a run of unsignalled ones ends with the queue pair's silence.
    if (side.to_post == 0 && side.host.qp->requester().drained() && side.host.qp->next_deadline() == Instant::never()) {
        const bool quiet = std::none_of(side.expected_sends.begin(), side.expected_sends.end(),
                                        [](const ExpectedSend& sent) { return sent.signalled; });
        if (quiet) {
            side.expected_sends.clear();
        }
    }
}

void RcWorld::check_memory(RcSide& side) {
    const std::uint8_t* target = side.host.at(RcSide::kTarget);
    EXPECT_EQ(std::vector<std::uint8_t>(target, target + RcSide::kTargetBytes), side.shadow_target);
    std::array<std::uint64_t, RcSide::kWordCount> words{};
    std::memcpy(words.data(), side.host.at(RcSide::kWords), sizeof(words));
    EXPECT_EQ(words, side.shadow_words);
}

}  // namespace cairn::roce::rc
