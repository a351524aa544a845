#include "lib/roce/qp/attributes.hpp"

#include <array>

#include "lib/base/assert.hpp"
#include "lib/wire/bth.hpp"

namespace cairn::roce {

namespace {

using enum Attribute;
using QpState::Err, QpState::Init, QpState::Reset, QpState::Rtr, QpState::Rts, QpState::Sqd, QpState::Sqe;

constexpr AttributeSet kNone{};
constexpr AttributeSet kOfInit = AttributeSet::of(Attribute::Pkey, Access, Attribute::Qkey);
constexpr AttributeSet kOfRtr = AttributeSet::of(Path, PathMtu, DestQpn, ReceivePsn, MaxDestRdAtomic, MinRnrTimer);
constexpr AttributeSet kOfRts = AttributeSet::of(SendPsn, AckTimeout, RetryCount, RnrRetry, MaxRdAtomic);
constexpr AttributeSet kWhileRunning = AttributeSet::of(Access, MinRnrTimer, MigrationState, Attribute::Qkey);
constexpr AttributeSet kWhileDrained = kWhileRunning.with(
    AttributeSet::of(Attribute::Pkey, Path, AckTimeout, RetryCount, RnrRetry, MaxRdAtomic, MaxDestRdAtomic));

// All services, each with the attributes that it has; any state may also go to Reset, and but for Reset to Err, with
// nothing set.
constexpr std::array kTransitions{
    Transition{Reset, Init, kOfInit, kNone},
    Transition{Init, Init, kNone, kOfInit},
    Transition{Init, Rtr, kOfRtr, kOfInit.with(AttributeSet::of(Selective))},
    Transition{Rtr, Rts, kOfRts, kWhileRunning},
    Transition{Rts, Rts, kNone, kWhileRunning},
    Transition{Rts, Sqd, kNone, kNone},
    Transition{Sqd, Rts, kNone, kWhileRunning},
    Transition{Sqd, Sqd, kNone, kWhileDrained},
    Transition{Sqe, Rts, kNone, kWhileRunning},
};

constexpr AttributeSet kOfUc =
    AttributeSet::of(Attribute::Pkey, Access, Path, PathMtu, DestQpn, ReceivePsn, SendPsn, MigrationState);
constexpr AttributeSet kOfRc = kOfUc.with(kOfRtr).with(kOfRts).with(AttributeSet::of(Selective));
constexpr AttributeSet kOfUd = AttributeSet::of(Attribute::Pkey, Attribute::Qkey, SendPsn);
// Each of the two ends has what its half of a reliable connection needs (annex A14; the same as in Linux).
constexpr AttributeSet kOfXrcInitiator = kOfUc.with(kOfRts).with(AttributeSet::of(Selective));
constexpr AttributeSet kOfXrcTarget = kOfUc.with(kOfRtr).with(AttributeSet::of(AckTimeout, Selective));

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

std::optional<Transition> find_transition(QpState from, QpState to, QpKind kind) noexcept {
    if (to == Reset || (to == Err && from != Reset)) {
        return Transition{from, to, kNone, kNone};
    }
    const bool reliable = kind.service == wire::Service::Rc || kind.service == wire::Service::Xrc;
    if (from == Sqe && reliable) {
        return std::nullopt;
    }
    const AttributeSet has = attributes_of(kind);
    for (const Transition& transition : kTransitions) {
        if (transition.from == from && transition.to == to) {
            return Transition{from, to, transition.required.within(has), transition.optional.within(has)};
        }
    }
    return std::nullopt;
}

ModifyVerdict judge_modify(QpState from, QpState to, AttributeSet which, const QpAttributes& values,
                           QpKind kind) noexcept {
    const std::optional<Transition> transition = find_transition(from, to, kind);
    if (!transition) {
        return ModifyVerdict::NoTransition;
    }
    if (!which.covers(transition->required)) {
        return ModifyVerdict::Missing;
    }
    if (!transition->required.with(transition->optional).covers(which)) {
        return ModifyVerdict::NotAllowed;
    }
    return legal_values(which, values) ? ModifyVerdict::Ok : ModifyVerdict::BadValue;
}

void assign(QpAttributes& attributes, AttributeSet which, const QpAttributes& values) noexcept {
    const auto take = [&](Attribute one, auto member) noexcept {
        if (which.has(one)) {
            attributes.*member = values.*member;
        }
    };
    take(Access, &QpAttributes::access);
    take(Attribute::Pkey, &QpAttributes::pkey);
    take(PathMtu, &QpAttributes::path_mtu_bytes);
    take(DestQpn, &QpAttributes::dest_qpn);
    take(ReceivePsn, &QpAttributes::receive_psn);
    take(MaxDestRdAtomic, &QpAttributes::max_dest_rd_atomic);
    take(MinRnrTimer, &QpAttributes::min_rnr_timer);
    take(SendPsn, &QpAttributes::send_psn);
    take(AckTimeout, &QpAttributes::ack_timeout);
    take(RetryCount, &QpAttributes::retry_count);
    take(RnrRetry, &QpAttributes::rnr_retry);
    take(MaxRdAtomic, &QpAttributes::max_rd_atomic);
    take(MigrationState, &QpAttributes::migrated);
    take(Attribute::Qkey, &QpAttributes::qkey);
    take(Selective, &QpAttributes::selective);
}

}  // namespace cairn::roce
