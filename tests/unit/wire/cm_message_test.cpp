// The connection manager's messages: golden bytes both ways, every field at its place, refusals.
#include <gtest/gtest.h>

#include <string>

#include "lib/wire/cm_message.hpp"
#include "lib/wire/ip_cm.hpp"
#include "tests/support/golden_mads.hpp"

namespace cairn::wire {
namespace {

template <class Message>
Message held_by(std::span<const std::uint8_t> bytes) {
    const auto parsed = CmMad::parse(bytes);
    if (!parsed.ok() || !std::holds_alternative<Message>(parsed.value().message)) {
        ADD_FAILURE() << "not the message that is wanted";
        return {};
    }
    return std::get<Message>(parsed.value().message);
}

Gid v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d};
}

TEST(CmGoldenBytes, EveryMessageIsEmittedAsItCame) {
    std::size_t count = 0;
    for (const char* trace : {"cm_reject", "cm_rping", "cm_udaddy"}) {
        for (const auto& mad : test::golden_mads(trace)) {
            const auto parsed = CmMad::parse(mad);
            ASSERT_TRUE(parsed.ok());
            const MadBytes again = parsed.value().bytes();
            EXPECT_TRUE(std::equal(mad.begin(), mad.end(), again.begin(), again.end())) << trace << " " << count;
            ++count;
        }
    }
    EXPECT_EQ(count, 9U);
}

TEST(CmGoldenBytes, ARequestOfLinuxMeansWhatItsSenderAsked) {
    const auto mads = test::golden_mads("cm_rping");
    ASSERT_EQ(mads.size(), 5U);
    const Req req = held_by<Req>(mads[0]);
    EXPECT_EQ(CmMad::parse(mads[0]).value().transaction, 0x0000000209349b60U);
    EXPECT_EQ(req.local_comm_id, CommId{0x609b3409});
    EXPECT_EQ(req.service_id, ip_service(IpProtocol::Tcp, 7174));
    EXPECT_EQ(req.local_ca_guid, 0x505400fffe770011U);
    EXPECT_EQ(req.local_qpn, Qpn{0xc4});
    EXPECT_EQ(req.responder_resources, 1);
    EXPECT_EQ(req.initiator_depth, 1);
    EXPECT_EQ(req.remote_response_timeout, CmTimeout{20});
    EXPECT_EQ(req.service, TransportService::Rc);
    EXPECT_FALSE(req.flow_control);
    EXPECT_EQ(req.starting_psn, Psn{0xffdc25});
    EXPECT_EQ(req.local_response_timeout, CmTimeout{20});
    EXPECT_EQ(req.retry_count, RetryCount{7});
    EXPECT_EQ(req.pkey, Pkey{0xffff});
    EXPECT_EQ(bytes_of(req.path_mtu), 4096U);
    EXPECT_EQ(req.rnr_retry, RetryCount{7});
    EXPECT_EQ(req.max_cm_retries, CmRetries{15});
    EXPECT_FALSE(req.srq);
    EXPECT_EQ(req.primary.local_lid, 0xffff);
    EXPECT_EQ(req.primary.local_gid, v4(10, 77, 0, 11));
    EXPECT_EQ(req.primary.remote_gid, v4(10, 77, 0, 10));
    EXPECT_EQ(req.primary.flow_label, FlowLabel{0xfcbfa});
    EXPECT_EQ(req.primary.hop_limit, 64);
    EXPECT_EQ(req.primary.ack_timeout, CmTimeout{19});
    EXPECT_EQ(req.alternate, CmPath{});
    const auto header = IpCmHeader::parse(read_raw<RawIpCmHeader>(req.private_data.data()));
    ASSERT_TRUE(header.has_value());
    EXPECT_EQ(header->source_port, 0x818c);
    EXPECT_EQ(header->source, v4(10, 77, 0, 11));
    EXPECT_EQ(header->destination, v4(10, 77, 0, 10));
}

