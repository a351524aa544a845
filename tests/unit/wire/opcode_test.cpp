// The opcode table compared with one written by hand, over all 256 values.
#include "lib/wire/opcode.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace cairn::wire {
namespace {

struct Expected {
    std::string name;
    char place;    // First, Middle, Last, Only
    char role;     // Request, Response (P), Acknowledge, Notification
    bool payload;  // may carry a payload
    HeaderSet headers;
    std::size_t header_bytes;
};

// IBTA vol. 1, 9.2.1 and the lists of headers next to it, by the low five bits.
const std::map<unsigned, Expected> kReliable{
    {0x00, {"SEND First", 'F', 'R', true, HeaderSet::of<>(), 12}},
    {0x01, {"SEND Middle", 'M', 'R', true, HeaderSet::of<>(), 12}},
    {0x02, {"SEND Last", 'L', 'R', true, HeaderSet::of<>(), 12}},
    {0x03, {"SEND Last with Immediate", 'L', 'R', true, HeaderSet::of<ImmDt>(), 16}},
    {0x04, {"SEND Only", 'O', 'R', true, HeaderSet::of<>(), 12}},
    {0x05, {"SEND Only with Immediate", 'O', 'R', true, HeaderSet::of<ImmDt>(), 16}},
    {0x06, {"RDMA WRITE First", 'F', 'R', true, HeaderSet::of<Reth>(), 28}},
    {0x07, {"RDMA WRITE Middle", 'M', 'R', true, HeaderSet::of<>(), 12}},
    {0x08, {"RDMA WRITE Last", 'L', 'R', true, HeaderSet::of<>(), 12}},
    {0x09, {"RDMA WRITE Last with Immediate", 'L', 'R', true, HeaderSet::of<ImmDt>(), 16}},
    {0x0a, {"RDMA WRITE Only", 'O', 'R', true, HeaderSet::of<Reth>(), 28}},
    {0x0b, {"RDMA WRITE Only with Immediate", 'O', 'R', true, HeaderSet::of<ImmDt, Reth>(), 32}},
    {0x0c, {"RDMA READ Request", 'O', 'R', false, HeaderSet::of<Reth>(), 28}},
    {0x0d, {"RDMA READ response First", 'F', 'P', true, HeaderSet::of<Aeth>(), 16}},
    {0x0e, {"RDMA READ response Middle", 'M', 'P', true, HeaderSet::of<>(), 12}},
    {0x0f, {"RDMA READ response Last", 'L', 'P', true, HeaderSet::of<Aeth>(), 16}},
    {0x10, {"RDMA READ response Only", 'O', 'P', true, HeaderSet::of<Aeth>(), 16}},
    {0x11, {"Acknowledge", 'O', 'A', false, HeaderSet::of<Aeth>(), 16}},
    {0x12, {"ATOMIC Acknowledge", 'O', 'P', false, HeaderSet::of<Aeth, AtomicAckEth>(), 24}},
    {0x13, {"CmpSwap", 'O', 'R', false, HeaderSet::of<AtomicEth>(), 40}},
    {0x14, {"FetchAdd", 'O', 'R', false, HeaderSet::of<AtomicEth>(), 40}},
    {0x16, {"SEND Last with Invalidate", 'L', 'R', true, HeaderSet::of<Ieth>(), 16}},
    {0x17, {"SEND Only with Invalidate", 'O', 'R', true, HeaderSet::of<Ieth>(), 16}},
};

std::map<unsigned, Expected> every_opcode() {
    std::map<unsigned, Expected> all = kReliable;
    all.emplace(0x1c, Expected{"FLUSH", 'O', 'R', false, HeaderSet::of<Feth, Reth>(), 32});
    all.emplace(0x1d, Expected{"ATOMIC WRITE", 'O', 'R', true, HeaderSet::of<Reth>(), 28});
    for (unsigned low = 0; low <= 0x0b; ++low) {
        all.emplace(0x20 + low, kReliable.at(low));
    }
    all.emplace(0x64, Expected{"SEND Only", 'O', 'R', true, HeaderSet::of<Deth>(), 20});
    all.emplace(0x65, Expected{"SEND Only with Immediate", 'O', 'R', true, HeaderSet::of<Deth, ImmDt>(), 24});
    all.emplace(0x81, Expected{"Congestion Notification", 'O', 'N', false, HeaderSet::of<CnpReserved>(), 28});
    for (auto [low, expected] : kReliable) {
        if (expected.role == 'R') {
            expected.headers = expected.headers.with(HeaderSet::of<Xrceth>());
            expected.header_bytes += 4;
        }
        all.emplace(0xa0 + low, expected);
    }
    return all;
}

TEST(Opcode, AllValuesHaveTheTraitsOfTheSpecificationOrNoEntry) {
    const auto all = every_opcode();
    ASSERT_EQ(all.size(), 25U + 12 + 2 + 1 + 23);
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
        const OpcodeTraits* traits = find_opcode(static_cast<std::uint8_t>(opcode));
        const auto found = all.find(opcode);
        ASSERT_EQ(traits != nullptr, found != all.end()) << opcode;
        if (traits == nullptr) {
            continue;
        }
        const Expected& expected = found->second;
        EXPECT_EQ(traits->name, expected.name) << opcode;
        EXPECT_EQ("FMLO"[static_cast<int>(traits->place)], expected.place) << opcode;
        EXPECT_EQ("RPAN"[static_cast<int>(traits->role)], expected.role) << opcode;
        EXPECT_EQ(traits->payload == Payload::Carried, expected.payload) << opcode;
        EXPECT_EQ(traits->headers, expected.headers) << opcode;
        EXPECT_EQ(traits->header_bytes, expected.header_bytes) << opcode;
        EXPECT_EQ(static_cast<unsigned>(traits->service), opcode & 0xe0U) << opcode;
        EXPECT_EQ(traits->opcode(), opcode);
        EXPECT_EQ(traits->starts_message(), expected.place == 'F' || expected.place == 'O') << opcode;
        EXPECT_EQ(traits->ends_message(), expected.place == 'L' || expected.place == 'O') << opcode;
    }
}

TEST(Opcode, AnswersAreToldFromRequestsWithoutTheTable) {
    for (unsigned opcode = 0; opcode < 256; ++opcode) {
        const OpcodeTraits* const traits = find_opcode(static_cast<std::uint8_t>(opcode));
        if (traits != nullptr && traits->service != Service::Cnp) {
            const bool answers = traits->role == Role::Response || traits->role == Role::Acknowledge;
            EXPECT_EQ(is_answer(static_cast<std::uint8_t>(opcode)), answers) << opcode;
        }
    }
}

TEST(Opcode, IsComposedOfServiceAndOperation) {
    EXPECT_EQ(opcode_of(Service::Ud, Operation::SendOnly), 0x64);
    EXPECT_EQ(opcode_of(Service::Uc, Operation::WriteOnlyImmediate), 0x2b);
    EXPECT_EQ(opcode_of(Service::Xrc, Operation::SendOnlyInvalidate), 0xb7);
    EXPECT_EQ(opcode_of(Service::Cnp, Operation::CongestionNotification), 0x81);
}

TEST(Opcode, ServicesHaveNames) {
    EXPECT_EQ(name_of(Service::Rc), "RC");
    EXPECT_EQ(name_of(Service::Uc), "UC");
    EXPECT_EQ(name_of(Service::Ud), "UD");
    EXPECT_EQ(name_of(Service::Cnp), "CNP");
    EXPECT_EQ(name_of(Service::Xrc), "XRC");
}

}  // namespace
}  // namespace cairn::wire
