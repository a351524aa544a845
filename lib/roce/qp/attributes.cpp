#include "lib/roce/qp/attributes.hpp"

#include <algorithm>
#include <array>

#include "lib/base/assert.hpp"
#include "lib/wire/bth.hpp"

namespace cairn::roce {

namespace {

using enum Attribute;
using QpState::Err, QpState::Reset, QpState::Sqe;

constexpr AttributeSet kNone{};
constexpr AttributeSet kOfInit = AttributeSet::of(Attribute::Pkey, Access, Attribute::Qkey);
constexpr AttributeSet kOfRtr = AttributeSet::of(Path, PathMtu, DestQpn, ReceivePsn, MaxDestRdAtomic, MinRnrTimer);
constexpr AttributeSet kOfRts = AttributeSet::of(SendPsn, AckTimeout, RetryCount, RnrRetry, MaxRdAtomic);
constexpr AttributeSet kOfCairn = AttributeSet::of(Selective, DelayedAcks);
constexpr AttributeSet kWhileRunning =
    AttributeSet::of(Access, MinRnrTimer, MigrationState, Attribute::Qkey, SendsWait);
constexpr AttributeSet kWhileDrained = kWhileRunning.with(
    AttributeSet::of(Attribute::Pkey, Path, AckTimeout, RetryCount, RnrRetry, MaxRdAtomic, MaxDestRdAtomic));

// One place in the table of transitions.
struct Change {
    bool exists = false;
    AttributeSet required{};
    AttributeSet optional{};
    bool reliable = true;  // reliable services have it, too
};
constexpr Change kNo{};
constexpr Change kBare{true};
constexpr Change kToInit{true, kOfInit, kNone};
constexpr Change kInInit{true, kNone, kOfInit};
constexpr Change kToRtr{true, kOfRtr, kOfInit.with(kOfCairn)};
constexpr Change kToRts{true, kOfRts, kWhileRunning};
constexpr Change kRunning{true, kNone, kWhileRunning};
constexpr Change kDrained{true, kNone, kWhileDrained};
constexpr Change kResumed{true, kNone, kWhileRunning, false};

// The table for all services; each takes from the sets of attributes the ones that it has.
constexpr std::size_t kStates = static_cast<std::size_t>(QpState::Count);
constexpr std::array<std::array<Change, kStates>, kStates> kTransitions{{
    // to RESET, INIT, RTR, RTS, SQD, SQE, ERR
    {kBare, kToInit, kNo, kNo, kNo, kNo, kNo},          // from RESET
    {kBare, kInInit, kToRtr, kNo, kNo, kNo, kBare},     // INIT
    {kBare, kNo, kNo, kToRts, kNo, kNo, kBare},         // RTR
    {kBare, kNo, kNo, kRunning, kBare, kNo, kBare},     // RTS
    {kBare, kNo, kNo, kRunning, kDrained, kNo, kBare},  // SQD
    {kBare, kNo, kNo, kResumed, kNo, kNo, kBare},       // SQE
    {kBare, kNo, kNo, kNo, kNo, kNo, kBare},            // ERR
}};

constexpr std::array<Abilities, kStates> kAbilities{{
    // send, receive, flush
    {false, false, false},  // in RESET
    {false, false, false},  // INIT
    {false, true, false},   // RTR
    {true, true, false},    // RTS
    {true, true, false},    // SQD
    {false, true, true},    // SQE
    {false, false, true},   // ERR
}};

// Only RESET leads out of ERR. SQE cannot be asked for: a failed request leads there.
constexpr bool is_sound() noexcept {
    for (std::size_t state = 0; state < kStates; ++state) {
        const bool leaves_err = state != static_cast<std::size_t>(Reset) && state != static_cast<std::size_t>(Err) &&
                                kTransitions[static_cast<std::size_t>(Err)][state].exists;
        const bool resets = kTransitions[state][static_cast<std::size_t>(Reset)].exists;
        if (leaves_err || !resets || kTransitions[state][static_cast<std::size_t>(Sqe)].exists ||
            (kAbilities[state].send && kAbilities[state].flush)) {
            return false;
        }
    }
    return true;
}
static_assert(is_sound());

constexpr AttributeSet kOfUc =
    AttributeSet::of(Attribute::Pkey, Access, Path, PathMtu, DestQpn, ReceivePsn, SendPsn, MigrationState, SendsWait);
constexpr AttributeSet kOfRc = kOfUc.with(kOfRtr).with(kOfRts).with(kOfCairn);
constexpr AttributeSet kOfUd = AttributeSet::of(Attribute::Pkey, Attribute::Qkey, SendPsn);
// Each of the two ends has the attributes that its half of a reliable connection needs (annex A14; as in Linux).
constexpr AttributeSet kOfXrcInitiator = kOfUc.with(kOfRts).with(kOfCairn);
constexpr AttributeSet kOfXrcTarget = kOfUc.with(kOfRtr).with(kOfCairn).with(AttributeSet::of(AckTimeout));

AttributeSet attributes_of(QpKind kind) noexcept {
    switch (kind.service) {
        case wire::Service::Rc:
            return kOfRc;
        case wire::Service::Uc:
            return kOfUc;
        case wire::Service::Ud:
            return kOfUd;
        case wire::Service::Xrc:
            return kind.is_target ? kOfXrcTarget : kOfXrcInitiator;
        case wire::Service::Cnp:
            break;
    }
    CAIRN_ASSERT(false);
    return kNone;
}

bool legal_values(AttributeSet which, const QpAttributes& values) noexcept {
    return (!which.has(PathMtu) || wire::is_path_mtu(values.path_mtu_bytes)) &&
           (!which.has(MaxDestRdAtomic) || values.max_dest_rd_atomic <= kMaxRdAtomic) &&
           (!which.has(MaxRdAtomic) || values.max_rd_atomic <= kMaxRdAtomic) &&
           (!which.has(AckTimeout) || values.ack_timeout <= 31) &&
           (!which.has(RetryCount) || values.retry_count <= 7) && (!which.has(RnrRetry) || values.rnr_retry <= 7);
}

}  // namespace

Abilities abilities_of(QpState state, QpKind kind) noexcept {
    const bool is_initiator = kind.service == wire::Service::Xrc && !kind.is_target;
    Abilities may = kAbilities[static_cast<std::size_t>(state)];
    may.send = may.send && !kind.is_target;
    may.receive = may.receive && !is_initiator;
    may.flush = may.flush && !kind.is_target;
    return may;
}

std::optional<Transition> find_transition(QpState from, QpState to, QpKind kind) noexcept {
    if (from >= QpState::Count || to >= QpState::Count) {
        return std::nullopt;
    }
    const Change& change = kTransitions[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
    const bool reliable = kind.service == wire::Service::Rc || kind.service == wire::Service::Xrc;
    if (!change.exists || (reliable && !change.reliable)) {
        return std::nullopt;
    }
    const AttributeSet has = attributes_of(kind);
    return Transition{from, to, change.required.within(has), change.optional.within(has)};
}

std::optional<ModifyRefusal> judge_modify(QpState from, QpState to, AttributeSet which, const QpAttributes& values,
                                          QpKind kind) noexcept {
    const std::optional<Transition> transition = find_transition(from, to, kind);
    if (!transition) {
        return ModifyRefusal::NoTransition;
    }
    if (!which.covers(transition->required)) {
        return ModifyRefusal::Missing;
    }
    if (!transition->required.with(transition->optional).covers(which)) {
        return ModifyRefusal::NotAllowed;
    }
    return legal_values(which, values) ? std::nullopt : std::optional(ModifyRefusal::BadValue);
}

void assign(QpAttributes& attributes, AttributeSet which, const QpAttributes& values) noexcept {
    const auto take = [&](Attribute one, auto member) noexcept {
        if (which.has(one)) {
            attributes.*member = values.*member;
        }
    };
    // Adapters count 0 as 1. A READ whose queue pair may have none outstanding would neither complete nor fail.
    const auto take_depth = [&](Attribute one, std::uint8_t QpAttributes::*member) noexcept {
        if (which.has(one)) {
            attributes.*member = std::max<std::uint8_t>(values.*member, 1);
        }
    };
    take(Access, &QpAttributes::access);
    take(Attribute::Pkey, &QpAttributes::pkey);
    take(PathMtu, &QpAttributes::path_mtu_bytes);
    take(DestQpn, &QpAttributes::dest_qpn);
    take(ReceivePsn, &QpAttributes::receive_psn);
    take_depth(MaxDestRdAtomic, &QpAttributes::max_dest_rd_atomic);
    take(MinRnrTimer, &QpAttributes::min_rnr_timer);
    take(SendPsn, &QpAttributes::send_psn);
    take(AckTimeout, &QpAttributes::ack_timeout);
    take(RetryCount, &QpAttributes::retry_count);
    take(RnrRetry, &QpAttributes::rnr_retry);
    take_depth(MaxRdAtomic, &QpAttributes::max_rd_atomic);
    take(MigrationState, &QpAttributes::migrated);
    take(Attribute::Qkey, &QpAttributes::qkey);
    take(Selective, &QpAttributes::selective);
    take(DelayedAcks, &QpAttributes::delayed_acks);
    take(SendsWait, &QpAttributes::sends_wait);
}

}  // namespace cairn::roce
