// A ring of a few slots that refuses most packets, and payloads sent in place. A refused payload belongs to its sender
// again, whatever happens to it later.
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lib/port/datagram.hpp"
#include "lib/roce/engine.hpp"
#include "tests/eal/net_ring.hpp"

namespace cairn::pmd {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kMtuBytes = 4096;
constexpr std::uint32_t kSlots = 8;

class NetRingRefused : public NetRing {
protected:
    void SetUp() override {
        open(1, kSlots);
        here = sides[0][0].get();
        path = here->port.open_path({here->port.local_address(), address("10.5.0.2"), 0xc000, 0}, now);
        resolve();
    }
    static net::IpAddress address(const char* text) { return net::IpAddress::parse(text).value(); }
    void resolve() { path->resolve(devices[0]->mac(), devices[1]->mac()); }

    // Sends a packet with `mark` all over its headers, and the tail after them.
    void send(std::uint8_t mark, std::span<const std::uint8_t> tail) {
        const port::PacketRef buffer = here->sender.take();
        ASSERT_NE(buffer.cookie, nullptr);
        std::fill_n(buffer.data, kHeaderBytes, mark);
        here->sender.send(buffer, path, kHeaderBytes + port::kIcrcBytes, tail, now);
    }
    // Sends as many packets as the ring takes.
    void fill_ring() {
        while (here->sender.queued() == 0) {
            send(kFiller, {});
            here->sender.flush(now);
        }
    }
    // Empties the ring. Returns the datagrams without their ICRC.
    std::vector<Bytes> drain() {
        std::vector<Bytes> all;
        std::array<rte_mbuf*, kSlots> frames;
        while (const std::uint16_t got = rte_eth_rx_burst(devices[1]->port_id(), 0, frames.data(), kSlots)) {
            for (rte_mbuf* const frame : std::span(frames).first(got)) {
                if (const Bytes datagram = datagram_in(*frame); !datagram.empty()) {
                    all.push_back(datagram);
                }
                rte_pktmbuf_free(frame);
            }
        }
        return all;
    }
    // Returns the datagram in a frame. Empty: the frame is a question for a neighbour.
    static Bytes datagram_in(const rte_mbuf& frame) {
        Bytes whole;
        unsigned segments = 0;
        for (const rte_mbuf* each = &frame; each != nullptr; each = each->next) {
            const auto* const data = rte_pktmbuf_mtod(each, const std::uint8_t*);
            whole.insert(whole.end(), data, data + each->data_len);
            ++segments;
        }
        EXPECT_EQ(frame.nb_segs, segments);
        EXPECT_EQ(frame.pkt_len, whole.size());
        const port::ParsedFrame parsed = port::parse_frame(whole);
        if (!parsed.ok()) {
            EXPECT_EQ(parsed.reason(), port::FrameVerdict::NotRoce);
            return {};
        }
        EXPECT_EQ(port::icrc_of_frame(parsed.value()), port::carried_icrc(parsed.value()));
        return {whole.begin() + port::Path::kLowerBytesV4, whole.end() - port::kIcrcBytes};
    }
    // Lets all waiting packets leave. Returns the payloads after this many bytes of headers.
    std::vector<Bytes> drain_all() {
        std::vector<Bytes> all;
        for (int turns = 0; turns < 100; ++turns) {
            for (const Bytes& datagram : drain()) {
                if (datagram[0] != kFiller) {
                    all.push_back(datagram);
                }
            }
            here->sender.flush(now);
        }
        EXPECT_EQ(here->sender.queued(), 0U);
        return all;
    }
    static Bytes content(std::size_t bytes) {
        Bytes made(bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
            made[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8U));
        }
        return made;
    }

    static constexpr std::size_t kHeaderBytes = 36;
    static constexpr std::uint8_t kFiller = 0xee;
    Worker* here = nullptr;
    port::Path* path = nullptr;
};

roce::QpAttributes attributes() {
    roce::QpAttributes values;
    values.path_mtu_bytes = kMtuBytes;
    values.dest_qpn = Qpn{0x1234};
    values.ack_timeout = 14;
    return values;
}

