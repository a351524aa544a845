// A requester whose packets, answers and completions are named by their PSNs less the first.
#pragma once

#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {

using wire::NakCode;
using wire::Operation;
using Packets = std::vector<std::pair<Operation, std::uint32_t>>;  // operation, PSN less the first

struct RcRequester : testing::Test {
    std::unique_ptr<RcHost> host;
    Psn psn{0xfffffd};  // wraps around
    Instant now{1000};

    void SetUp() override { start({}); }

    void start(const QpCapacity& capacity, std::uint8_t retry_count = 7, std::uint8_t rnr_retry = 7) {
        host = std::make_unique<RcHost>(capacity);
        QpAttributes values = RcHost::usual_attributes();
        values.send_psn = psn;
        values.retry_count = retry_count;
        values.rnr_retry = rnr_retry;
        values.max_rd_atomic = 2;
        host->bring_to(QpState::Rts, values);
    }
    void post(WorkOpcode opcode, std::uint32_t bytes, std::uint64_t wr_id = 0, bool signalled = true,
              bool fence = false) {
        SendRequest request;
        request.opcode = opcode;
        request.wr_id = wr_id;
        request.signalled = signalled;
        request.fence = fence;
        request.remote_address = 0x9000;
        request.rkey = Rkey{5};
        ASSERT_EQ(host->post(request, RcHost::kBase, bytes), PostVerdict::Posted);
    }
    Packets sent() {
        Packets all;
        for (const Datagram& datagram : host->poll_all(now)) {
            const wire::Packet packet = packet_of(datagram);
            all.emplace_back(packet.traits().operation, (packet.bth().psn.value() - psn.value()) & Psn::kMask);
        }
        return all;
    }
    void answer(std::uint32_t at, const wire::Aeth::Syndrome& syndrome) {
        wire::Packet packet(wire::Service::Rc, Operation::Acknowledge);
        packet.set(wire::Aeth{syndrome, Msn{}});
        take(packet, at);
    }
    void acknowledge(std::uint32_t at) { answer(at, wire::AckCredits{31}); }
    void respond(Operation operation, std::uint32_t at, const std::vector<std::uint8_t>& payload) {
        wire::Packet packet(wire::Service::Rc, operation);
        packet.set_payload(payload);
        take(packet, at);
    }
    void take(wire::Packet packet, std::uint32_t at) {
        wire::Bth bth;
        bth.psn = psn.plus(at);
        packet.set_bth(bth);
        host->take(datagram_of(packet), now);
    }
    // Returns wr_ids and statuses of all completions.
    std::vector<std::pair<std::uint64_t, CompletionStatus>> completions() {
        std::vector<std::pair<std::uint64_t, CompletionStatus>> all;
        for (const Completion& one : RcHost::drain(host->send_completions)) {
            all.emplace_back(one.wr_id, one.status);
        }
        return all;
    }
    using Completions = std::vector<std::pair<std::uint64_t, CompletionStatus>>;
    static constexpr CompletionStatus kGood = CompletionStatus::Success;
    static constexpr CompletionStatus kFlushed = CompletionStatus::Flushed;

    // Lets time pass to the next deadline.
    void time_out() {
        now = host->qp->next_deadline();
        host->qp->on_timeout(now);
        host->qp->check_invariants();
    }
};

}  // namespace cairn::roce::rc
