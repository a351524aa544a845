// The longest messages. Their memory is one small file, mapped again and again.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {
namespace {

using wire::Operation;

// kMaxMessageBytes of addresses, which show the same kBytes over and over.
class RepeatedMemory {
public:
    static constexpr std::size_t kBytes = std::size_t{1} << 21U;

    RepeatedMemory() {
        const int file = memfd_create("repeated", MFD_CLOEXEC);
        EXPECT_EQ(ftruncate(file, kBytes), 0);
        void* const all =
            mmap(nullptr, kMaxMessageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        EXPECT_NE(all, MAP_FAILED);
        base_ = static_cast<std::uint8_t*>(all);
        for (std::size_t at = 0; at < kMaxMessageBytes; at += kBytes) {
            EXPECT_EQ(mmap(base_ + at, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0), base_ + at);
        }
        close(file);
    }
    RepeatedMemory(const RepeatedMemory&) = delete;
    RepeatedMemory& operator=(const RepeatedMemory&) = delete;
    ~RepeatedMemory() { munmap(base_, kMaxMessageBytes); }

    [[nodiscard]] std::span<std::uint8_t> all() { return {base_, kMaxMessageBytes}; }
    [[nodiscard]] std::span<std::uint8_t> file() { return {base_, kBytes}; }

private:
    std::uint8_t* base_ = nullptr;
};

class RcLongMessages : public testing::Test {
protected:
    static constexpr std::uint64_t kRemote = 0x700000000000;
    static constexpr CompletionStatus kGood = CompletionStatus::Success;

    void start(std::uint32_t path_mtu_bytes) {
        mtu_ = path_mtu_bytes;
        QpAttributes values = RcHost::usual_attributes();
        values.path_mtu_bytes = path_mtu_bytes;
        values.receive_psn = values.send_psn;
        values.dest_qpn = RcHost::kQpn;
        host_.bring_to(QpState::Rts, values);
        first_ = values.send_psn;
        key_ = host_.memory.register_region({host_.pd, memory_.all(), kRemote, kAllRights}).value();
    }
    PostVerdict post(WorkOpcode opcode, std::uint32_t bytes, std::uint32_t more = 0) {
        const std::array<Sge, 2> sges{{{kRemote, bytes, Lkey{key_.value}}, {kRemote, more, Lkey{key_.value}}}};
        SendRequest request;
        request.opcode = opcode;
        request.remote_address = kRemote;
        request.rkey = key_;
        request.sges = std::span(sges).first(more == 0 ? 1 : 2);
        return host_.qp->post_send(request);
    }
    // Polls packets without looking at their payloads. Returns the number, and the last one's headers.
    std::uint32_t poll(Datagram& last) {
        std::array<OutPacket, 32> packets;
        const std::size_t count = host_.qp->poll_transmit(packets, now_);
        if (count != 0) {
            const auto headers = packets[count - 1].headers();
            last.assign(headers.begin(), headers.end());
            last.resize(packets[count - 1].bytes());
        }
        return static_cast<std::uint32_t>(count);
    }
    void take(Operation operation, Psn psn, std::span<const std::uint8_t> payload = {}) {
        wire::Packet packet(wire::Service::Rc, operation);
        wire::Bth bth;
        bth.psn = psn;
        bth.dest_qpn = RcHost::kQpn;
        packet.set_bth(bth);
        packet.set_payload(payload);
        if (operation == Operation::Acknowledge || operation == Operation::ReadResponseFirst ||
            operation == Operation::ReadResponseLast) {
            packet.set(wire::Aeth{wire::AckCredits{31}, Msn{}});
        }
        host_.qp->on_packet(packet, now_);
    }
    [[nodiscard]] Operation place_of(std::uint32_t at, std::uint32_t packets, Operation first, Operation middle,
                                     Operation last) const {
        return at == 0 ? first : at + 1 == packets ? last : middle;
    }

    RcHost host_{{2, 2, 2}};
    RepeatedMemory memory_;
    Rkey key_;
    Psn first_;
    std::uint32_t mtu_ = 0;
    Instant now_{1000};
};

TEST_F(RcLongMessages, AWriteTakesHalfOfAllPsnsAWindowAtATime) {
    start(256);
    EXPECT_EQ(post(WorkOpcode::RdmaWrite, kMaxMessageBytes, 1), PostVerdict::TooLong);
    ASSERT_EQ(post(WorkOpcode::RdmaWrite, kMaxMessageBytes), PostVerdict::Posted);
    constexpr std::uint32_t kPackets = 1U << 23U;
    std::uint32_t sent = 0;
    std::uint32_t before = 1;
    Datagram last;
    while (sent != before) {
        before = sent;
        while (const std::uint32_t count = poll(last)) {
            sent += count;
        }
        if (sent != before && sent < kPackets) {
            take(Operation::Acknowledge, first_.plus(sent - 1));
        }
    }
    EXPECT_EQ(sent, kPackets);
    const wire::Packet end = packet_of(last);
    EXPECT_EQ(end.traits().operation, Operation::WriteLast);
    EXPECT_EQ(end.bth().psn, first_.plus(kPackets - 1));
    EXPECT_TRUE(RcHost::drain(host_.send_completions).empty());
    take(Operation::Acknowledge, end.bth().psn);
    host_.qp->check_invariants();
    const std::vector<Completion> done = RcHost::drain(host_.send_completions);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, kGood);
}

TEST_F(RcLongMessages, ASendIsPlacedToTheLastByte) {
    start(4096);
    const std::array<Sge, 1> room{{{kRemote, kMaxMessageBytes, Lkey{key_.value}}}};
    ASSERT_EQ(host_.qp->post_receive({7, room}), PostVerdict::Posted);
    constexpr std::uint32_t kPackets = 1U << 19U;
    std::vector<std::uint8_t> payload(mtu_);
    for (std::uint32_t i = 0; i < kPackets; ++i) {
        payload[0] = static_cast<std::uint8_t>(i);
        take(place_of(i, kPackets, Operation::SendFirst, Operation::SendMiddle, Operation::SendLast), first_.plus(i),
             payload);
    }
    host_.qp->check_invariants();
    const std::vector<Completion> done = RcHost::drain(host_.receive_completions);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, kGood);
    EXPECT_EQ(done[0].bytes, kMaxMessageBytes);
    const std::uint32_t kept = RepeatedMemory::kBytes / mtu_;
    for (std::uint32_t i = 0; i < kept; ++i) {
        EXPECT_EQ(memory_.file()[std::size_t{i} * mtu_], static_cast<std::uint8_t>(i)) << i;
    }
}

