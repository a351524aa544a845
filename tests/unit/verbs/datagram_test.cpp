// Queue pairs of unreliable datagrams: what arrives and how, states, groups, what is refused and dropped.
#include "lib/verbs/datagram_qp.hpp"

#include <array>
#include <cstring>

#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::verbs {
namespace {

constexpr Qkey kKey{0x1ee7};
constexpr std::uint32_t kPlace = 128;  // of each message received

struct Datagrams : VerbsPair {
    struct End {
        VerbsHost& host;
        std::unique_ptr<DatagramQp> qp;
        std::uint32_t posted = 0;
    };

    static End make(VerbsHost& host, Srq* srq = nullptr) {
        End end{host, host.device.create_datagram_qp(*host.pd, {}, {*host.sends, *host.receives, srq}).value()};
        EXPECT_EQ(end.qp->bring_up(kKey), ModifyVerdict::Ok);
        return end;
    }
    // For a message to kPlace times the number of those before; its number is the wr_id.
    static PostVerdict receive(End& end, std::uint32_t bytes = kPlace) {
        const std::array<Sge, 1> sges{end.host.mr->sge(end.posted * kPlace, bytes)};
        return end.qp->post_receive({end.posted++, sges});
    }
    DatagramRequest request(std::uint32_t bytes) {
        sges[0] = a.mr->sge(32768, bytes);
        DatagramRequest made;
        made.work.sges = sges;
        made.to = to_b.get();
        made.qpn = there.qp->qpn();
        made.qkey = kKey;
        return made;
    }
    PostVerdict send(std::uint32_t bytes) { return here.qp->post_send(request(bytes)); }
    static std::span<const std::uint8_t> place(End& end, std::uint32_t number) {
        return end.host.memory().subspan(number * kPlace, kPlace);
    }
    [[nodiscard]] static std::uint64_t drops(VerbsHost& host, roce::Drop reason) {
        return host.device.datagrams().drops().of(reason);
    }
    std::unique_ptr<Ah> way(const char* address) {
        return a.device.create_ah(net::IpAddress::parse(address).value(), 0xc000, now).value();
    }

    std::array<Sge, 1> sges{};
    End here = make(a);
    End there = make(b);
    std::unique_ptr<Ah> to_b = way("10.0.0.2");
};

TEST_F(Datagrams, AMessageArrivesBehindItsIpHeaderWithAllThatIsSaidOfIt) {
    std::memcpy(a.memory().data() + 32768, "cairn", 5);
    ASSERT_EQ(receive(there), PostVerdict::Posted);
    DatagramRequest made = request(5);
    made.work.wr_id = 9;
    made.work.opcode = WorkOpcode::SendWithImmediate;
    made.work.immediate = 0x12345678;
    made.work.solicited = true;
    ASSERT_EQ(here.qp->post_send(made), PostVerdict::Posted);
    run();
    const std::vector<Completion> sent = drain(*a.sends);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].wr_id, 9U);
    EXPECT_EQ(sent[0].qpn, here.qp->qpn());
    const std::vector<Completion> received = drain(*b.receives);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received[0].bytes, kGrhBytes + 5U);
    EXPECT_EQ(received[0].source_qpn, here.qp->qpn());
    EXPECT_TRUE(received[0].has_grh && received[0].has_immediate && received[0].solicited);
    EXPECT_EQ(received[0].immediate, 0x12345678U);
    const auto at = place(there, 0);
    EXPECT_EQ(std::memcmp(at.data() + kGrhBytes, "cairn", 5), 0);
    EXPECT_EQ(std::count(at.begin(), at.begin() + 20, 0), 20);
    constexpr std::array<std::uint8_t, 4> kFront{0x45, 0, 0, 20 + 8 + 20 + 4 + 5 + 3 + 4};
    EXPECT_EQ(std::memcmp(at.data() + 20, kFront.data(), kFront.size()), 0);
    EXPECT_EQ(source_of(at).text(), "10.0.0.1");
    EXPECT_EQ(at[39], 2);  // to 10.0.0.2
}

TEST_F(Datagrams, AnIpv6HeaderFillsTheWholeArea) {
    VerbsHost c("fd00::1", 7);
    VerbsHost d("fd00::2", 8);
    c.port.join(d.port);
    End from = make(c);
    End to = make(d);
    ASSERT_EQ(receive(to), PostVerdict::Posted);
    const auto ah = c.device.create_ah(net::IpAddress::parse("fd00::2").value(), 0xc000, now).value();
    const std::array<Sge, 1> none{};
    DatagramRequest made;
    made.work.sges = std::span(none).first(0);
    made.to = ah.get();
    made.qpn = to.qp->qpn();
    made.qkey = kKey;
    ASSERT_EQ(from.qp->post_send(made), PostVerdict::Posted);
    c.turn(now);
    d.turn(now);
    EXPECT_EQ(drain(*d.receives).at(0).bytes, std::uint32_t{kGrhBytes});
    EXPECT_EQ(source_of(place(to, 0)).text(), "fd00::1");
    EXPECT_TRUE(source_of(place(to, 0).first(39)).is_unspecified());
}

