#include "lib/sim/rc/rc_incast_world.hpp"

#include <algorithm>

#include "lib/port/path.hpp"

namespace cairn::sim {

namespace {

namespace rc = roce::rc;

constexpr std::size_t kBuffers = 8192;
constexpr std::uint64_t kBase = 0x100000;
constexpr std::uint32_t kUnitBytes = 1U << 20U;
constexpr std::uint32_t kMostUnits = 8;
constexpr Duration kMostToFinish = seconds(2);

roce::EngineConfig engine_config(std::size_t index, const RcIncastPlan& plan) {
    roce::EngineConfig config;
    config.max_queue_pairs = static_cast<std::uint32_t>(plan.clients);
    config.max_regions = 2;
    config.seed = {plan.seed, index};
    config.congestion = plan.control;
    config.link_bits_per_s = static_cast<double>(plan.shape.bits_per_second);
    return config;
}

}  // namespace

RcIncastWorld::Node::Node(Network& network, std::size_t index, const RcIncastPlan& plan)
    : port(network, index, kBuffers, plan.seed + index),
      worker(worker::Worker::create(port, engine_config(index, plan), Instant{}).value()),
      engine(worker->engine()),
      pd(engine.create_pd()) {}

RcIncastWorld::RcIncastWorld(const RcIncastPlan& plan)
    : plan_(plan),
      network_(plan.clients + 1, plan.seed),
      random_(plan.seed),
      source_(std::size_t{kMostUnits} * kUnitBytes),
      target_(source_.size()),
      flows_(plan.clients) {
    CAIRN_ASSERT(plan.clients > 0 && plan.clients <= kMaxClients);
    network_.join(plan.shape, plan.seed * 3 + 1);
    network_.set_tap([this](std::size_t to, const Frame& frame) {
        if (to != plan_.clients) {
            note_arrival(to, frame);
        }
    });
    for (std::uint8_t& byte : source_) {
        byte = static_cast<std::uint8_t>(random_.next());
    }
    const roce::Rights rights = roce::Rights{roce::Right::LocalWrite} | roce::Right::RemoteWrite;
    for (std::size_t i = 0; i <= plan.clients; ++i) {
        Node& node = *nodes_.emplace_back(std::make_unique<Node>(network_, i, plan_));
        const std::span<std::uint8_t> memory = i < plan.clients ? source_ : target_;
        node.key = node.engine.register_region({node.pd, memory, kBase, rights}).value();
        if (i < plan.clients) {
            node.actor = std::make_unique<Actor>(
                *node.worker, [this, i] { take_completions(i); }, [this, i] { note_sent(i); });
        }
    }
    for (std::size_t i = 0; i < plan.clients; ++i) {
        connect(i);
    }
}

void RcIncastWorld::bring_up(Node& node, roce::Engine::RcQp& qp, const roce::Engine::RcQp& peer, std::size_t to) {
    roce::QpAttributes values;
    values.access = roce::Rights{roce::Right::RemoteWrite};
    values.path_mtu_bytes = plan_.path_mtu_bytes;
    values.dest_qpn = peer.pair.qpn();
    values.ack_timeout = 14;
    values.retry_count = 7;
    values.selective = true;
    port::Path* const path =
        node.port.open_path({node.port.local_address(), network_.address_of(to), port::kFirstUdpSourcePort, 0}, now_);
    for (const roce::QpState state : {roce::QpState::Init, roce::QpState::Rtr, roce::QpState::Rts}) {
        const roce::Transition step = roce::find_transition(qp.pair.state(), state, qp.pair.kind()).value();
        const roce::AttributeSet also = step.optional.within(roce::AttributeSet::of(roce::Attribute::Selective));
        const std::optional<roce::ModifyRefusal> refusal =
            node.engine.modify(qp, state, step.required.with(also), values, path);
        CAIRN_ASSERT(!refusal);
    }
}

void RcIncastWorld::connect(std::size_t client) {
    Node& from = *nodes_[client];
    Node& to = *nodes_.back();
    roce::QpCapacity capacity;
    capacity.window_packets = plan_.window_bytes / plan_.path_mtu_bytes;
    Flow& flow = flows_[client];
    flow.here = from.engine.create_rc(from.pd, capacity, {from.sends, from.receives}).value();
    flow.there = to.engine.create_rc(to.pd, capacity, {to.sends, to.receives}).value();
    bring_up(from, *flow.here, *flow.there, plan_.clients);
    bring_up(to, *flow.there, *flow.here, client);
    post(client);
    post(client);
}

void RcIncastWorld::post(std::size_t client) {
    Node& node = *nodes_[client];
    const auto bytes = static_cast<std::uint32_t>(random_.between(1, kMostUnits) * kUnitBytes);
    const std::array<roce::Sge, 1> sges{roce::Sge{kBase, bytes, Lkey{node.key.value}}};
    roce::SendRequest request;
    request.opcode = roce::WorkOpcode::RdmaWrite;
    request.sges = sges;
    request.remote_address = kBase;
    request.rkey = nodes_.back()->key;
    const roce::PostVerdict posted = flows_[client].here->pair.post_send(request);
    CAIRN_ASSERT(posted == roce::PostVerdict::Posted);
    ++under_way_;
    node.engine.wake(*flows_[client].here);
}

void RcIncastWorld::take_completions(std::size_t client) {
    std::array<roce::Completion, 4> done;
    const std::size_t count = nodes_[client]->sends.poll(done);
    for (const roce::Completion& each : std::span(done).first(count)) {
        --under_way_;
        ++total_.calls;
        const bool good = each.status == roce::CompletionStatus::Success;
        total_.calls_failed += good ? 0 : 1;
        if (posting_ && good) {
            post(client);
        }
    }
}

void RcIncastWorld::note_sent(std::size_t client) {
    Flow& flow = flows_[client];
    const Psn next = flow.here->pair.requester().next_psn();
    for (; flow.sent != next; flow.sent = flow.sent.next()) {
        flow.sent_at[flow.sent.value() % kTimedPackets] = now_;
    }
    const std::uint64_t resent = nodes_[client]->engine.counters().of(roce::EngineCounter::PacketsResent);
    flow.clear_from = resent != flow.resent ? next : flow.clear_from;
    flow.resent = resent;
}

// Records the round trip of a packet when its acknowledgement arrives.
void RcIncastWorld::note_arrival(std::size_t client, const Frame& frame) {
    const auto parsed = wire::Packet::parse(std::span(frame.bytes).subspan(frame.lower_bytes()));
    if (!parsed.ok() || parsed.value().traits().role != wire::Role::Acknowledge) {
        return;
    }
    Flow& flow = flows_[client];
    const Psn psn = parsed.value().bth().psn;
    const bool news = psn.since(flow.acknowledged) >= 0 && psn.since(flow.sent) < 0;
    if (news && psn.since(flow.clear_from) >= 0) {
        round_trips_.record(static_cast<std::uint64_t>((now_ - flow.sent_at[psn.value() % kTimedPackets]).ns));
    }
    flow.acknowledged = news ? psn.next() : flow.acknowledged;
}

void RcIncastWorld::turn(std::size_t index) {
    Node& node = *nodes_[index];
    while (node.worker->turn(now_)) {
    }
    node.wakes = node.worker->next_deadline();
}

void RcIncastWorld::run_until(Instant end) {
    while (now_ < end && under_way_ != 0) {
        network_.advance(now_);
        Instant wake = Instant::never();
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if (nodes_[i]->wakes <= now_ || network_.next_arrival(i) <= now_) {
                turn(i);
            }
            wake = std::min(wake, nodes_[i]->wakes);
        }
        now_ = std::min(end, std::max(std::min(wake, network_.next_arrival()), now_ + nanoseconds(1)));
    }
}

