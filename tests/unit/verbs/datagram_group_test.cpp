// Datagram services found by SIDR, and multicast groups.
#include "tests/unit/verbs/datagram_pair.hpp"

namespace cairn::verbs {
namespace {

struct Sidr : Datagrams {
    static constexpr std::array<std::uint8_t, 4> kHello{1, 2, 3, 4};
    cm::Resolved resolve() {
        const Result<DatagramId> asked = a.connector->resolve(b.port.local_address(), kPort, std::span(kHello), now);
        EXPECT_TRUE(asked.ok());
        run();
        if (std::optional<cm::Event> event = b.connector->poll_event()) {
            const auto requested = std::get<cm::DatagramRequested>(*event);
            EXPECT_EQ(requested.route.remote, a.port.local_address());
            EXPECT_TRUE(std::equal(kHello.begin(), kHello.end(), requested.private_data.octets.begin()));
            if (refuse) {
                EXPECT_TRUE(b.connector->refuse(requested.id, kHello, now).ok());
            } else {
                EXPECT_TRUE(b.connector->answer(requested.id, {there.qp->qpn(), kKey, kHello}, now).ok());
            }
            EXPECT_FALSE(b.connector->refuse(requested.id, kHello, now).ok());
            run();
        }
        const auto resolved = a.expect_event<cm::Resolved>();
        EXPECT_EQ(resolved.id, asked.value());
        return resolved;
    }
    bool refuse = false;
};

TEST_F(Sidr, AServiceIsResolvedAndSpokenTo) {
    ASSERT_TRUE(b.connector->listen_datagrams(kPort).ok());
    EXPECT_FALSE(b.connector->listen_datagrams(kPort).ok());
    const cm::Resolved found = resolve();
    ASSERT_EQ(found.status, wire::SidrStatus::Valid);
    EXPECT_TRUE(std::equal(kHello.begin(), kHello.end(), found.private_data.octets.begin()));
    ASSERT_EQ(receive(there), PostVerdict::Posted);
    DatagramRequest made = request(8);
    made.qpn = found.qpn;
    made.qkey = found.qkey;
    ASSERT_EQ(here.qp->post_send(made), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*b.receives).size(), 1U);
}

TEST_F(Sidr, AStandingAnswerNeedsNobody) {
    const cm::DatagramService standing{there.qp->qpn(), kRdmaCmQkey, {}};
    ASSERT_TRUE(b.connector->listen_datagrams(kPort, standing).ok());
    const cm::Resolved found = resolve();
    EXPECT_EQ(found.qpn, there.qp->qpn());
    EXPECT_EQ(found.qkey, kRdmaCmQkey);
    EXPECT_TRUE(b.connector->unlisten_datagrams(kPort).ok());
    EXPECT_FALSE(b.connector->unlisten_datagrams(kPort).ok());
    EXPECT_EQ(resolve().status, wire::SidrStatus::UnsupportedService);
}

TEST_F(Sidr, ARefusalAndSilenceAreTold) {
    ASSERT_TRUE(b.connector->listen_datagrams(kPort).ok());
    refuse = true;
    EXPECT_EQ(resolve().status, wire::SidrStatus::Rejected);
    a.port.fate = [](std::uint64_t) { return 0; };
    ASSERT_TRUE(a.connector->resolve(b.port.local_address(), kPort, {}, now).ok());
    pass(seconds(30));
    EXPECT_FALSE(a.expect_event<cm::Resolved>().status.has_value());
    const std::array<std::uint8_t, 181> too_long{};
    EXPECT_FALSE(a.connector->resolve(b.port.local_address(), kPort, too_long, now).ok());
}

struct Groups : Datagrams {
    std::unique_ptr<Ah> group = way("239.1.2.3");
    std::unique_ptr<Ah> other_group = way("239.1.2.4");

