// Packets as values: parsed, refused for a reason, emitted over dirty buffers; over every opcode.
#include "lib/wire/packet.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace cairn::wire {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Returns a payload whose bytes differ from one another, from a dirty buffer's and from a pad's.
Bytes payload_of(std::size_t size) {
    Bytes payload;
    for (std::size_t i = 1; i <= size; ++i) {
        payload.push_back(static_cast<std::uint8_t>(i));
    }
    return payload;
}

// Returns BTH ... ICRC (four bytes 0xee) as a sender would assemble it.
Bytes datagram_of(const Packet& packet) {
    Bytes bytes(packet.bytes() + 7, 0xa5);
    std::size_t at = packet.emit(bytes);
    EXPECT_EQ(at, packet.traits().header_bytes);
    EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(),
                            [](std::uint8_t byte) { return byte == 0xa5; }));
    bytes.resize(at);
    bytes.insert(bytes.end(), packet.payload().begin(), packet.payload().end());
    bytes.insert(bytes.end(), packet.pad_bytes(), 0);
    bytes.insert(bytes.end(), kIcrcBytes, 0xee);
    EXPECT_EQ(bytes.size(), packet.bytes());
    return bytes;
}

Drop reason_of(const Bytes& datagram) {
    const auto parsed = Packet::parse(datagram);
    return parsed.ok() ? Drop::Count : parsed.reason();
}

// Returns a packet of the opcode without a field of zero.
Packet filled(const OpcodeTraits& traits) {
    Packet packet(traits.service, traits.operation);
    Bth bth;
    bth.solicited = true;
    bth.pkey = Pkey{0x8123};
    bth.becn = true;
    bth.dest_qpn = Qpn{0x334455};
    bth.ack_request = true;
    bth.psn = Psn{0xffffff};
    packet.set_bth(bth);
    const auto fill = [&packet, &traits](const auto& header) {
        if (traits.headers.has<std::decay_t<decltype(header)>>()) {
            packet.set(header);
        }
    };
    fill(Xrceth{Srqn{0x123456}});
    fill(Deth{Qkey{0x11223344}, Qpn{0x556677}});
    fill(Feth{Feth::kGlobal, Feth::kWhole});
    fill(Reth{0x1122334455667788U, Rkey{0x99aabbcc}, 0xddeeff01U});
    fill(AtomicEth{0x1122334455667788U, Rkey{0x99aabbcc}, 2, 3});
    fill(Aeth{RnrTimer{7}, Msn{0x010203}});
    fill(AtomicAckEth{0x1020304050607080U});
    fill(ImmDt{0x0a0b0c0dU});
    fill(Ieth{Rkey{0x0e0f1011U}});
    return packet;
}

template <class Test>
int for_each_opcode(Test test) {
    int opcodes = 0;
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
        if (const OpcodeTraits* traits = find_opcode(static_cast<std::uint8_t>(opcode))) {
            test(*traits);
            ++opcodes;
        }
    }
    return opcodes;
}

TEST(Packet, OfEveryOpcodeAndPadIsRebuiltFromWhatItsDatagramSays) {
    const int opcodes = for_each_opcode([](const OpcodeTraits& traits) {
        const std::size_t largest = traits.payload == Payload::Carried ? 9 : 0;
        for (std::size_t size = 0; size <= largest; ++size) {
            const Bytes payload = payload_of(size);
            Packet packet = filled(traits);
            packet.set_payload(payload);
            const Bytes datagram = datagram_of(packet);
            EXPECT_EQ(datagram.size() % 4, 0U);
            const auto parsed = Packet::parse(datagram);
            ASSERT_TRUE(parsed.ok()) << name_of(traits.service) << ' ' << traits.name << ' ' << size;
            EXPECT_EQ(parsed.value(), packet);
            EXPECT_EQ(&parsed.value().traits(), &traits);
            EXPECT_EQ(parsed.value().pad_bytes(), (4 - size % 4) % 4);
            EXPECT_EQ(datagram_of(parsed.value()), datagram);
        }
    });
    EXPECT_EQ(opcodes, 63);
}

TEST(Packet, HeadersStandInTheOrderOfTheSpecification) {
    Packet write = filled(*find_opcode(0xab));  // XRC RDMA WRITE Only with Immediate
    EXPECT_EQ(datagram_of(write), (Bytes{0xab, 0xc0, 0x81, 0x23, 0x40, 0x33, 0x44, 0x55, 0x80, 0xff, 0xff, 0xff,  // BTH
                                         0,    0x12, 0x34, 0x56,  // XRCETH
                                         0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc,
                                         0xdd, 0xee, 0xff, 1,     // RETH
                                         0x0a, 0x0b, 0x0c, 0x0d,  // ImmDt
                                         0xee, 0xee, 0xee, 0xee}));
    Packet atomic = filled(*find_opcode(0x12));  // RC ATOMIC Acknowledge
    EXPECT_EQ(datagram_of(atomic),
              (Bytes{0x12, 0xc0, 0x81, 0x23, 0x40, 0x33, 0x44, 0x55, 0x80, 0xff, 0xff, 0xff,  // BTH
                     0x27, 1,    2,    3,                                                     // AETH
                     0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80,                          // AtomicAckETH
                     0xee, 0xee, 0xee, 0xee}));
}