TEST(CmGoldenBytes, AnswersOfLinuxMeanWhatTheirSenderSaid) {
    const auto mads = test::golden_mads("cm_rping");
    ASSERT_EQ(mads.size(), 5U);
    const Rep rep = held_by<Rep>(mads[1]);
    const CommIds of_server{CommId{0xb572a6be}, CommId{0x609b3409}};
    const CommIds of_client{CommId{0x609b3409}, CommId{0xb572a6be}};
    EXPECT_EQ(rep.ids, of_server);
    EXPECT_EQ(rep.local_qpn, Qpn{0xc4});
    EXPECT_EQ(rep.starting_psn, Psn{0x81143b});
    EXPECT_EQ(rep.responder_resources, 1);
    EXPECT_EQ(rep.initiator_depth, 1);
    EXPECT_EQ(rep.target_ack_delay, CmTimeout{15});
    EXPECT_EQ(rep.failover, Failover::Accepted);
    EXPECT_EQ(rep.rnr_retry, RetryCount{7});
    EXPECT_EQ(rep.local_ca_guid, 0x505400fffe770010U);
    EXPECT_EQ(held_by<Rtu>(mads[2]).ids, of_client);
    EXPECT_EQ(held_by<Dreq>(mads[3]).ids, of_client);
    EXPECT_EQ(held_by<Dreq>(mads[3]).remote_qpn, Qpn{0xc4});
    EXPECT_EQ(held_by<Drep>(mads[4]).ids, of_server);
}

TEST(CmGoldenBytes, ARefusalOfLinuxNamesItsReason) {
    const auto mads = test::golden_mads("cm_reject");
    ASSERT_EQ(mads.size(), 2U);
    const Rej rej = held_by<Rej>(mads[1]);
    EXPECT_EQ(rej.ids, (CommIds{CommId{0}, CommId{0x6c9b3409}}));
    EXPECT_EQ(rej.message, Answered::Req);
    EXPECT_EQ(rej.reason, RejectReason::InvalidServiceId);
    EXPECT_EQ(rej.info_bytes, 0);
}

TEST(CmGoldenBytes, LinuxResolvesADatagramService) {
    const auto mads = test::golden_mads("cm_udaddy");
    ASSERT_EQ(mads.size(), 2U);
    const SidrReq asked = held_by<SidrReq>(mads[0]);
    const SidrRep told = held_by<SidrRep>(mads[1]);
    EXPECT_EQ(asked.request_id, SidrRequestId{0x629b3409});
    EXPECT_EQ(asked.service_id, ip_service(IpProtocol::Udp, 7174));
    EXPECT_EQ(asked.pkey, Pkey{0xffff});
    EXPECT_TRUE(IpCmHeader::parse(read_raw<RawIpCmHeader>(asked.private_data.data())).has_value());
    EXPECT_EQ(told.request_id, asked.request_id);
    EXPECT_EQ(told.status, SidrStatus::Valid);
    EXPECT_EQ(told.qpn, Qpn{0xc6});
    EXPECT_EQ(told.service_id, asked.service_id);
    EXPECT_EQ(told.qkey, Qkey{0x01234567});
}

// Checks a message whose bytes are all zero except one: the fields that a bit sets in an octet of several fields.
template <class Message>
Message with_octet(std::size_t at, std::uint8_t octet) {
    MadBytes bytes = CmMad{0, Message{}}.bytes();
    std::fill(bytes.begin() + MadHeader::kBytes, bytes.end(), std::uint8_t{0});
    bytes[MadHeader::kBytes + at] = octet;
    return held_by<Message>(bytes);
}