TEST_F(Datagrams, InlineBytesAndUnsignalledRequestsAreAsWithConnections) {
    ASSERT_EQ(receive(there), PostVerdict::Posted);
    std::array<std::uint8_t, 3> bytes{7, 8, 9};
    DatagramRequest made = request(0);
    made.work.is_inline = true;
    made.work.inline_bytes = bytes;
    made.work.signalled = false;
    ASSERT_EQ(here.qp->post_send(made), PostVerdict::Posted);
    bytes = {};
    run();
    EXPECT_TRUE(drain(*a.sends).empty());
    ASSERT_EQ(drain(*b.receives).size(), 1U);
    EXPECT_EQ(place(there, 0)[kGrhBytes + 1], 8);
}

TEST_F(Datagrams, WhatIsNotForItIsCountedAndTakesNoReceiveRequest) {
    EXPECT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drops(b, roce::Drop::NoReceive), 1U);
    ASSERT_EQ(receive(there, kGrhBytes + 8), PostVerdict::Posted);
    EXPECT_EQ(send(9), PostVerdict::Posted);
    DatagramRequest stranger = request(8);
    stranger.qkey = Qkey{kKey.value + 1};
    EXPECT_EQ(here.qp->post_send(stranger), PostVerdict::Posted);
    run();
    EXPECT_EQ(drops(b, roce::Drop::ReceiveTooShort), 1U);
    EXPECT_EQ(drops(b, roce::Drop::BadQkey), 1U);
    EXPECT_TRUE(drain(*b.receives).empty());
    EXPECT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*b.receives).size(), 1U);
    EXPECT_EQ(there.qp->state(), QpState::Rts);
}

TEST_F(Datagrams, AControlledQkeyIsTheQueuePairsOwn) {
    ASSERT_EQ(receive(there), PostVerdict::Posted);
    DatagramRequest made = request(8);
    made.qkey = Qkey{0x80000000};
    ASSERT_EQ(here.qp->post_send(made), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*b.receives).size(), 1U);
}

TEST_F(Datagrams, WhatDatagramsCanNotDoIsRefused) {
    const std::uint32_t most = here.qp->most_bytes();
    EXPECT_EQ(most, 4096U);
    EXPECT_EQ(send(most + 1), PostVerdict::TooLong);
    EXPECT_EQ(send(most), PostVerdict::Posted);
    DatagramRequest write = request(8);
    write.work.opcode = WorkOpcode::RdmaWrite;
    EXPECT_EQ(here.qp->post_send(write), PostVerdict::BadOpcode);
    EXPECT_FALSE(a.device.create_datagram_qp(*a.pd, {0, 1, 1, 0}, {*a.sends, *a.receives}).ok());
    EXPECT_FALSE(destroy(a.sends).ok());
    EXPECT_FALSE(destroy(a.pd).ok());
}

TEST_F(Datagrams, EachStateSendsAndReceivesWhatItMay) {
    const AttributeSet first = AttributeSet::of(Attribute::Qkey, Attribute::Pkey);
    QpAttributes values;
    values.qkey = kKey;
    DatagramQp& qp = *there.qp;
    EXPECT_EQ(qp.modify(QpState::Reset), ModifyVerdict::Ok);
    EXPECT_EQ(receive(there), PostVerdict::WrongState);
    EXPECT_EQ(qp.modify(QpState::Init), ModifyVerdict::Missing);
    EXPECT_EQ(qp.modify(QpState::Init, first.with(AttributeSet::of(Attribute::DestQpn)), values),
              ModifyVerdict::NotAllowed);
    EXPECT_EQ(qp.modify(QpState::Init, first, values), ModifyVerdict::Ok);
    EXPECT_EQ(receive(there), PostVerdict::Posted);
    EXPECT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drops(b, roce::Drop::WrongState), 1U);
    EXPECT_EQ(qp.modify(QpState::Rtr), ModifyVerdict::Ok);
    EXPECT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*b.receives).size(), 1U);

    (void)drain(*a.sends);
    EXPECT_EQ(here.qp->modify(QpState::Sqd), ModifyVerdict::Ok);
    EXPECT_EQ(here.qp->poll_event(), QpEvent::SendQueueDrained);
    EXPECT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_TRUE(drain(*a.sends).empty());
    EXPECT_EQ(here.qp->modify(QpState::Rts), ModifyVerdict::Ok);
    run();
    EXPECT_EQ(drain(*a.sends).size(), 1U);
}

