#include "apps/perf/client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <type_traits>
#include <variant>

namespace cairn::perf {

namespace {

constexpr std::uint32_t kAtATime = 64;  // connections in the making, or ending, at the same time

constexpr Duration of_seconds(double count) noexcept {
    return {static_cast<std::int64_t>(count * 1e9)};
}

}  // namespace

Client::Client(const Options& options, const Seat& seat, std::unique_ptr<port::Port> port, const net::IpAddress& peer)
    : PerfWorker(options, seat, std::move(port)),
      peer_(peer),
      queue_pairs_(options.queue_pairs),
      depth_(options.depth),
      share_(std::max(1U, (options.depth + options.queue_pairs - 1) / options.queue_pairs)) {}

Client::~Client() {
    close_connections();
}

Status Client::prepare(Instant now) {
    auto way = device().create_ah(peer_, port::kFirstUdpSourcePort, now);
    if (!way.ok()) {
        return way.error();
    }
    way_ = std::move(way).value();
    start_at_ = now + kNeighbour;
    path_mtu_bytes_ = own_path_mtu();
    const Status chosen = choose_sizes();
    return chosen.ok() ? start_size(now) : chosen;
}

void Client::enter(Phase phase, Instant now) {
    phase_ = phase;
    progress_at_ = now;
    asked_ = 0;
    if (phase == Phase::Running) {
        const Duration measured = of_seconds(options().duration_s);
        const bool counted = options().iterations != 0;
        measure_from_ = counted ? now : now + std::min(milliseconds(500), measured / 2);
        measure_to_ = counted ? Instant::never() : measure_from_ + measured;
        posted_ = 0;
        resent_before_ = worker().engine().counters().of(roce::EngineCounter::PacketsResent);
    }
}

bool Client::step(Instant now) {
    if (is_over() || phase_ == Phase::Done) {
        return false;
    }
    switch (phase_) {
        case Phase::Connecting:
            connect_some(now);
            return false;
        case Phase::Agreeing:
            give_up_lanes(now);
            if (const Status started = start_size(now); !started.ok()) {
                fail(started.error().text());
            }
            return false;
        case Phase::Ready:
            progress_at_ = now;  // the wait for other workers is no silence
            if (all_connected()) {
                enter(Phase::Running, now);
            }
            return false;
        case Phase::Leaving:
            disconnect_some(now);
            return false;
        case Phase::Running:
        case Phase::Draining:
        case Phase::Done:
            break;
    }
    const bool worked = collect(now) != 0;
    if (phase_ == Phase::Running) {
        post_more(now);
        if (posted_ == options().iterations && posted_ != 0 && outstanding_ == 0) {
            end_measuring(now);
        }
    } else if (outstanding_ == 0) {
        enter(Phase::Leaving, now);
    }
    return worked;
}

void Client::look(Instant now) {
    show(PerfCounter::Completed, completed_);
    show(PerfCounter::Bytes, progress().of(PerfCounter::Bytes) + (completed_ - completed_seen_) * layout_.bytes);
    if (completed_ != completed_seen_) {
        progress_at_ = now;
        completed_seen_ = completed_;
    }
    if (failed() || phase_ == Phase::Done) {
        return;
    }
    if (unreliable()) {
        give_up_lost(now);
    }
    const bool waits = outstanding_ != 0 || phase_ != Phase::Running;
    if (waits && now - progress_at_ > kSilence && now > start_at_) {
        fail(outstanding_ != 0 ? "no operation completed for 10 s; is the server still running?"
                               : "no connection came about for 10 s; is the server running?");
    } else if (phase_ == Phase::Running && now >= measure_to_) {
        end_measuring(now);
    }
}

void Client::end_measuring(Instant now) {
    SizeResult& result = results_[size_at_];
    result.seconds = static_cast<double>((now - measure_from_).ns) / 1e9;
    result.resent_packets = worker().engine().counters().of(roce::EngineCounter::PacketsResent) - resent_before_;
    measure_from_ = Instant::never();
    enter(Phase::Draining, now);
}

void Client::connect_some(Instant now) {
    if (!pass_) {
        ask_for_pass(now);
        return;
    }
    // The server may end after the last connections. So the first worker's connections come after those of all others.
    const bool last = size_at_ + 1 == sizes_.size() && seat().number == 0;
    if (last && !all_connected(1)) {
        progress_at_ = now;
        return;
    }
    Hello hello{options().operation, options().test, options().check,
                options().both_ways, last,           layout_.bytes,
                layout_.slots,       share_,         {}};
    hello.pass = *pass_;
    while (asked_ < lanes_.size() && under_way_ < kAtATime && now >= start_at_) {
        Lane& lane = lanes_[asked_];
        hello.memory = {mr_->address() + answer_offset(lane, 0), mr_->rkey()};
        const Status asked = connect(lane, hello, now);
        if (!asked.ok()) {
            fail(asked.error().text());
            return;
        }
        lane.stage = Stage::Asked;
        ++asked_;
        ++under_way_;
    }
    if (under_way_ == 0 && asked_ == lanes_.size()) {
        crew().connected.fetch_add(1, std::memory_order_relaxed);
        enter(Phase::Ready, now);
    }
}

bool Client::all_connected(std::uint32_t but) const noexcept {
    const auto sizes = static_cast<std::uint32_t>(size_at_);
    return crew().connected.load(std::memory_order_relaxed) >= (sizes + 1) * crew().workers - but;
}

Status Client::connect(Lane& lane, const Hello& hello, Instant now) {
    if (options().transport == Transport::Ud) {
        Hello of_datagrams = hello;
        of_datagrams.qpn = lane.channel->qpn();
        return ask(lane, bytes_of(raw_of(of_datagrams)), now);
    }
    const RawHello raw = raw_of(hello);
    verbs::ConnectTo to;
    to.remote = peer_;
    to.port = options().service_port;
    to.path_mtu_bytes = path_mtu_bytes_;
    to.choice = choice(bytes_of(raw));
    const Result<verbs::ConnectionId> asked = connector().connect(lane.channel->connected(), to, now);
    if (!asked.ok()) {
        return asked.error();
    }
    lane.id = asked.value();
    lane_of_[lane.id.value] = asked_;
    return Nothing{};
}

void Client::disconnect_some(Instant now) {
    while (asked_ < lanes_.size() && under_way_ < kAtATime) {
        Lane& lane = lanes_[asked_++];
        const Status left = options().transport == Transport::Ud ? leave_datagrams(lane, now)
                                                                 : connector().disconnect(lane.id, {}, now);
        if (left.ok()) {
            lane.stage = Stage::Leaving;
            ++under_way_;
        }
    }
    if (under_way_ == 0 && asked_ == lanes_.size()) {
        end_size(now);
    }
}

bool Client::finished(Instant) const noexcept {
    return is_over() || phase_ == Phase::Done;
}

void Client::absorb(const PerfWorker& other) {
    const auto& client = dynamic_cast<const Client&>(other);
    const std::vector<SizeResult> theirs = client.final_results();
    for (std::size_t i = 0; i < results_.size(); ++i) {
        results_[i].absorb(theirs[i]);
    }
    queue_pairs_ += client.queue_pairs_;
    depth_ += client.depth_;
}

void SizeResult::absorb(const SizeResult& other) {
    operations += other.operations;
    seconds = std::max(seconds, other.seconds);
    latency_ns.merge(other.latency_ns);
    resent_packets += other.resent_packets;
    checked += other.checked;
    sent += other.sent;
    arrived += other.arrived;
    back_operations += other.back_operations;
    back_seconds = std::max(back_seconds, other.back_seconds);
    unfinished += other.unfinished;
}

Client::Lane* Client::find(verbs::ConnectionId id) noexcept {
    const auto found = lane_of_.find(id.value);
    return found == lane_of_.end() ? nullptr : &lanes_[found->second];
}

std::string Client::nobody_listens() const {
    return fmt::format("nobody listens on {} port {}; start the server first", peer_.text(), options().service_port);
}

void Client::on_event(const cm::Event& event, Instant now) {
    if (const auto* resolved = std::get_if<cm::Resolved>(&event)) {
        on_resolved(*resolved, now);
        return;
    }
    Lane* const lane = std::visit(
        [this]<class Kind>(const Kind& kind) -> Lane* {
            if constexpr (requires { verbs::ConnectionId{kind.id}; }) {
                return find(kind.id);
            } else {
                return nullptr;
            }
        },
        event);
    if (lane == nullptr || failed()) {
        return;
    }
    if (const auto* up = std::get_if<cm::Established>(&event)) {
        on_up(*lane, up->private_data, now);
    } else if (const auto* rejected = std::get_if<cm::Rejected>(&event)) {
        if (const auto offer = read_message<RawPathMtu>(rejected->private_data.view(), kPathMtuMagic)) {
            on_smaller_path_mtu(offer->path_mtu_bytes.get());
            return;
        }
        const bool nobody = rejected->reason == wire::RejectReason::InvalidServiceId;
        fail(nobody ? nobody_listens()
                    : fmt::format("the server refused the connection (reason {}): {}",
                                  static_cast<unsigned>(rejected->reason), text_of(rejected->private_data)));
    } else if (std::holds_alternative<cm::Unreachable>(event)) {
        fail(fmt::format("{} does not answer; is the server running?", peer_.text()));
    } else if (std::holds_alternative<cm::DisconnectRequested>(event)) {
        fail("the server ended the connection");
    } else if (const auto* gone = std::get_if<cm::Disconnected>(&event)) {
        on_gone(*lane, gone->private_data);
    }
}

void Client::on_up(Lane& lane, const cm::PrivateBytes& answer, Instant now) {
    const std::optional<RawAnswer> raw = read_message<RawAnswer>(answer.view());
    if (!raw) {
        fail("the server is no cairn-perf, or of another version");
        return;
    }
    lane.remote = {raw->address.get(), Rkey{raw->rkey.get()}};
    lane.stage = Stage::Up;
    --under_way_;
    progress_at_ = now;
    if (options().transport != Transport::Ud) {
        greet(lane);
    }
    if (answers_by_message()) {
        post_receive(lane, 0);
        post_receive(lane, 1);
    }
    for (std::uint32_t i = receives_back() ? 2 * share_ : 0; i > 0; --i) {
        post_back_receive(index_of(lane));
    }
}

// Shows the server that the connection is used, by a WRITE of no bytes. The server limits connections that were never
// used.
void Client::greet(Lane& lane) {
    verbs::SendRequest nothing;
    nothing.opcode = verbs::WorkOpcode::RdmaWrite;
    nothing.wr_id = index_of(lane);
    nothing.signalled = false;
    nothing.remote_address = lane.remote.address;
    nothing.rkey = lane.remote.rkey;
    if (lane.channel->post_send(nothing) != verbs::PostVerdict::Posted) {
        fail("the server could not be greeted: the connection ended");
    }
}

void Client::on_gone(Lane& lane, const cm::PrivateBytes& farewell) {
    if (lane.stage != Stage::Leaving) {
        return;
    }
    lane.stage = Stage::Gone;
    --under_way_;
    const std::optional<RawFarewell> raw = read_message<RawFarewell>(farewell.view());
    if (options().both_ways && raw) {
        SizeResult& result = results_[size_at_];
        result.back_operations += raw->completed.get();
        result.back_seconds = std::max(result.back_seconds, static_cast<double>(raw->took_ns.get()) / 1e9);
    }
    if ((options().operation != Operation::Send && !unreliable()) || !raw) {
        return;
    }
    results_[size_at_].sent += lane.posted;
    results_[size_at_].arrived += raw->received.get();
    const bool all_came = raw->received.get() == lane.posted || (unreliable() && raw->received.get() < lane.posted);
    if (!all_came || raw->bad.get() != 0) {
        fail(fmt::format("of {} messages sent the server received {}, and {} were not what was sent", lane.posted,
                         raw->received.get(), raw->bad.get()));
    }
}

}  // namespace cairn::perf