TEST(CmFields, OctetsThatFieldsShareAreCutWhereTheTablesSay) {
    EXPECT_EQ(with_octet<Req>(43, 0x08).remote_response_timeout, CmTimeout{1});
    EXPECT_EQ(with_octet<Req>(43, 0x02).service, TransportService::Uc);
    EXPECT_EQ(with_octet<Req>(43, 0x06).service, TransportService::Extended);
    EXPECT_TRUE(with_octet<Req>(43, 0x01).flow_control);
    EXPECT_EQ(with_octet<Req>(47, 0x80).local_response_timeout, CmTimeout{16});
    EXPECT_EQ(with_octet<Req>(47, 0x04).retry_count, RetryCount{4});
    EXPECT_EQ(with_octet<Req>(50, 0x30).path_mtu, path_mtu_of(1024));
    EXPECT_TRUE(with_octet<Req>(50, 0x08).rdc_exists);
    EXPECT_EQ(with_octet<Req>(50, 0x05).rnr_retry, RetryCount{5});
    EXPECT_EQ(with_octet<Req>(51, 0x90).max_cm_retries, CmRetries{9});
    EXPECT_TRUE(with_octet<Req>(51, 0x08).srq);
    EXPECT_EQ(with_octet<Req>(51, 0x01).extended_transport, 1);
    EXPECT_EQ(with_octet<Req>(90, 0x10).primary.flow_label, FlowLabel{1});
    EXPECT_EQ(with_octet<Req>(91, 0xff).primary.rate, PacketRate{63});
    EXPECT_EQ(with_octet<Req>(92, 0xff).primary.traffic_class, 0xff);
    EXPECT_EQ(with_octet<Req>(94, 0x20).primary.level, ServiceLevel{2});
    EXPECT_TRUE(with_octet<Req>(94, 0x08).primary.subnet_local);
    EXPECT_EQ(with_octet<Req>(95, 0x98).primary.ack_timeout, CmTimeout{19});
    EXPECT_EQ(with_octet<Req>(139, 0x98).alternate.ack_timeout, CmTimeout{19});
    EXPECT_EQ(with_octet<Rep>(26, 0x78).target_ack_delay, CmTimeout{15});
    EXPECT_EQ(with_octet<Rep>(26, 0x02).failover, Failover::NotSupported);
    EXPECT_TRUE(with_octet<Rep>(26, 0x01).flow_control);
    EXPECT_EQ(with_octet<Rep>(27, 0x20).rnr_retry, RetryCount{1});
    EXPECT_TRUE(with_octet<Rep>(27, 0x10).srq);
    EXPECT_EQ(with_octet<Mra>(8, 0x40).message, Answered::Rep);
    EXPECT_EQ(with_octet<Mra>(9, 0xc0).service_timeout, CmTimeout{24});
    EXPECT_EQ(with_octet<Rej>(8, 0x80).message, Answered::Other);
    EXPECT_EQ(with_octet<Rej>(9, 0x10).info_bytes, 8);
    EXPECT_EQ(with_octet<Rej>(11, 28).reason, RejectReason::Consumer);
    EXPECT_EQ(with_octet<Dreq>(10, 7).remote_qpn, Qpn{7});
    EXPECT_EQ(with_octet<SidrRep>(4, 1).status, SidrStatus::UnsupportedService);
    EXPECT_EQ(with_octet<SidrRep>(5, 72).info_bytes, 72);
    EXPECT_EQ(with_octet<Apr>(9, 2).status, AlternatePathStatus::NotSupported);
}

TEST(CmFields, AMessageOfDistinctOctetsIsEmittedAsItWas) {
    const auto check = []<class Message>(Message) {
        MadBytes bytes = CmMad{0x0102030405060708U, Message{}}.bytes();
        for (std::size_t at = MadHeader::kBytes; at < bytes.size(); ++at) {
            bytes[at] = static_cast<std::uint8_t>(at * 3 + 1);
        }
        bytes[MadHeader::kBytes + 8] = 0x40;  // of REJ and MRA: REP
        bytes[MadHeader::kBytes + 9] = 0x10;  // of REJ: 8 bytes of information
        bytes[MadHeader::kBytes + 5] = 0x08;  // and of SIDR_REP
        const Message once = held_by<Message>(bytes);
        const MadBytes emitted = CmMad{0x0102030405060708U, once}.bytes();
        EXPECT_EQ(held_by<Message>(emitted), once);
        std::size_t different = 0;
        for (std::size_t at = 0; at < bytes.size(); ++at) {
            different += emitted[at] != bytes[at] ? 1U : 0U;
        }
        const std::size_t reserved = std::is_same_v<Message, Req> ? 16 : 6;
        EXPECT_LE(different, reserved) << Message::kAttribute;
    };
    std::apply([&](auto... messages) { (check(messages), ...); },
               std::tuple<Req, Rep, Rtu, Mra, Rej, Dreq, Drep, SidrReq, SidrRep>{});
}

TEST(CmParse, RefusesWhatIsNoMessageOfAConnectionManager) {
    const MadBytes good = CmMad{7, Rtu{}}.bytes();
    const auto reason_with = [&good](std::size_t at, std::uint8_t octet) {
        MadBytes bytes = good;
        bytes[at] = octet;
        const auto parsed = CmMad::parse(bytes);
        return parsed.ok() ? MadDrop::Count : parsed.reason();
    };
    EXPECT_EQ(reason_with(0, 2), MadDrop::BadVersion);
    EXPECT_EQ(reason_with(1, 0x04), MadDrop::OtherClass);
    EXPECT_EQ(reason_with(2, 1), MadDrop::BadClassVersion);
    EXPECT_EQ(reason_with(3, 0x01), MadDrop::BadMethod);
    EXPECT_EQ(reason_with(17, 0x1b), MadDrop::UnknownAttribute);
    EXPECT_EQ(reason_with(16, 0x01), MadDrop::UnknownAttribute);
    EXPECT_EQ(reason_with(8, 0xff), MadDrop::Count);  // the transaction is the sender's to choose
    for (std::size_t bytes = 0; bytes < kMadBytes; ++bytes) {
        const auto parsed = CmMad::parse(std::span(good).first(bytes));
        ASSERT_FALSE(parsed.ok());
        EXPECT_EQ(parsed.reason(), MadDrop::BadSize);
    }
    const std::vector<std::uint8_t> longer(kMadBytes + 4);
    EXPECT_EQ(CmMad::parse(longer).reason(), MadDrop::BadSize);
}

