// The table of states and attributes.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {
namespace {

TEST(RcAttributes, OnlyTheTransitionsOfTheSpecificationAreThere) {
    using enum QpState;
    const std::vector<std::pair<QpState, QpState>> allowed{{Reset, Init}, {Init, Init}, {Init, Rtr}, {Rtr, Rts},
                                                           {Rts, Rts},    {Rts, Sqd},   {Sqd, Rts},  {Sqd, Sqd}};
    for (const wire::Service service : {wire::Service::Rc, wire::Service::Uc, wire::Service::Ud}) {
        for (const QpState from : {Reset, Init, Rtr, Rts, Sqd, Sqe, Err}) {
            for (const QpState to : {Reset, Init, Rtr, Rts, Sqd, Sqe, Err}) {
                const bool listed = std::find(allowed.begin(), allowed.end(), std::pair{from, to}) != allowed.end();
                const bool resumes = from == Sqe && to == Rts && service != wire::Service::Rc;
                const bool ends = to == Reset || (to == Err && from != Reset);
                EXPECT_EQ(find_transition(from, to, service).has_value(), listed || resumes || ends)
                    << static_cast<int>(from) << ' ' << static_cast<int>(to);
            }
        }
    }
}

// (11.2.5.2, table of attributes by transition)
TEST(RcAttributes, UnreliableServicesHaveFewerAttributes) {
    using enum QpState;
    struct Step {
        wire::Service service;
        QpState from, to;
        AttributeSet required;
        AttributeSet optional;
    };
    const auto set = [](auto... all) { return AttributeSet::of(all...); };
    using enum wire::Service;
    for (const Step& step :
         {Step{Uc, Reset, Init, set(Attribute::Pkey, Attribute::Access), {}},
          Step{Uc, Init, Rtr, set(Attribute::Path, Attribute::PathMtu, Attribute::DestQpn, Attribute::ReceivePsn),
               set(Attribute::Pkey, Attribute::Access)},
          Step{Uc, Rtr, Rts, set(Attribute::SendPsn),
               set(Attribute::Access, Attribute::MigrationState, Attribute::SendsWait)},
          Step{Uc, Sqe, Rts, {}, set(Attribute::Access, Attribute::MigrationState, Attribute::SendsWait)},
          Step{Uc,
               Sqd,
               Sqd,
               {},
               set(Attribute::Access, Attribute::Pkey, Attribute::Path, Attribute::MigrationState,
                   Attribute::SendsWait)},
          Step{Ud, Reset, Init, set(Attribute::Pkey, Attribute::Qkey), {}},
          Step{Ud, Init, Rtr, {}, set(Attribute::Pkey, Attribute::Qkey)},
          Step{Ud, Rtr, Rts, set(Attribute::SendPsn), set(Attribute::Qkey)},
          Step{Ud, Sqe, Rts, {}, set(Attribute::Qkey)}}) {
        const auto found = find_transition(step.from, step.to, step.service);
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(found->required, step.required);
        EXPECT_EQ(found->optional, step.optional);
    }
}

TEST(RcAttributes, EachRequiredOneIsMissedEachForeignOneRefused) {
    using enum QpState;
    const AttributeSet kRequiredOfRtr = find_transition(Init, Rtr)->required;
    ASSERT_EQ(kRequiredOfRtr.with(AttributeSet::of(Attribute::Selective, Attribute::DelayedAcks)), kToRtr);
    struct Step {
        QpState from, to;
        AttributeSet required;
        AttributeSet allowed;
    };
    const QpAttributes values = RcHost::usual_attributes();
    for (const Step& step : {Step{Reset, Init, kToInit, kToInit}, Step{Init, Rtr, kRequiredOfRtr, kToRtr.with(kToInit)},
                             Step{Rts, Sqd, {}, {}}, Step{Rts, Err, {}, {}}}) {
        EXPECT_EQ(judge_modify(step.from, step.to, step.required, values), std::nullopt);
        for (unsigned i = 0; i < static_cast<unsigned>(Attribute::Count); ++i) {
            const AttributeSet one = AttributeSet::of(static_cast<Attribute>(i));
            AttributeSet others;
            for (unsigned j = 0; j < static_cast<unsigned>(Attribute::Count); ++j) {
                const AttributeSet other = AttributeSet::of(static_cast<Attribute>(j));
                others = j != i && step.required.covers(other) ? others.with(other) : others;
            }
            const bool required = step.required.covers(one);
            EXPECT_EQ(judge_modify(step.from, step.to, others, values),
                      required ? std::optional(ModifyRefusal::Missing) : std::nullopt);
            EXPECT_EQ(judge_modify(step.from, step.to, step.required.with(one), values),
                      step.allowed.covers(one) ? std::nullopt : std::optional(ModifyRefusal::NotAllowed));
        }
    }
}

TEST(RcAttributes, ADepthOfNoneCountsAsOne) {
    QpAttributes to = RcHost::usual_attributes();
    QpAttributes none;
    none.max_rd_atomic = none.max_dest_rd_atomic = 0;
    assign(to, AttributeSet::of(Attribute::MaxRdAtomic), none);
    EXPECT_EQ(to.max_rd_atomic, 1);
    EXPECT_NE(to.max_dest_rd_atomic, 1);
    assign(to, AttributeSet::of(Attribute::MaxDestRdAtomic), none);
    EXPECT_EQ(to.max_dest_rd_atomic, 1);
}

TEST(RcAttributes, ValuesOutOfRangeAreRefused) {
    const auto judge = [](QpState from, QpState to, AttributeSet which, auto&& change) {
        QpAttributes values = RcHost::usual_attributes();
        change(values);
        return judge_modify(from, to, which, values);
    };
    using enum QpState;
    EXPECT_EQ(judge(Init, Rtr, kToRtr, [](QpAttributes& v) { v.path_mtu_bytes = 1500; }), ModifyRefusal::BadValue);
    EXPECT_EQ(judge(Init, Rtr, kToRtr, [](QpAttributes& v) { v.max_dest_rd_atomic = kMaxRdAtomic + 1; }),
              ModifyRefusal::BadValue);
    EXPECT_EQ(judge(Rtr, Rts, kToRts, [](QpAttributes& v) { v.ack_timeout = 32; }), ModifyRefusal::BadValue);
    EXPECT_EQ(judge(Rtr, Rts, kToRts, [](QpAttributes& v) { v.retry_count = 8; }), ModifyRefusal::BadValue);
    EXPECT_EQ(judge(Rtr, Rts, kToRts, [](QpAttributes& v) { v.rnr_retry = 8; }), ModifyRefusal::BadValue);
    EXPECT_EQ(judge(Rtr, Rts, kToRts, [](QpAttributes& v) { v.max_rd_atomic = kMaxRdAtomic + 1; }),
              ModifyRefusal::BadValue);
    EXPECT_EQ(judge(Rtr, Rts, kToRts, [](QpAttributes&) {}), std::nullopt);
}

}  // namespace
}  // namespace cairn::roce::rc