TEST(Packet, EndingInsideItsHeadersOrIcrcIsTruncated) {
    for_each_opcode([](const OpcodeTraits& traits) {
        const Bytes datagram = datagram_of(filled(traits));
        for (std::size_t size = 0; size < datagram.size(); ++size) {
            const Bytes cut(datagram.begin(), datagram.begin() + static_cast<std::ptrdiff_t>(size));
            EXPECT_EQ(reason_of(cut), Drop::Truncated) << traits.name << ' ' << size;
        }
    });
}

TEST(Packet, OfAnotherHeaderVersionIsRefused) {
    Bytes datagram = datagram_of(Packet(Service::Rc, Operation::SendOnly));
    for (std::uint8_t version = 1; version < 16; ++version) {
        datagram[1] = static_cast<std::uint8_t>(0x40U | version);
        EXPECT_EQ(reason_of(datagram), Drop::BadVersion);
    }
}

TEST(Packet, OfAnUnknownOpcodeIsRefused) {
    Bytes datagram(100, 0);
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
        datagram[0] = static_cast<std::uint8_t>(opcode);
        EXPECT_EQ(reason_of(datagram) == Drop::UnknownOpcode, find_opcode(datagram[0]) == nullptr) << opcode;
    }
}

TEST(Packet, WithAReservedSyndromeIsRefused) {
    Bytes datagram = datagram_of(filled(*find_opcode(0x11)));
    datagram[12] = 0x65;
    EXPECT_EQ(reason_of(datagram), Drop::BadSyndrome);
}

TEST(Packet, WithPayloadThatItsOpcodeDoesNotCarryIsRefused) {
    const int opcodes = for_each_opcode([](const OpcodeTraits& traits) {
        Bytes datagram = datagram_of(filled(traits));
        datagram.insert(datagram.end(), 4, 0);
        EXPECT_EQ(reason_of(datagram), traits.payload == Payload::None ? Drop::UnexpectedPayload : Drop::Count)
            << traits.name;
    });
    EXPECT_EQ(opcodes, 63);
}

TEST(Packet, OfAnUnevenLengthIsRefused) {
    Packet packet(Service::Ud, Operation::SendOnly);
    const Bytes payload = payload_of(8);
    packet.set_payload(payload);
    const Bytes datagram = datagram_of(packet);
    for (std::size_t extra = 1; extra < 4; ++extra) {
        Bytes longer = datagram;
        longer.insert(longer.end(), extra, 0);
        EXPECT_EQ(reason_of(longer), Drop::BadLength);
    }
}

TEST(Packet, WhosePadIsLargerThanWhatFollowsTheHeadersIsRefused) {
    for (std::uint8_t pad = 1; pad <= 3; ++pad) {
        Bytes datagram = datagram_of(Packet(Service::Rc, Operation::SendOnly));
        datagram[1] = static_cast<std::uint8_t>(0x40U | (static_cast<unsigned>(pad) << 4U));
        EXPECT_EQ(reason_of(datagram), Drop::BadPad);
        datagram.insert(datagram.end() - kIcrcBytes, 4, 9);
        ASSERT_EQ(reason_of(datagram), Drop::Count);
        EXPECT_EQ(Packet::parse(datagram).value().payload().size(), 4U - pad);
    }
}

TEST(Packet, KeepsItsOwnOpcodeAndPadWhateverBthItTakes) {
    Packet packet(Service::Rc, Operation::SendOnly);
    const Bytes payload = payload_of(61);
    packet.set_payload(payload);
    Bth bth;
    bth.opcode = 0x64;
    bth.pad_count = 1;
    bth.psn = Psn{5};
    packet.set_bth(bth);
    EXPECT_EQ(packet.bth().opcode, 0x04);
    EXPECT_EQ(packet.bth().pad_count, 3);
    EXPECT_EQ(packet.bth().psn, Psn{5});
    EXPECT_EQ(packet.bytes(), 12U + 64 + 4);
}

TEST(Packet, IsEqualOnlyToOneThatSaysTheSame) {
    const Bytes payload = payload_of(8);
    const Bytes same = payload_of(8);
    Bytes other = payload;
    other[7] = 0;
    Packet packet = filled(*find_opcode(0x65));
    Packet twin = packet;
    packet.set_payload(payload);
    twin.set_payload(same);
    EXPECT_EQ(packet, twin);
    twin.set_payload(other);
    EXPECT_FALSE(packet == twin);
    twin = packet;
    twin.set(ImmDt{1});
    EXPECT_FALSE(packet == twin);
}

TEST(PacketDeathTest, AHeaderThatTheOpcodeLacksIsOurBug) {
    Packet packet(Service::Rc, Operation::SendOnly);
    EXPECT_DEATH(packet.set(Deth{}), "has<Header>");
    EXPECT_DEATH((void)packet.get<Reth>(), "has<Header>");
    EXPECT_DEATH(Packet(Service::Ud, Operation::WriteFirst), "nullptr");
    Packet acknowledge(Service::Rc, Operation::Acknowledge);
    const Bytes payload = payload_of(4);
    EXPECT_DEATH(acknowledge.set_payload(payload), "Payload::Carried");
}

}  // namespace
}  // namespace cairn::wire
