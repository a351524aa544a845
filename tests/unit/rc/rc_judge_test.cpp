// The judges as tables: PSN window, each pair of opcodes, lengths, rights, memory, answers' PSNs and data.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lib/roce/rc/judge_request.hpp"
#include "lib/roce/rc/judge_response.hpp"

namespace cairn::roce::rc {
namespace {

using wire::Operation;
using enum RequestVerdict;

wire::Packet request(Operation operation, std::size_t payload_bytes = 0) {
    static const std::vector<std::uint8_t> kBytes(8192);
    wire::Packet packet(wire::Service::Rc, operation);
    packet.set_payload(std::span(kBytes).first(payload_bytes));
    return packet;
}

TEST(RcJudge, PsnWindowIsHalfACircle) {
    struct Case {
        std::uint32_t psn, expected;
        PsnVerdict verdict;
    };
    const std::vector<Case> cases{
        {5, 5, PsnVerdict::Expected},
        {4, 5, PsnVerdict::Duplicate},
        {6, 5, PsnVerdict::Gap},
        {0xffffff, 0, PsnVerdict::Duplicate},
        {0, 0xffffff, PsnVerdict::Gap},
        {0x800004, 5, PsnVerdict::Gap},
        {0x800005, 5, PsnVerdict::Duplicate},
        {0x7fffff, 0, PsnVerdict::Gap},
        {0x800000, 0, PsnVerdict::Duplicate},
        {0xfffff0, 0x10, PsnVerdict::Duplicate},
    };
    for (const Case& one : cases) {
        EXPECT_EQ(judge_psn(Psn{one.psn}, Psn{one.expected}), one.verdict) << one.psn << ' ' << one.expected;
    }
}

TEST(RcJudge, EveryOperationAfterEveryKindOfMessage) {
    using enum MessageKind;
    const std::vector<Operation> begins{
        Operation::SendFirst,          Operation::SendOnly,    Operation::SendOnlyImmediate,
        Operation::SendOnlyInvalidate, Operation::WriteFirst,  Operation::WriteOnly,
        Operation::WriteOnlyImmediate, Operation::ReadRequest, Operation::CompareSwap,
        Operation::FetchAdd,           Operation::Flush,       Operation::AtomicWrite};
    const std::vector<Operation> goes_on_sending{Operation::SendMiddle, Operation::SendLast,
                                                 Operation::SendLastImmediate, Operation::SendLastInvalidate};
    const std::vector<Operation> goes_on_writing{Operation::WriteMiddle, Operation::WriteLast,
                                                 Operation::WriteLastImmediate};
    const auto has = [](const std::vector<Operation>& list, Operation one) {
        return std::find(list.begin(), list.end(), one) != list.end();
    };
    std::size_t known = 0;
    for (unsigned opcode = 0; opcode < 32; ++opcode) {
        const wire::OpcodeTraits* traits = wire::find_opcode(static_cast<std::uint8_t>(opcode));
        if (traits == nullptr) {
            continue;
        }
        ++known;
        const Operation operation = traits->operation;
        EXPECT_EQ(judge_sequence(*traits, None), has(begins, operation) ? Execute : InvalidRequest) << traits->name;
        EXPECT_EQ(judge_sequence(*traits, Send), has(goes_on_sending, operation) ? Execute : InvalidRequest);
        EXPECT_EQ(judge_sequence(*traits, Write), has(goes_on_writing, operation) ? Execute : InvalidRequest);
    }
    EXPECT_EQ(known, 25U);
}

TEST(RcJudge, OperationsNeedTheirRight) {
    struct Case {
        Operation operation;
        Rights needs;
    };
    for (const Case& one :
         {Case{Operation::SendOnly, {}}, Case{Operation::SendLastInvalidate, {}},
          Case{Operation::WriteFirst, Right::RemoteWrite}, Case{Operation::WriteLastImmediate, Right::RemoteWrite},
          Case{Operation::ReadRequest, Right::RemoteRead}, Case{Operation::CompareSwap, Right::RemoteAtomic},
          Case{Operation::FetchAdd, Right::RemoteAtomic}, Case{Operation::AtomicWrite, Right::RemoteWrite}}) {
        for (const Right right : {Right::RemoteWrite, Right::RemoteRead, Right::RemoteAtomic}) {
            const bool enough = Rights{right}.cover(one.needs);
            EXPECT_EQ(judge_rights(request(one.operation), right), enough ? Execute : InvalidRequest);
        }
        EXPECT_EQ(judge_rights(request(one.operation), {}), Rights{}.cover(one.needs) ? Execute : InvalidRequest);
    }
}

TEST(RcJudge, LengthsOfSends) {
    struct Case {
        Operation operation;
        std::size_t payload;
        std::uint64_t done;
        RequestVerdict verdict;
    };
    for (const Case& one : {
             Case{Operation::SendFirst, 256, 0, Execute},
             Case{Operation::SendFirst, 255, 0, InvalidRequest},
             Case{Operation::SendFirst, 257, 0, InvalidRequest},
             Case{Operation::SendMiddle, 256, 256, Execute},
             Case{Operation::SendMiddle, 252, 256, InvalidRequest},
             Case{Operation::SendLast, 1, 256, Execute},
             Case{Operation::SendLast, 256, 256, Execute},
             Case{Operation::SendLast, 0, 256, InvalidRequest},
             Case{Operation::SendLast, 257, 256, InvalidRequest},
             Case{Operation::SendOnly, 0, 0, Execute},
             Case{Operation::SendOnly, 256, 0, Execute},
             Case{Operation::SendOnly, 260, 0, InvalidRequest},
             Case{Operation::SendMiddle, 256, kMaxMessageBytes - 256, Execute},
             Case{Operation::SendMiddle, 256, kMaxMessageBytes, TooLong},
         }) {
        const InboundMessage message{MessageKind::Send, one.done, kMaxMessageBytes, 0, Rkey{}};
        EXPECT_EQ(judge_length(request(one.operation, one.payload), message, 256), one.verdict)
            << static_cast<int>(one.operation) << ' ' << one.payload;
    }
}

TEST(RcJudge, LengthsOfWritesAddUpToTheirReth) {
    struct Case {
        Operation operation;
        std::size_t payload;
        std::uint32_t stated;
        std::uint64_t done;
        RequestVerdict verdict;
    };
    for (const Case& one : {
             Case{Operation::WriteOnly, 0, 0, 0, Execute},
             Case{Operation::WriteOnly, 10, 10, 0, Execute},
             Case{Operation::WriteOnly, 10, 11, 0, InvalidRequest},
             Case{Operation::WriteOnly, 10, 9, 0, InvalidRequest},
             Case{Operation::WriteFirst, 256, 257, 0, Execute},
             Case{Operation::WriteFirst, 256, 256, 0, InvalidRequest},
             Case{Operation::WriteFirst, 256, 10, 0, InvalidRequest},
             Case{Operation::WriteFirst, 256, kMaxMessageBytes, 0, Execute},
             Case{Operation::WriteFirst, 256, kMaxMessageBytes + 1, 0, InvalidRequest},
             Case{Operation::WriteFirst, 256, 0xffffffffU, 0, InvalidRequest},
             Case{Operation::WriteMiddle, 256, 600, 256, Execute},
             Case{Operation::WriteMiddle, 256, 512, 256, InvalidRequest},
             Case{Operation::WriteLast, 88, 600, 512, Execute},
             Case{Operation::WriteLast, 87, 600, 512, InvalidRequest},
             Case{Operation::WriteLast, 89, 600, 512, InvalidRequest},
         }) {
        wire::Packet packet = request(one.operation, one.payload);
        InboundMessage message{MessageKind::Write, one.done, one.stated, 0, Rkey{}};
        if (packet.traits().headers.has<wire::Reth>()) {
            packet.set(wire::Reth{0, Rkey{}, one.stated});
            message = {};
        }
        EXPECT_EQ(judge_length(packet, message, 256), one.verdict)
            << static_cast<int>(one.operation) << ' ' << one.stated;
    }
    wire::Packet read = request(Operation::ReadRequest);
    read.set(wire::Reth{0, Rkey{}, kMaxMessageBytes});
    EXPECT_EQ(judge_length(read, {}, 256), Execute);
    read.set(wire::Reth{0, Rkey{}, kMaxMessageBytes + 1});
    EXPECT_EQ(judge_length(read, {}, 256), InvalidRequest);
}

TEST(RcJudge, ASendFitsItsReceiveRequestToTheByte) {
    const InboundMessage message{MessageKind::Send, 256, 300, 0, Rkey{}};
    EXPECT_EQ(judge_room(request(Operation::SendLast, 44), message, 300), Execute);
    EXPECT_EQ(judge_room(request(Operation::SendLast, 45), message, 300), TooLong);
    EXPECT_EQ(judge_room(request(Operation::SendOnly, 300), message, 300), Execute);
    EXPECT_EQ(judge_room(request(Operation::SendOnly, 301), message, 300), TooLong);
    EXPECT_EQ(judge_room(request(Operation::SendOnly, 0), {}, 0), Execute);
}

struct Memory {
    MemoryTable table{4, {7, 8}};
    Pd pd = table.create_pd();
    std::vector<std::uint64_t> words = std::vector<std::uint64_t>(16);
    Rkey key =
        table
            .register_region({pd,
                              {reinterpret_cast<std::uint8_t*>(words.data()), 128},
                              0x1000,
                              Rights{Right::LocalWrite} | Right::RemoteWrite | Right::RemoteRead | Right::RemoteAtomic})
            .value();
};

RequestVerdict memory_verdict(const wire::Packet& packet, const InboundMessage& message, const MemoryTable& memory,
                              const KeyUser& user) {
    std::uint8_t* place = nullptr;
    return judge_memory(packet, message, memory, user, place);
}

TEST(RcJudge, AtomicsAreAlignedAndInside) {
    Memory memory;
    struct Case {
        std::uint64_t address;
        bool own_key;
        RequestVerdict verdict;
    };
    for (const Operation operation : {Operation::CompareSwap, Operation::FetchAdd}) {
        for (const Case& one :
             {Case{0x1000, true, Execute}, Case{0x1078, true, Execute}, Case{0x1080, true, RemoteAccess},
              Case{0xff8, true, RemoteAccess}, Case{0x1004, true, InvalidRequest}, Case{0x1001, true, InvalidRequest},
              Case{0x1000, false, RemoteAccess}, Case{0xfffffffffffffff8U, true, RemoteAccess}}) {
            wire::Packet packet = request(operation);
            packet.set(wire::AtomicEth{one.address, Rkey{memory.key.value ^ (one.own_key ? 0U : 0x100U)}, 0, 0});
            EXPECT_EQ(memory_verdict(packet, {}, memory.table, {memory.pd, {}}), one.verdict) << one.address;
        }
    }
    // An address may be aligned while its memory is not.
    const Rkey odd = memory.table
                         .register_region({memory.pd,
                                           {reinterpret_cast<std::uint8_t*>(memory.words.data()) + 1, 64},
                                           0,
                                           Rights{Right::LocalWrite} | Right::RemoteAtomic})
                         .value();
    wire::Packet packet = request(Operation::FetchAdd);
    packet.set(wire::AtomicEth{8, odd, 0, 0});
    EXPECT_EQ(memory_verdict(packet, {}, memory.table, {memory.pd, {}}), InvalidRequest);
    // The reverse is possible, too.
    const Rkey shifted = memory.table
                             .register_region({memory.pd,
                                               {reinterpret_cast<std::uint8_t*>(memory.words.data()), 64},
                                               0x2001,
                                               Rights{Right::LocalWrite} | Right::RemoteAtomic})
                             .value();
    packet.set(wire::AtomicEth{0x2001, shifted, 0, 0});
    EXPECT_EQ(memory_verdict(packet, {}, memory.table, {memory.pd, {}}), InvalidRequest);
}

TEST(RcJudge, RemoteRangesAreInsideOrEmpty) {
    Memory memory;
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    struct Case {
        std::uint64_t address;
        std::uint32_t bytes;
        RequestVerdict verdict;
    };
    for (const Operation operation : {Operation::WriteFirst, Operation::WriteOnly, Operation::ReadRequest}) {
        for (const Case& one :
             {Case{0x1000, 128, Execute}, Case{0x1000, 129, RemoteAccess}, Case{0xfff, 1, RemoteAccess},
              Case{0x1080, 1, RemoteAccess}, Case{kMost, 2, RemoteAccess}, Case{kMost, 0, Execute},
              Case{0x1001, 0xffffffffU, RemoteAccess}}) {
            wire::Packet packet = request(operation);
            packet.set(wire::Reth{one.address, memory.key, one.bytes});
            EXPECT_EQ(memory_verdict(packet, {}, memory.table, {memory.pd, {}}), one.verdict)
                << one.address << ' ' << one.bytes;
            packet.set(wire::Reth{one.address, memory.key, one.bytes});
            const RequestVerdict elsewhere = one.bytes == 0 ? Execute : RemoteAccess;
            EXPECT_EQ(memory_verdict(packet, {}, memory.table, {Pd{77}, {}}), elsewhere);
        }
    }
}

TEST(RcJudge, APartOfAWriteHasItsPlace) {
    Memory memory;
    auto* const begin = reinterpret_cast<std::uint8_t*>(memory.words.data());
    std::uint8_t* place = nullptr;
    wire::Packet first = request(Operation::WriteFirst, 64);
    first.set(wire::Reth{0x1010, memory.key, 100});
    EXPECT_EQ(judge_memory(first, {}, memory.table, {memory.pd, {}}, place), Execute);
    EXPECT_EQ(place, begin + 0x10);
    const InboundMessage message{MessageKind::Write, 64, 100, 0x1010, memory.key};
    EXPECT_EQ(judge_memory(request(Operation::WriteLast, 36), message, memory.table, {memory.pd, {}}, place), Execute);
    EXPECT_EQ(place, begin + 0x10 + 64);
}

TEST(RcJudge, ARegionThatEndsInTheMidstOfAWriteIsNotWrittenAnyMore) {
    Memory memory;
    const InboundMessage message{MessageKind::Write, 64, 128, 0x1000, memory.key};
    EXPECT_EQ(memory_verdict(request(Operation::WriteLast, 64), message, memory.table, {memory.pd, {}}), Execute);
    memory.table.destroy_region(memory.key);
    EXPECT_EQ(memory_verdict(request(Operation::WriteLast, 64), message, memory.table, {memory.pd, {}}), RemoteAccess);
}

TEST(RcJudge, OnlyKeysThatMayBeAreInvalidated) {
    Memory memory;
    const Rkey open = memory.table.register_region({memory.pd, {}, 0, Right::RemoteInvalidate}).value();
    wire::Packet packet = request(Operation::SendOnlyInvalidate);
    packet.set(wire::Ieth{open});
    EXPECT_EQ(memory_verdict(packet, {}, memory.table, {memory.pd, {}}), Execute);
    packet.set(wire::Ieth{memory.key});
    EXPECT_EQ(memory_verdict(packet, {}, memory.table, {memory.pd, {}}), RemoteAccess);
    packet.set(wire::Ieth{Rkey{1}});
    EXPECT_EQ(memory_verdict(packet, {}, memory.table, {memory.pd, {}}), RemoteAccess);
}

TEST(RcJudge, AnswersAreCurrentBetweenTheOldestAndTheNewest) {
    struct Case {
        std::uint32_t psn, unacknowledged, sent;
        AnswerPsnVerdict verdict;
    };
    using enum AnswerPsnVerdict;
    for (const Case& one :
         {Case{5, 5, 6, Current}, Case{4, 5, 6, Stale}, Case{6, 5, 6, Unsent}, Case{5, 5, 5, Unsent},
          Case{0, 0xfffffe, 2, Current}, Case{2, 0xfffffe, 2, Unsent}, Case{0xfffffd, 0xfffffe, 2, Stale},
          Case{0x7ffff0, 0, 5, Unsent}, Case{0x800000, 0, 5, Stale}}) {
        EXPECT_EQ(judge_answer_psn(Psn{one.psn}, Psn{one.unacknowledged}, Psn{one.sent}), one.verdict) << one.psn;
    }
}

TEST(RcJudge, ReadResponsesHaveTheLengthThatIsLeft) {
    using enum wire::Place;
    struct Case {
        wire::Place place;
        std::size_t payload;
        std::uint64_t left;
        bool fits;
    };
    for (const Case& one :
         {Case{Only, 10, 10, true}, Case{Only, 0, 0, true}, Case{Last, 256, 256, true}, Case{First, 256, 257, true},
          Case{Middle, 256, 600, true}, Case{Only, 10, 11, false}, Case{Last, 12, 11, false},
          Case{Last, 256, 257, false}, Case{Middle, 256, 256, false}, Case{First, 255, 600, false}}) {
        EXPECT_EQ(has_read_length(one.place, one.payload, one.left, 256), one.fits) << one.payload;
    }
}

}  // namespace
}  // namespace cairn::roce::rc
