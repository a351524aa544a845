// Requests at the edges of a region between two inaccessible pages. Requests inside are executed, and requests that
// reach one byte beyond are refused. No byte beyond is ever read or written.
#include <gtest/gtest.h>

#include "tests/support/guarded_pages.hpp"
#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {
namespace {

using wire::Operation;
using enum wire::Operation;

constexpr std::uint64_t kBase = 0x7000'0000'0000;

struct RcGuard : testing::Test {
    test::GuardedPages pages{2};
    std::size_t bytes = pages.span().size();
    std::vector<std::uint8_t> payload = std::vector<std::uint8_t>(4096, 0x5a);

    // Returns whether a request of this length at this distance from the region's begin is executed.
    bool executes(Operation operation, std::int64_t at, std::uint32_t length, bool by_window) {
        RcHost host;
        const Rights rights = kAllRights | Right::BindWindow | Right::FlushGlobal;
        Rkey key = host.memory.register_region({host.pd, pages.span(), kBase, rights}).value();
        QpAttributes values = RcHost::usual_attributes();
        values.access = kAllRemote | Right::FlushGlobal;
        values.path_mtu_bytes = 4096;
        host.bring_to(QpState::Rts, values);
        if (by_window) {
            const Lkey region{key.value};
            key = host.memory.create_window(host.pd, WindowType::Type2B).value();
            EXPECT_EQ(host.memory.bind_window({key, region, kBase, bytes, kAllRemote | Right::FlushGlobal, false},
                                              {host.pd, RcHost::kQpn}),
                      std::nullopt);
        }
        wire::Packet packet(wire::Service::Rc, operation);
        const std::uint64_t address = kBase + static_cast<std::uint64_t>(at);
        if (packet.traits().headers.has<wire::Reth>()) {
            packet.set(wire::Reth{address, key, length});
        } else {
            packet.set(wire::AtomicEth{address, key, 1, 2});
        }
        if (packet.traits().headers.has<wire::Feth>()) {
            packet.set(wire::Feth{wire::Feth::kGlobal, wire::Feth::kRange});
        }
        if (packet.traits().payload == wire::Payload::Carried) {
            packet.set_payload(std::span(payload).first(std::min<std::size_t>(length, 4096)));
        }
        wire::Bth bth;
        bth.psn = values.receive_psn;
        packet.set_bth(bth);
        host.take(packet);
        (void)host.poll_all();  // READs are read now
        const bool executed = host.qp->state() == QpState::Rts;
        EXPECT_EQ(host.qp->poll_event().has_value(), !executed);
        return executed;
    }
};

TEST_F(RcGuard, NothingReachesBeyondEitherEnd) {
    const auto end = static_cast<std::int64_t>(bytes);
    for (const bool by_window : {false, true}) {
        for (const Operation operation : {WriteOnly, ReadRequest, Flush}) {
            for (const std::uint32_t length : {1U, 7U, 8U, 63U, 64U, 65U, 255U, 1000U, 4096U}) {
                const std::int64_t last = end - length;
                for (const std::int64_t at : {std::int64_t{-1}, std::int64_t{0}, last - 1, last, last + 1, end,
                                              -static_cast<std::int64_t>(length)}) {
                    EXPECT_EQ(executes(operation, at, length, by_window), at >= 0 && at <= last)
                        << static_cast<int>(operation) << ' ' << at << ' ' << length;
                }
            }
        }
        for (const Operation operation : {CompareSwap, FetchAdd, AtomicWrite}) {
            for (const std::int64_t at : {std::int64_t{-8}, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, end - 8,
                                          end - 7, end - 1, end}) {
                EXPECT_EQ(executes(operation, at, 8, by_window), at >= 0 && at <= end - 8 && at % 8 == 0)
                    << static_cast<int>(operation) << ' ' << at;
            }
        }
    }
}

// Messages of several packets may end at the region's end and not beyond, wherever they begin.
TEST_F(RcGuard, LongWritesAndReadsStopAtTheEnd) {
    RcHost host;
    const Rkey key = host.memory.register_region({host.pd, pages.span(), kBase, kAllRights}).value();
    host.bring_to(QpState::Rts);  // path MTU 256
    Psn psn = RcHost::usual_attributes().receive_psn;
    const auto take = [&](Operation operation, std::size_t length, const wire::Reth& reth) {
        wire::Packet packet(wire::Service::Rc, operation);
        packet.set_payload(std::span(payload).first(length));
        if (packet.traits().headers.has<wire::Reth>()) {
            packet.set(reth);
        }
        wire::Bth bth;
        bth.psn = psn;
        packet.set_bth(bth);
        host.take(packet);
        psn = psn.next();
    };
    const wire::Reth reth{kBase + bytes - 600, key, 600};
    take(WriteFirst, 256, reth);
    take(WriteMiddle, 256, {});
    take(WriteLast, 88, {});
    EXPECT_EQ(pages.span()[bytes - 1], 0x5a);
    EXPECT_EQ(pages.span()[bytes - 601], 0);
    take(ReadRequest, 0, reth);
    EXPECT_EQ(host.poll_all().size(), 3U);
    EXPECT_EQ(host.qp->state(), QpState::Rts);
    psn = psn.plus(2);
    take(WriteFirst, 256, {kBase + bytes - 600, key, 601});
    EXPECT_EQ(host.qp->state(), QpState::Err);
}

}  // namespace
}  // namespace cairn::roce::rc