TEST_F(NetRingRefused, WritesOfADestroyedRegionThatWaitLeaveWithItsOldBytes) {
    constexpr std::uint32_t kPackets = 20;
    const HeapBlock block = HeapBlock::allocate(kPackets * kMtuBytes, "a region").value();
    ASSERT_TRUE(here->port.can_send_from(block.bytes()));
    const Bytes old = content(block.bytes().size());
    std::copy(old.begin(), old.end(), block.bytes().begin());
    {
        roce::CompletionQueue completions(64);
        roce::Engine engine(here->worker->datagrams(), here->worker->sender(), {}, now);
        const roce::Pd pd = engine.create_pd();
        const Rkey key = engine.register_region({pd, block.bytes(), 0x10000, roce::Right::LocalWrite}).value();
        roce::Engine::RcQp& qp = *engine.create_rc(pd, {}, {completions, completions, nullptr}).value();
        for (const roce::QpState to : {roce::QpState::Init, roce::QpState::Rtr, roce::QpState::Rts}) {
            const auto step = roce::find_transition(qp.pair.state(), to, qp.pair.service());
            ASSERT_EQ(engine.modify(qp, to, step->required, attributes(), path), std::nullopt);
        }
        const std::array<roce::Sge, 1> sges{{{0x10000, kPackets * kMtuBytes, Lkey{key.value}}}};
        roce::SendRequest write;
        write.opcode = roce::WorkOpcode::RdmaWrite;
        write.sges = sges;
        ASSERT_EQ(qp.pair.post_send(write), roce::PostVerdict::Posted);
        fill_ring();
        engine.wake(qp);
        engine.transmit(now);
        here->sender.flush(now);
        ASSERT_EQ(here->sender.queued(), 1 + kPackets);
        ASSERT_EQ(engine.counters().of(roce::EngineCounter::PayloadsInPlace), kPackets);
        ASSERT_TRUE(engine.destroy_region(key));
        EXPECT_EQ(here->port.counters().of(EthdevCounter::TailsKept), 0U);
        std::ranges::fill(block.bytes(), std::uint8_t{0xdd});
        const std::vector<Bytes> got = drain_all();
        ASSERT_EQ(got.size(), kPackets);
        for (std::size_t i = 0; i < got.size(); ++i) {
            ASSERT_GT(got[i].size(), kMtuBytes);
            EXPECT_TRUE(std::equal(got[i].end() - kMtuBytes, got[i].end(),
                                   old.begin() + static_cast<std::ptrdiff_t>(kMtuBytes * i)));
        }
        engine.destroy_rc(qp);
    }
    EXPECT_TRUE(drain().empty());
}

TEST_F(NetRingRefused, ATailIsAttachedAnewEachTimeThatItIsOffered) {
    HeapBlock block = HeapBlock::allocate(2048, "a tail").value();
    const Bytes old = content(2048);
    std::copy(old.begin(), old.end(), block.bytes().begin());
    fill_ring();
    send(1, block.bytes());
    send(2, block.bytes().first(1028));
    const std::uint32_t buffers = devices[0]->buffers_in_use();
    for (int times = 0; times < 3; ++times) {
        here->sender.flush(now);
        EXPECT_EQ(devices[0]->buffers_in_use(), buffers);
    }
    const std::vector<Bytes> got = drain_all();
    ASSERT_EQ(got.size(), 2U);
    EXPECT_TRUE(std::equal(got[0].begin() + kHeaderBytes, got[0].end(), old.begin(), old.end()));
    EXPECT_TRUE(std::equal(got[1].begin() + kHeaderBytes, got[1].end(), old.begin(), old.begin() + 1028));
    EXPECT_EQ(here->port.counters().of(EthdevCounter::TailCopied), 0U);
}

TEST_F(NetRingRefused, ARefusedPacketWhoseNeighbourIsForgottenWaitsForItWhole) {
    HeapBlock block = HeapBlock::allocate(2048, "a tail").value();
    const Bytes old = content(2048);
    std::copy(old.begin(), old.end(), block.bytes().begin());
    fill_ring();
    here->sender.flush(now);
    drain_all();
    for (int slots = 0; slots < 7; ++slots) {  // all of them, and none waits
        send(kFiller, {});
    }
    here->sender.flush(now);
    send(1, block.bytes());
    here->sender.flush(now);
    ASSERT_EQ(here->sender.queued(), 1U);
    path->unresolve();
    here->sender.flush(now);
    ASSERT_EQ(here->sender.queued(), 0U);
    std::ranges::fill(block.bytes(), std::uint8_t{0xdd});
    drain();
    resolve();
    now = now + milliseconds(1);
    here->port.on_timeout(now + seconds(2));
    const std::vector<Bytes> got = drain_all();
    ASSERT_EQ(got.size(), 1U);
    EXPECT_TRUE(std::equal(got[0].begin() + kHeaderBytes, got[0].end(), old.begin(), old.end()));
}

// The device owns the payloads that it has. A caller does not wait for them for ever, nor a second time.
TEST_F(NetRingRefused, SettlingEndsAlthoughTheDeviceKeepsATail) {
    HeapBlock block = HeapBlock::allocate(2048, "a tail").value();
    send(1, block.bytes());
    here->sender.flush(now);
    ASSERT_EQ(here->sender.queued(), 0U);
    constexpr std::uint64_t kTimes = 10'000;  // in terms of the longest wait: ten seconds
    for (std::uint64_t i = 0; i < kTimes; ++i) {
        here->sender.settle_tails(block.bytes());
    }
    EXPECT_EQ(here->port.counters().of(EthdevCounter::TailsKept), kTimes);
    send(2, block.bytes());
    here->sender.flush(now);
    EXPECT_EQ(here->port.counters().of(EthdevCounter::TailCopied), 1U);
    EXPECT_EQ(drain().size(), 2U);
    here->sender.settle_tails(block.bytes());
    EXPECT_EQ(here->port.counters().of(EthdevCounter::TailsKept), kTimes);
    send(3, block.bytes());
    here->sender.flush(now);
    EXPECT_EQ(here->port.counters().of(EthdevCounter::TailCopied), 1U);
    EXPECT_EQ(drain().size(), 1U);
}

}  // namespace
}  // namespace cairn::pmd