std::uint64_t RcIncastWorld::count(rc::RcCounter which) const noexcept {
    std::uint64_t sum = 0;
    for (const auto& node : nodes_) {
        sum += node->engine.rc_counters().of(which);
    }
    return sum;
}

std::uint64_t RcIncastWorld::resent() const noexcept {
    std::uint64_t sum = 0;
    for (const Flow& flow : flows_) {
        sum += flow.resent;
    }
    return sum;
}

// Returns the counters that count up.
IncastResult RcIncastWorld::counted() const {
    IncastResult all = total_;
    all.retransmits = resent();
    all.take_totals(network_.totals());
    return all;
}

void RcIncastWorld::begin_measuring() {
    before_ = counted();
    for (Flow& flow : flows_) {
        flow.measured_from = flow.there->pair.responder().expected_psn();
    }
    round_trips_.clear();
}

// Counts the bytes that the server took in order: messages are whole packets.
IncastResult RcIncastWorld::result() const {
    std::vector<double> bytes;
    for (const Flow& flow : flows_) {
        const std::int32_t packets = flow.there->pair.responder().expected_psn().since(flow.measured_from);
        bytes.push_back(static_cast<double>(packets) * plan_.path_mtu_bytes);
    }
    IncastResult all = counted();
    all.subtract(before_);
    all.take_shares(bytes, plan_.measured, plan_.shape.bits_per_second);
    all.take_round_trips(round_trips_);
    return all;
}

IncastResult RcIncastWorld::run() {
    run_until(now_ + plan_.warm_up);
    begin_measuring();
    run_until(now_ + plan_.measured);
    IncastResult all = result();
    all.queue_most_bytes = network_.joint()->queued_bytes_most();
    posting_ = false;
    run_until(now_ + kMostToFinish);
    all.calls_failed = total_.calls_failed;
    return all;
}

}  // namespace cairn::sim