    void send_to(const Ah& to) {
        DatagramRequest made = request(8);
        made.to = &to;
        made.qpn = wire::kGroupQpn;
        ASSERT_EQ(here.qp->post_send(made), PostVerdict::Posted);
        run();
    }
};

TEST_F(Groups, EachMemberGetsACopyTheSenderToo) {
    End second = make(b);
    std::memcpy(a.memory().data() + 32768, "together", 8);
    for (End* const end : {&here, &there, &second}) {
        end->posted = end == &second ? 8 : 0;
        ASSERT_TRUE(end->qp->attach(*group).ok());
        ASSERT_EQ(receive(*end), PostVerdict::Posted);
    }
    EXPECT_EQ(b.port.groups().size(), 1U);
    send_to(*group);
    EXPECT_EQ(drain(*a.sends).size(), 1U);
    EXPECT_EQ(drain(*b.receives).size(), 2U);
    const std::vector<Completion> own = drain(*a.receives);
    ASSERT_EQ(own.size(), 1U);
    EXPECT_EQ(own[0].source_qpn, here.qp->qpn());
    for (const auto at : {place(here, 0), place(there, 0), place(second, 8)}) {
        EXPECT_EQ(std::memcmp(at.data() + kGrhBytes, "together", 8), 0);
        EXPECT_EQ(source_of(at).text(), "10.0.0.1");
        EXPECT_EQ(at[36], 239);
    }
}

TEST_F(Groups, NobodyElseGetsOne) {
    ASSERT_TRUE(there.qp->attach(*group).ok());
    ASSERT_EQ(receive(there), PostVerdict::Posted);
    send_to(*other_group);
    EXPECT_TRUE(drain(*b.receives).empty());
    EXPECT_TRUE(there.qp->detach(*group));
    EXPECT_FALSE(there.qp->detach(*group));
    EXPECT_TRUE(b.port.groups().empty());
    send_to(*group);
    EXPECT_TRUE(drain(*b.receives).empty());
}

TEST_F(Groups, AMemberWithAnotherKeyIsCountedAndTheOthersStillGetTheirs) {
    End second = make(b);
    QpAttributes values;
    values.qkey = Qkey{77};
    ASSERT_EQ(there.qp->modify(QpState::Rts, AttributeSet::of(Attribute::Qkey), values), std::nullopt);
    for (End* const end : {&there, &second}) {
        ASSERT_TRUE(end->qp->attach(*group).ok());
        ASSERT_EQ(receive(*end), PostVerdict::Posted);
    }
    send_to(*group);
    EXPECT_EQ(drops(b, roce::Drop::BadQkey), 1U);
    EXPECT_EQ(drain(*b.receives).at(0).qpn, second.qp->qpn());
}

TEST_F(Groups, MembershipEndsWithItsQueuePairAndMisuseIsAnError) {
    ASSERT_TRUE(there.qp->attach(*group).ok());
    EXPECT_FALSE(there.qp->attach(*group).ok());
    EXPECT_FALSE(there.qp->attach(*to_b).ok());
    there.qp.reset();
    EXPECT_TRUE(b.port.groups().empty());
}

// Its own message comes back while it sends, and finds no room for its completion.
TEST_F(Datagrams, AQueuePairMayEndOverAMessageThatItSendsToItsOwnGroup) {
    const auto one_slot = a.device.create_cq(1).value();
    auto member = a.device.create_datagram_qp(*a.pd, {}, {*a.sends, *one_slot}).value();
    ASSERT_EQ(member->bring_up(kKey), std::nullopt);
    const auto group = way("224.0.0.77");
    ASSERT_TRUE(member->attach(*group).ok());
    const std::array<Sge, 1> place{a.mr->sge(0, kPlace)};
    for (std::uint64_t i = 0; i < 3; ++i) {
        ASSERT_EQ(member->post_receive({i, place}), PostVerdict::Posted);
        DatagramRequest made = request(8);
        made.work.wr_id = i;
        made.to = group.get();
        made.qpn = wire::kGroupQpn;
        ASSERT_EQ(member->post_send(made), PostVerdict::Posted);
    }
    run();
    EXPECT_EQ(member->state(), QpState::Err);
    EXPECT_TRUE(one_slot->overrun());
    const std::vector<Completion> sent = drain(*a.sends);
    ASSERT_EQ(sent.size(), 3U);
    EXPECT_EQ(sent[1].status, CompletionStatus::Success);  // it was sent, and its copy that came back was one too many
    EXPECT_EQ(sent[2].status, CompletionStatus::Flushed);
    EXPECT_TRUE(member->detach(*group));
}

}  // namespace
}  // namespace cairn::verbs