TEST_F(RcLongMessages, AReadIsAnsweredAndTakenToTheLastByte) {
    start(512);
    ASSERT_EQ(post(WorkOpcode::RdmaRead, kMaxMessageBytes), PostVerdict::Posted);
    Datagram asked;
    ASSERT_EQ(poll(asked), 1U);
    const wire::Packet request = packet_of(asked);
    EXPECT_EQ(request.get<wire::Reth>().dma_bytes, kMaxMessageBytes);
    host_.qp->on_packet(request, now_);  // the queue pair is its own peer
    constexpr std::uint32_t kPackets = 1U << 22U;
    std::uint32_t answered = 0;
    Datagram last;
    while (const std::uint32_t count = poll(last)) {
        answered += count;
    }
    EXPECT_EQ(answered, kPackets);
    EXPECT_EQ(packet_of(last).traits().operation, Operation::ReadResponseLast);
    EXPECT_EQ(packet_of(last).bth().psn, first_.plus(kPackets - 1));
    const std::vector<std::uint8_t> payload(mtu_, 0x5a);
    for (std::uint32_t i = 0; i < kPackets; ++i) {
        take(place_of(i, kPackets, Operation::ReadResponseFirst, Operation::ReadResponseMiddle,
                      Operation::ReadResponseLast),
             first_.plus(i), payload);
    }
    host_.qp->check_invariants();
    const std::vector<Completion> done = RcHost::drain(host_.send_completions);
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, kGood);
    EXPECT_EQ(done[0].bytes, kMaxMessageBytes);
    const auto all = memory_.file();
    EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](std::uint8_t byte) { return byte == 0x5a; }));
}

// All PSNs of an answer are outstanding at once, in addition to a window of others.
TEST_F(RcLongMessages, AReadHasAtMostFourMillionPackets) {
    start(256);
    EXPECT_EQ(post(WorkOpcode::RdmaRead, 1U << 30U, 1), PostVerdict::TooLong);
    ASSERT_EQ(post(WorkOpcode::RdmaRead, 1U << 30U), PostVerdict::Posted);
    Datagram asked;
    EXPECT_EQ(poll(asked), 1U);
    ASSERT_EQ(post(WorkOpcode::RdmaWrite, 256), PostVerdict::Posted);
    EXPECT_EQ(poll(asked), 1U);
    EXPECT_EQ(packet_of(asked).bth().psn, first_.plus(1U << 22U));
    for (const std::uint32_t path_mtu : {512U, 1024U, 2048U, 4096U}) {
        EXPECT_EQ(max_read_bytes(path_mtu), kMaxMessageBytes);
    }
}

// The peer sends longer ones than Cairn does.
TEST_F(RcLongMessages, AResponderAnswersAReadOfHalfOfAllPsns) {
    start(256);
    wire::Packet request(wire::Service::Rc, Operation::ReadRequest);
    wire::Bth bth;
    bth.psn = first_;
    bth.dest_qpn = RcHost::kQpn;
    request.set_bth(bth);
    request.set(wire::Reth{kRemote, key_, kMaxMessageBytes});
    host_.qp->on_packet(request, now_);
    constexpr std::uint32_t kPackets = 1U << 23U;
    std::uint32_t answered = 0;
    Datagram last;
    while (const std::uint32_t count = poll(last)) {
        answered += count;
    }
    EXPECT_EQ(answered, kPackets);
    EXPECT_EQ(packet_of(last).bth().psn, first_.plus(kPackets - 1));
    // The peer lacks the last packet, and in the second round the first one.
    for (const std::uint32_t lacks : {kPackets - 1, 0U}) {
        bth.psn = first_.plus(lacks);
        request.set_bth(bth);
        request.set(wire::Reth{kRemote + std::uint64_t{lacks} * mtu_, key_, mtu_});
        host_.qp->on_packet(request, now_);
        EXPECT_EQ(poll(last), 1U);
        EXPECT_EQ(packet_of(last).traits().operation, Operation::ReadResponseOnly);
        EXPECT_EQ(packet_of(last).bth().psn, bth.psn);
        host_.qp->check_invariants();
    }
}

}  // namespace
}  // namespace cairn::roce::rc