TEST(CmParse, RefusesReservedValuesAndInformationLongerThanItsRoom) {
    const auto reason_of = []<class Message>(Message message, std::size_t at, std::uint8_t octet) {
        MadBytes bytes = CmMad{7, message}.bytes();
        bytes[MadHeader::kBytes + at] = octet;
        const auto parsed = CmMad::parse(bytes);
        return parsed.ok() ? MadDrop::Count : parsed.reason();
    };
    EXPECT_EQ(reason_of(Mra{}, 8, 0xc0), MadDrop::ReservedValue);
    EXPECT_EQ(reason_of(Rej{}, 8, 0xc0), MadDrop::ReservedValue);
    EXPECT_EQ(reason_of(Rej{}, 9, 72U << 1U), MadDrop::Count);
    EXPECT_EQ(reason_of(Rej{}, 9, 73U << 1U), MadDrop::BadInfoLength);
    EXPECT_EQ(reason_of(SidrRep{}, 5, 72), MadDrop::Count);
    EXPECT_EQ(reason_of(SidrRep{}, 5, 73), MadDrop::BadInfoLength);
}

TEST(IpCm, TheHeaderOfEitherFamilyIsParsedAsItWasEmitted) {
    Gid v6{};
    v6[0] = 0xfd;
    v6[15] = 1;
    for (const IpCmHeader& header : {IpCmHeader{4791, v4(10, 0, 0, 1), v4(10, 0, 0, 2)}, IpCmHeader{1, v6, v6},
                                     IpCmHeader{1, v6, v4(10, 0, 0, 2)}}) {
        RawIpCmHeader raw;
        header.emit(raw);
        EXPECT_EQ(IpCmHeader::parse(raw), header);
    }
}

TEST(IpCm, RefusesAnotherMajorVersionAndUnknownFamilies) {
    RawIpCmHeader raw;
    IpCmHeader{4791, v4(10, 0, 0, 1), v4(10, 0, 0, 2)}.emit(raw);
    EXPECT_EQ(raw.ip_version, 0x40);
    raw.version = 0x01;  // a minor one is compatible
    EXPECT_TRUE(IpCmHeader::parse(raw).has_value());
    raw.version = 0x10;
    EXPECT_FALSE(IpCmHeader::parse(raw).has_value());
    raw.version = 0;
    raw.ip_version = 0x50;
    EXPECT_FALSE(IpCmHeader::parse(raw).has_value());
}

TEST(IpCm, ServicesAreToldFromOthersByTheirPrefix) {
    EXPECT_TRUE(is_ip_service(ip_service(IpProtocol::Udp, 65535)));
    EXPECT_FALSE(is_ip_service(ServiceId{0x0206'1f3f}));
    EXPECT_FALSE(is_ip_service(ServiceId{0x1'0106'1f3f}));
}

TEST(Features, TheTrailerIsToldFromForeignBytes) {
    RawFeatureTrailer raw;
    FeatureTrailer{kFeatureSelective | 0x800000U}.emit(raw);
    EXPECT_EQ(FeatureTrailer::parse(raw), FeatureTrailer{kFeatureSelective | 0x800000U});
    raw.version = 2;
    EXPECT_FALSE(FeatureTrailer::parse(raw).has_value());
    EXPECT_FALSE(FeatureTrailer::parse(RawFeatureTrailer{}).has_value());
}

TEST(CmTypes, TimeoutsAreMicrosecondsTimesPowersOfTwo) {
    EXPECT_EQ(duration_of(CmTimeout{0}), nanoseconds(4096));
    EXPECT_EQ(duration_of(CmTimeout{20}), nanoseconds(4294967296));
    EXPECT_EQ(duration_of(CmTimeout{31}), nanoseconds(4096) * (std::int64_t{1} << 31));
}

}  // namespace
}  // namespace cairn::wire
