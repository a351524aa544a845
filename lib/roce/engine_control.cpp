// Makes and ends queue pairs, regions and paths.
#include "lib/roce/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "lib/base/assert.hpp"
#include "lib/port/ecn.hpp"

namespace cairn::roce {

namespace {

constexpr std::uint32_t kMaxQueuePairs = 1U << 20U;
constexpr std::uint8_t kMaxOwnerBits = 8;
constexpr unsigned kQpnBits = 24;
constexpr std::uint32_t kFirstQpn = 2;  // 0 and 1 are the management's
// Later deadlines are looked at again when this time has passed.
constexpr Duration kTimerHorizon = milliseconds(30);

Error no_number() {
    return Error{"no queue pair number is left", "destroy unused queue pairs"};
}

}  // namespace

std::uint32_t largest_path_mtu(const port::Port& port) noexcept {
    std::uint32_t mtu = 4096;
    while (mtu > 256 && mtu + rc::kMaxHeaderBytes + port::kIcrcBytes > port.limits().max_udp_payload_bytes) {
        mtu /= 2;
    }
    return mtu;
}

Engine::Engine(UdMux& datagrams, Sender& sender, const EngineConfig& config, Instant now)
    : datagrams_(datagrams),
      sender_(sender),
      max_queue_pairs_(config.max_queue_pairs),
      owner_bits_(config.owner_bits),
      owner_(config.owner),
      batches_(sender.port().limits().batches_equals),
      link_bytes_per_s_(config.congestion == ConnectionControl::None ? 0 : config.link_bits_per_s / 8),
      numbers_(config.seed, Purpose::EngineNumbers),
      place_mask_(std::bit_ceil(config.max_queue_pairs) - 1),
      memory_(config.max_regions, config.seed),
      attached_(sender.port()),
      xrc_(Srqn{static_cast<std::uint32_t>(SecretNumbers(config.seed, Purpose::XrcNumbers).next())}),
      held_(config.held_packets),
      table_(std::size_t{place_mask_} + 1),
      timers_(kTimerHorizon, config.max_queue_pairs, now),
      contexts_(config.context_cache, counters_) {
    CAIRN_ASSERT(config.max_queue_pairs >= 1 && config.max_queue_pairs <= kMaxQueuePairs);
    CAIRN_ASSERT(config.owner_bits <= kMaxOwnerBits && config.owner >> config.owner_bits == 0);
    CAIRN_ASSERT(config.max_queue_pairs <= 1U << (kQpnBits - 1 - config.owner_bits));
    CAIRN_ASSERT(config.link_bits_per_s > 0);
    next_number_ = static_cast<std::uint32_t>(unguessable()) & ((1U << (kQpnBits - owner_bits_)) - 1);
}

Engine::~Engine() {
    sender_.settle_tails();
    for (const std::unique_ptr<RcQp>& qp : table_) {
        if (qp != nullptr) {
            set_path(*qp, nullptr);
        }
    }
    table_.clear();
    datagram_pairs_.clear();
    return_held();
}

// Takes numbers in order, from a start that only the seed determines. A number that ended is taken again after all
// others were used. Only connections have places in the table. Returns nullopt if none is left.
std::optional<Qpn> Engine::next_qpn(Turn::Kind whose) noexcept {
    const std::uint32_t numbers = 1U << (kQpnBits - owner_bits_);
    for (std::uint32_t tried = 0; tried < numbers; ++tried) {
        const Qpn qpn{next_number_ << owner_bits_ | owner_};
        next_number_ = (next_number_ + 1) & (numbers - 1);
        const bool taken = whose == Turn::Kind::Connection ? table_[place_of(qpn)] != nullptr : find(qpn) != nullptr;
        if (qpn.value >= kFirstQpn && qpn != wire::kGroupQpn && !taken && !datagrams_.is_taken(qpn)) {
            return qpn;
        }
    }
    return std::nullopt;
}

Result<Engine::RcQp*> Engine::create_rc(Pd pd, const QpCapacity& capacity, const RcQueues& queues) {
    if (!memory_.hold_pd(pd)) {
        return Error{"there is no such protection domain", "create one first"};
    }
    rc::QpContext context{memory_, queues.sends, queues.receives, rc_counters_, queues.shared_receives};
    context.writes = queues.writes;
    auto made = add_rc(pd, capacity, context);
    memory_.release_pd(pd);  // the queue pair holds it
    return made;
}

Result<Engine::RcQp*> Engine::create_xrc_target(Xrcd domain) {
    const QpCapacity capacity{1, 1, 1, 0, 2, wire::Service::Xrc};  // nothing is posted to it
    return add_rc({}, capacity, {memory_, xrc_.nobodys(), xrc_.nobodys(), rc_counters_}, {&xrc_, domain});
}

Result<Engine::RcQp*> Engine::add_rc(Pd pd, const QpCapacity& capacity, rc::QpContext context,
                                     const XrcTarget& target) {
    if (count_ == max_queue_pairs_) {
        return Error{fmt::format("there are {} queue pairs already, as many as there may be", count_),
                     "destroy unused ones, or raise max_queue_pairs"};
    }
    const std::optional<Qpn> qpn = next_qpn(Turn::Kind::Connection);
    if (!qpn) {
        return no_number();
    }
    std::unique_ptr<RcQp>& place = table_[place_of(*qpn)];
    context.equal_writes = batches_;
    context.held = &held_;
    context.stalls = &turns_;
    context.link_bytes_per_s = link_bytes_per_s_;
    place = std::make_unique<RcQp>(*qpn, pd, capacity, context, target);
    ++count_;
    is_used_ = true;
    return place.get();
}

bool Engine::receives_into(Srqn srqn) const noexcept {
    return std::any_of(table_.begin(), table_.end(), [srqn](const std::unique_ptr<RcQp>& qp) noexcept {
        return qp != nullptr && qp->pair.responder().receives_into(srqn);
    });
}

void Engine::destroy_rc(RcQp& qp) noexcept {
    (void)modify(qp, QpState::Reset, {}, {});
    timers_.cancel(qp.timer);
    waiting_.remove(qp);
    answering_.remove(qp);
    contexts_.forget(qp);
    table_[place_of(qp.pair.qpn())].reset();
    --count_;
}

Result<UdQueuePair*> Engine::create_ud(Pd pd, const QpCapacity& capacity, const RcQueues& queues) {
    if (!memory_.hold_pd(pd)) {
        return Error{"there is no such protection domain", "create one first"};
    }
    const std::optional<Qpn> qpn = next_qpn(Turn::Kind::Datagrams);
    auto made = !qpn ? no_number()
                     : UdQueuePair::create(
                           *qpn, pd, capacity, largest_path_mtu(sender_.port()),
                           {datagrams_, sender_, memory_, queues.sends, queues.receives, queues.shared_receives});
    memory_.release_pd(pd);  // the queue pair holds it
    if (!made.ok()) {
        return made.error();
    }
    is_used_ = true;
    return datagram_pairs_.emplace_back(std::move(made).value()).get();
}

void Engine::destroy_ud(UdQueuePair& qp) noexcept {
    waiting_.remove(qp);
    contexts_.forget(qp);
    std::erase_if(datagram_pairs_, [&qp](const std::unique_ptr<UdQueuePair>& owned) { return owned.get() == &qp; });
}

std::optional<ModifyRefusal> Engine::modify(RcQp& qp, QpState to, AttributeSet which, const QpAttributes& values,
                                            port::Path* path) noexcept {
    const std::size_t longest = values.path_mtu_bytes + rc::kMaxHeaderBytes + port::kIcrcBytes;
    const bool wants_path = which.has(Attribute::Path);
    if ((wants_path && path == nullptr) ||
        (which.has(Attribute::PathMtu) && longest > sender_.port().limits().max_udp_payload_bytes)) {
        return judge_modify(qp.pair.state(), to, which, values, qp.pair.kind()).value_or(ModifyRefusal::BadValue);
    }
    if (const std::optional<ModifyRefusal> refusal = qp.pair.modify(to, which, values)) {
        return refusal;
    }
    if (to == QpState::Reset) {
        stop(qp);
        qp.stopped = false;
        set_path(qp, nullptr);
    } else if (to == QpState::Err) {
        stop(qp);
    } else if (wants_path) {
        set_path(qp, path);
    }
    settle_ended();
    wake(qp);
    return std::nullopt;
}

void Engine::set_path(RcQp& qp, port::Path* path) noexcept {
    if (path != nullptr) {
        path->pin();
        const std::uint8_t traffic_class = path->key().traffic_class;
        if (link_bytes_per_s_ != 0 && (traffic_class & port::kEcnBits) == 0) {
            path->set_traffic_class(traffic_class | port::kEct0);
        }
    }
    if (qp.path != nullptr) {
        qp.path->unpin();
    }
    qp.path = path;
}

// Notes that the queue pair's waiting packets must be settled. Its completions may be seen from now on, and no answer
// confirmed those packets.
void Engine::stop(RcQp& qp) noexcept {
    stopped_ = stopped_ || (!qp.stopped && qp.sent_in_place);
    qp.stopped = true;
}

// Settles the tails of everything that ended in this call at once. The caller has not learnt of any end yet, so this is
// early enough.
void Engine::settle_ended() noexcept {
    const std::span<const std::uint8_t> ended = memory_.take_ended();
    if (std::exchange(stopped_, false)) [[unlikely]] {
        sender_.settle_tails();
    } else if (!ended.empty()) [[unlikely]] {
        sender_.settle_tails(ended);
    }
}

Result<Rkey> Engine::register_region(const RegionRequest& request) {
    RegionRequest judged = request;
    judged.sendable = attached_.begin(request.memory);
    const Result<Rkey> made = memory_.register_region(judged);
    if (judged.sendable) {
        attached_.conclude(made, request.memory);
    }
    return made;
}

Result<Rkey> Engine::reregister_region(Rkey key, const RegionChange& change) {
    RegionChange judged = change;
    if (judged.translation) {
        judged.translation->sendable = attached_.begin(judged.translation->memory);
    }
    const Result<Rkey> made = memory_.reregister_region(key, judged);
    settle_ended();
    if (judged.translation && made.ok()) {
        attached_.end(key);
    }
    if (judged.translation && judged.translation->sendable) {
        attached_.conclude(made, judged.translation->memory);
    }
    return made;
}

bool Engine::destroy_region(Rkey key) noexcept {
    const bool ended = memory_.destroy_region(key);
    settle_ended();
    if (ended || !memory_.has_windows(key)) {  // else it lives on; a region that a peer invalidated has ended already
        attached_.end(key);
    }
    return ended;
}

}  // namespace cairn::roce