TEST_F(Datagrams, AFailedRequestStopsSendingUntilItIsMended) {
    DatagramRequest bad = request(8);
    const std::array<Sge, 1> nowhere{Sge{a.mr->address(), 8, Lkey{1}}};
    bad.work.sges = nowhere;
    bad.work.signalled = false;
    ASSERT_EQ(here.qp->post_send(bad), PostVerdict::Posted);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    const std::vector<Completion> ended = drain(*a.sends);
    ASSERT_EQ(ended.size(), 2U);
    EXPECT_EQ(ended[0].status, CompletionStatus::LocalProtection);
    EXPECT_EQ(ended[1].status, CompletionStatus::Flushed);
    EXPECT_EQ(here.qp->state(), QpState::Sqe);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    EXPECT_EQ(drain(*a.sends).at(0).status, CompletionStatus::Flushed);
    EXPECT_EQ(here.qp->modify(QpState::Rts), ModifyVerdict::Ok);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    EXPECT_EQ(drain(*a.sends).at(0).status, CompletionStatus::Success);
}

TEST_F(Datagrams, InErrorAllIsFlushedAndAfterResetNothingIsLeft) {
    ASSERT_EQ(receive(here), PostVerdict::Posted);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    EXPECT_EQ(here.qp->modify(QpState::Err), ModifyVerdict::Ok);
    EXPECT_EQ(drain(*a.sends).at(0).status, CompletionStatus::Flushed);
    EXPECT_EQ(drain(*a.receives).at(0).status, CompletionStatus::Flushed);
    ASSERT_EQ(receive(here), PostVerdict::Posted);
    EXPECT_EQ(here.qp->modify(QpState::Reset), ModifyVerdict::Ok);
    EXPECT_TRUE(drain(*a.receives).empty());
    EXPECT_EQ(here.qp->bring_up(kKey), ModifyVerdict::Ok);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    EXPECT_EQ(here.qp->modify(QpState::Reset), ModifyVerdict::Ok);
    run();
    EXPECT_TRUE(drain(*a.sends).empty());
}

TEST_F(Datagrams, AReceiveRequestOfForeignMemoryEndsTheQueuePair) {
    const std::array<Sge, 1> nowhere{Sge{b.mr->address(), kPlace, Lkey{1}}};
    ASSERT_EQ(there.qp->post_receive({1, nowhere}), PostVerdict::Posted);
    ASSERT_EQ(receive(there), PostVerdict::Posted);
    ASSERT_EQ(send(8), PostVerdict::Posted);
    run();
    const std::vector<Completion> ended = drain(*b.receives);
    ASSERT_EQ(ended.size(), 2U);
    EXPECT_EQ(ended[0].status, CompletionStatus::LocalProtection);
    EXPECT_EQ(ended[1].status, CompletionStatus::Flushed);
    EXPECT_EQ(there.qp->poll_event(), QpEvent::Fatal);
}

TEST_F(Datagrams, AnOverrunCompletionQueueEndsTheQueuePair) {
    auto cq = a.device.create_cq(2).value();
    auto qp = a.device.create_datagram_qp(*a.pd, {}, {*cq, *a.receives}).value();
    ASSERT_EQ(qp->bring_up(kKey), ModifyVerdict::Ok);
    for (int i = 0; i < 4; ++i) {
        ASSERT_EQ(qp->post_send(request(8)), PostVerdict::Posted);
    }
    run();
    EXPECT_TRUE(cq->overrun());
    EXPECT_EQ(qp->state(), QpState::Err);
    EXPECT_EQ(qp->poll_event(), QpEvent::CqOverrun);
}

TEST_F(Datagrams, ASharedReceiveQueueFeedsThemToo) {
    auto srq = b.device.create_srq(8, 1).value();
    End one = make(b, srq.get());
    End other = make(b, srq.get());
    const std::array<Sge, 1> places{b.mr->sge(0, kPlace)};
    const std::array<ReceiveRequest, 2> two{{{1, places}, {2, places}}};
    EXPECT_EQ(srq->post(two).posted, 2U);
    srq->set_limit(1);
    for (End* const end : {&one, &other}) {
        DatagramRequest made = request(8);
        made.qpn = end->qp->qpn();
        ASSERT_EQ(here.qp->post_send(made), PostVerdict::Posted);
    }
    run();
    const std::vector<Completion> received = drain(*b.receives);
    ASSERT_EQ(received.size(), 2U);
    EXPECT_EQ(received[0].qpn, one.qp->qpn());
    EXPECT_EQ(received[1].qpn, other.qp->qpn());
    EXPECT_TRUE(srq->take_limit_event());
    EXPECT_EQ(one.qp->modify(QpState::Err), ModifyVerdict::Ok);
    EXPECT_EQ(one.qp->poll_event(), QpEvent::LastWqeReached);
}

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
        made.qpn = roce::kGroupQpn;
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
    ASSERT_EQ(there.qp->modify(QpState::Rts, AttributeSet::of(Attribute::Qkey), values), ModifyVerdict::Ok);
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

}  // namespace
}  // namespace cairn::verbs
