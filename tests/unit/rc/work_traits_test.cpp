// The table of the send queue's operations: it agrees with the packets of the wire, service by service.
#include "lib/roce/qp/work_traits.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "lib/wire/opcode.hpp"

namespace cairn::roce {
namespace {

constexpr std::array kServices{wire::Service::Rc, wire::Service::Uc, wire::Service::Ud, wire::Service::Xrc};

const wire::OpcodeTraits* packet_of(wire::Service service, wire::Operation operation) {
    return wire::find_opcode(wire::opcode_of(service, operation));
}

TEST(WorkTraits, EachServiceHasThePacketsOfItsOperations) {
    for (const WorkTraits& work : kWorkTraits) {
        for (const wire::Service service : kServices) {
            const bool has = work.services.has(service);
            EXPECT_EQ(has_work(service, work.opcode), has);
            if (work.end == WorkEnd::Local) {
                continue;
            }
            const wire::OpcodeTraits* const only = packet_of(service, work.packets.only);
            EXPECT_EQ(only != nullptr, has) << static_cast<int>(work.opcode) << ' ' << wire::name_of(service);
            if (only == nullptr) {
                continue;
            }
            EXPECT_EQ(only->role, wire::Role::Request);
            EXPECT_EQ(only->place, wire::Place::Only);
            EXPECT_EQ(only->payload == wire::Payload::Carried, work.data == WorkData::Sent);
        }
    }
}

TEST(WorkTraits, TheFourPacketsOfAMessageHaveTheirPlaces) {
    using wire::Place;
    for (const WorkTraits& work : kWorkTraits) {
        if (work.end != WorkEnd::Acknowledgement) {
            continue;
        }
        const auto place = [&work](bool first, bool last) {
            return packet_of(wire::Service::Rc, work.packets.at(first, last))->place;
        };
        EXPECT_EQ(place(true, false), Place::First);
        EXPECT_EQ(place(false, false), Place::Middle);
        EXPECT_EQ(place(false, true), Place::Last);
        EXPECT_EQ(place(true, true), Place::Only);
        const auto headers = [&work](bool first) {
            return packet_of(wire::Service::Rc, work.packets.at(first, true))->headers;
        };
        EXPECT_EQ(headers(false).has<wire::ImmDt>(), headers(true).has<wire::ImmDt>());
        EXPECT_EQ(headers(false).has<wire::Ieth>(), headers(true).has<wire::Ieth>());
    }
}

TEST(WorkTraits, NoTwoOperationsEndInTheSamePacket) {
    std::set<wire::Operation> seen;
    for (const WorkTraits& work : kWorkTraits) {
        if (work.end != WorkEnd::Local) {
            EXPECT_TRUE(seen.insert(work.packets.only).second);
            EXPECT_TRUE(!work.is_segmented() || work.end == WorkEnd::OwnAnswer ||
                        seen.insert(work.packets.last).second);
        }
    }
}

// (10.8.3, 10.6.5.1; annexes A14, A19)
TEST(WorkTraits, WhatIsAskedOfAnOperationFollowsFromItsRow) {
    using enum WorkOpcode;
    const auto of = [](bool (*asked)(WorkOpcode)) {
        std::set<WorkOpcode> found;
        for (const WorkTraits& work : kWorkTraits) {
            if (asked(work.opcode)) {
                found.insert(work.opcode);
            }
        }
        return found;
    };
    using Set = std::set<WorkOpcode>;
    EXPECT_EQ(of(is_local), (Set{BindWindow, LocalInvalidate}));
    EXPECT_EQ(of(is_read_or_atomic), (Set{RdmaRead, CompareSwap, FetchAdd}));
    EXPECT_EQ(of(is_atomic), (Set{CompareSwap, FetchAdd}));
    EXPECT_EQ(of(has_own_answer), (Set{RdmaRead, CompareSwap, FetchAdd, AtomicWrite, Flush}));
    EXPECT_EQ(of(is_unreliable),
              (Set{Send, SendWithImmediate, RdmaWrite, RdmaWriteWithImmediate, BindWindow, LocalInvalidate}));
    EXPECT_EQ(of([](WorkOpcode opcode) { return work_traits(opcode).is_word; }),
              (Set{CompareSwap, FetchAdd, AtomicWrite}));
    EXPECT_EQ(of([](WorkOpcode opcode) { return work_traits(opcode).is_segmented(); }),
              (Set{Send, SendWithImmediate, SendWithInvalidate, RdmaWrite, RdmaWriteWithImmediate, RdmaRead}));
}

TEST(WorkTraits, WhatIsNoOpcodeNoServiceHas) {
    for (unsigned code = static_cast<unsigned>(WorkOpcode::Count); code < 256; ++code) {
        for (const wire::Service service : kServices) {
            EXPECT_FALSE(has_work(service, static_cast<WorkOpcode>(code)));
        }
    }
}

}  // namespace
}  // namespace cairn::roce
