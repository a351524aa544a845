// An initiator and a target of an extended reliable connection, and the target's queues (annex A14). There is no
// recorded trace of another implementation. The tests use the specification's layout instead, through lib/wire's table
// and bytes written by hand.
#pragma once

#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {

using wire::Operation;

constexpr Srqn kFirst{0xabcdef};

inline QpAttributes xrc_attributes() {
    QpAttributes values = RcHost::usual_attributes();
    values.send_psn = Psn{0xfffffe};  // wraps around
    values.receive_psn = Psn{0xfffffe};
    return values;
}

inline void bring_up(QueuePair& qp, QpState last = QpState::Rts) {
    for (const QpState to : {QpState::Init, QpState::Rtr, QpState::Rts}) {
        const Transition step = find_transition(qp.state(), to, qp.kind()).value();
        ASSERT_EQ(qp.modify(to, step.required.with(step.optional), xrc_attributes()), std::nullopt);
        if (to == last) {
            return;
        }
    }
}

// The receiving process: memory of two protection domains, receive queues in two XRC domains.
struct XrcHost {
    struct Queue {
        explicit Queue(MemoryTable& memory, std::uint8_t* bytes) : pd(memory.create_pd()) {
            key = memory.register_region({pd, {bytes, kBytes}, kBase, kAllRights}).value();
        }
        ReceiveQueue receives{8, 2};
        CompletionQueue completions{64};
        Pd pd;
        Rkey key;
        Srqn srqn{};
    };
    static constexpr std::size_t kBytes = 8192;
    static constexpr std::uint64_t kBase = 0x10000;

    XrcHost() {
        for (Queue& queue : queues) {
            queue.srqn = xrc.add(&queue == &queues[2] ? other_domain : domain,
                                 {&queue.receives, &queue.completions, queue.pd, {}})
                             .value();
        }
    }
    std::uint8_t* at(std::size_t queue, std::uint64_t offset = 0) {
        return reinterpret_cast<std::uint8_t*>(words.data()) + queue * kBytes + offset;
    }
    PostVerdict post_receive(std::size_t queue, std::uint64_t wr_id, std::uint32_t bytes = 1000) {
        const std::array<Sge, 1> sges{Sge{kBase + 4096, bytes, Lkey{queues[queue].key.value}}};
        return queues[queue].receives.post({wr_id, sges});
    }
    std::unique_ptr<QueuePair> make_target(Qpn qpn = RcHost::kQpn) {
        QpContext context{memory, xrc.nobodys(), xrc.nobodys(), counters};
        context.held = &held;
        return std::make_unique<QueuePair>(qpn, Pd{}, QpCapacity{1, 1, 1, 0, 2, wire::Service::Xrc}, context,
                                           XrcTarget{&xrc, domain});
    }

    std::vector<std::uint64_t> words = std::vector<std::uint64_t>(3 * kBytes / 8);
    MemoryTable memory{64, {0x0123456789abcdefU, 0xfedcba9876543210U}};
    XrcTable xrc{Srqn{kFirst.value - 1}};
    Xrcd domain = xrc.create_domain();
    Xrcd other_domain = xrc.create_domain();
    std::array<Queue, 3> queues{Queue{memory, at(0)}, Queue{memory, at(1)}, Queue{memory, at(2)}};  // 2: in another
                                                                                                    // domain
    RcCounters counters;
    HeldPackets held{8};
};

// An initiator and a target. The test carries their packets by hand.
struct Xrc : testing::Test {
    static QpCapacity initiating() {
        QpCapacity capacity;
        capacity.service = wire::Service::Xrc;
        return capacity;
    }

    void SetUp() override {
        target = host.make_target();
        bring_up(*from.qp);
        bring_up(*target);
        std::memset(from.span().data(), 0x5a, from.span().size());
    }
    SendRequest request(WorkOpcode opcode, std::size_t queue, std::uint64_t offset = 0) {
        SendRequest made;
        made.opcode = opcode;
        made.wr_id = ++wr_id;
        made.remote_srqn = host.queues[queue].srqn;
        made.remote_address = XrcHost::kBase + offset;
        made.rkey = host.queues[queue].key;
        made.immediate = 0x01020304;
        return made;
    }
    void post(const SendRequest& made, std::uint32_t bytes) {
        ASSERT_EQ(from.post(made, RcHost::kBase, bytes), PostVerdict::Posted);
    }
    // Carries all of the initiator's packets, and the answers, until both are silent. Returns the initiator's packets.
    std::vector<Operation> run() { return run(from, *target, now); }
    static std::vector<Operation> run(RcHost& from, QueuePair& target, Instant now) {
        std::vector<Operation> sent;
        for (bool busy = true; busy;) {
            busy = false;
            for (const Datagram& datagram : from.poll_all(now)) {
                sent.push_back(packet_of(datagram).traits().operation);
                target.on_packet(packet_of(datagram), now);
                target.check_invariants();
                busy = true;
            }
            OutPacket out;
            while (target.poll_transmit({&out, 1}, now) != 0) {
                const Datagram datagram = datagram_of(out);
                EXPECT_EQ(packet_of(datagram).traits().service, wire::Service::Xrc);
                from.take(datagram, now);
                busy = true;
            }
        }
        return sent;
    }
    CompletionStatus sent_status() {
        const auto all = RcHost::drain(from.send_completions);
        EXPECT_EQ(all.size(), 1U);
        return all.empty() ? CompletionStatus::LocalQpOperation : all[0].status;
    }
    [[nodiscard]] Srqn srqn(std::size_t queue) const { return host.queues[queue].srqn; }
    std::vector<Completion> received(std::size_t queue) { return RcHost::drain(host.queues[queue].completions); }
    // Returns a request packet of the peer, this many PSNs after the first.
    wire::Packet packet(Operation operation, std::uint32_t at, Srqn srqn, std::size_t payload = 0) {
        wire::Packet made(wire::Service::Xrc, operation);
        made.set_payload(from.span().first(payload));
        wire::Bth bth;
        bth.psn = xrc_attributes().receive_psn.plus(at);
        bth.ack_request = true;
        made.set_bth(bth);
        made.set(wire::Xrceth{srqn});
        return made;
    }
    // Returns the target's answer to it.
    wire::Aeth::Syndrome answer(const wire::Packet& made) {
        target->on_packet(made, now);
        OutPacket out;
        EXPECT_EQ(target->poll_transmit({&out, 1}, now), 1U);
        const Datagram datagram = datagram_of(out);
        return packet_of(datagram).get<wire::Aeth>().syndrome;
    }

    static inline const wire::Aeth::Syndrome kAck{wire::AckCredits{31}};
    XrcHost host;
    RcHost from{initiating()};
    std::unique_ptr<QueuePair> target;
    Instant now{1000};
    std::uint64_t wr_id = 0;
};

}  // namespace cairn::roce::rc
