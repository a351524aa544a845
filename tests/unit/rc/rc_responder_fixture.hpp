// A responder. Tests make its requests and name its answers.
#pragma once

#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {

using wire::NakCode;
using wire::Operation;

struct RcResponder : testing::Test {
    RcHost host;
    Psn psn{0xfffff0};
    std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(256, 0x5a);

    void SetUp() override { host.bring_to(QpState::Rtr); }

    wire::Packet make(Operation operation, Psn at, std::size_t payload = 0, bool ack = true) {
        wire::Packet packet(wire::Service::Rc, operation);
        packet.set_payload(std::span(bytes).first(payload));
        wire::Bth bth;
        bth.psn = at;
        bth.dest_qpn = RcHost::kQpn;
        bth.ack_request = ack;
        packet.set_bth(bth);
        return packet;
    }
    wire::Packet write(Operation operation, Psn at, std::uint64_t address, std::uint32_t total, std::size_t payload) {
        wire::Packet packet = make(operation, at, payload);
        packet.set(wire::Reth{address, host.key, total});
        return packet;
    }
    wire::Packet read(Psn at, std::uint64_t address, std::uint32_t total) {
        return write(Operation::ReadRequest, at, address, total, 0);
    }
    wire::Packet add(Psn at, std::uint64_t amount) {
        wire::Packet packet = make(Operation::FetchAdd, at);
        packet.set(wire::AtomicEth{RcHost::kBase, host.key, amount, 0});
        return packet;
    }
    void send(const wire::Packet& packet) { host.take(datagram_of(packet)); }

    // Expects a single answer: an acknowledgement or NAK.
    void expect_answer(Psn at, const wire::Aeth::Syndrome& syndrome, std::uint32_t msn) {
        const std::vector<Datagram> all = host.poll_all();
        ASSERT_EQ(all.size(), 1U);
        const wire::Packet packet = packet_of(all[0]);
        ASSERT_EQ(packet.traits().operation, Operation::Acknowledge);
        EXPECT_EQ(packet.bth().psn, at);
        EXPECT_TRUE(packet.get<wire::Aeth>().syndrome == syndrome);
        EXPECT_EQ(packet.get<wire::Aeth>().msn.value, msn);
    }
    void expect_ack(Psn at, std::uint32_t msn) { expect_answer(at, wire::AckCredits{31}, msn); }
    // Returns opcode and PSN of all answers.
    std::vector<std::pair<Operation, std::uint32_t>> answers() {
        std::vector<std::pair<Operation, std::uint32_t>> all;
        for (const Datagram& datagram : host.poll_all()) {
            const wire::Packet packet = packet_of(datagram);
            all.emplace_back(packet.traits().operation, packet.bth().psn.value());
        }
        return all;
    }
    using Answers = std::vector<std::pair<Operation, std::uint32_t>>;
};

}  // namespace cairn::roce::rc
