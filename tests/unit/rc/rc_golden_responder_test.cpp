// The golden traces of two Linux Soft-RoCE hosts. Our responder gives the recorded answers to each recorded request.
// Our requester makes the recorded requests, also with lost packets. Before comparing, rkeys, QPNs and credits are made
// equal; addresses, IP headers and ICRC are below this layer. A run of ACKs counts as its last one.
//
// Departs: rxe refuses a SEND longer than the receive request as remote operational (0x63); the specification's code,
// and ours, is invalid request (0x61).
// Departs: rxe sends MigReq 0; a queue pair without path migration is migrated (1). An attribute, set to 0 here.
#include <gtest/gtest.h>

#include "tests/unit/rc/rc_capture.hpp"

namespace cairn::roce::rc {
namespace {

// An answer without the fields that differ between hosts, as text that a failing test can show.
struct Answer {
    std::uint8_t opcode = 0;
    Psn psn{};
    std::optional<wire::Aeth> aeth;
    std::vector<std::uint8_t> payload;
    std::uint64_t original = 0;

    friend bool operator==(const Answer&, const Answer&) = default;
    [[nodiscard]] bool is_ack() const {
        return opcode == 0x11 && std::holds_alternative<wire::AckCredits>(aeth->syndrome);
    }
};
std::ostream& operator<<(std::ostream& out, const Answer& answer) {
    out << "opcode " << static_cast<int>(answer.opcode) << " psn " << answer.psn.value();
    if (answer.aeth) {
        out << " kind " << answer.aeth->syndrome.index() << " msn " << answer.aeth->msn.value;
    }
    return out << " bytes " << answer.payload.size();
}

Answer answer_of(const wire::Packet& packet) {
    Answer answer{packet.bth().opcode, packet.bth().psn, {}, {packet.payload().begin(), packet.payload().end()}};
    if (packet.traits().headers.has<wire::Aeth>()) {
        answer.aeth = packet.get<wire::Aeth>();
        if (std::holds_alternative<wire::AckCredits>(answer.aeth->syndrome)) {
            answer.aeth->syndrome = wire::AckCredits{31};
        }
        if (!test::traces_are_golden()) {  // a capture may begin after the first messages
            answer.aeth->msn = {};
        }
    }
    if (packet.traits().headers.has<wire::AtomicAckEth>()) {
        answer.original = packet.get<wire::AtomicAckEth>().original;
    }
    return answer;
}

// Returns a recorded answer with the departures above corrected.
Answer recorded_answer_of(const wire::Packet& packet, const std::string& trace) {
    Answer answer = answer_of(packet);
    if (trace == "rc_nak_long_send") {
        EXPECT_TRUE(answer.aeth->syndrome == wire::Aeth::Syndrome(wire::NakCode::RemoteOperational));
        answer.aeth->syndrome = wire::NakCode::InvalidRequest;
    }
    return answer;
}

void append(std::vector<Answer>& answers, Answer answer) {
    if (!answers.empty() && answers.back().is_ack() && answer.is_ack()) {
        answers.back() = std::move(answer);
    } else {
        answers.push_back(std::move(answer));
    }
}

// The server's side: memory at the recorded addresses, with the contents that the recorded answers show.
class ResponderReplay {
public:
    explicit ResponderReplay(const Conversation& conversation) : conversation_(conversation) {
        host_.bring_to(QpState::Rtr, recorded_attributes(conversation));
        // A page below the lowest remote address, so that all addresses of a trace are inside.
        std::uint64_t lowest = ~std::uint64_t{0};
        for (const Recorded& recorded : conversation.packets) {
            lowest = std::min(lowest, address_of(recorded.packet()).value_or(lowest));
        }
        base_ = lowest & ~std::uint64_t{4095};
        if (lowest != ~std::uint64_t{0}) {
            key_ = host_.memory.register_region({host_.pd, host_.span(), base_, kAllRights}).value();
        }
        if (conversation.name != "rc_nak_rnr") {
            post_receives();
        }
        collect_answers();
    }

    std::vector<Answer> run() {
        std::vector<Answer> answers;
        std::size_t naks = 0;
        for (const Recorded& recorded : conversation_.packets) {
            if (!recorded.is_request) {
                naks += recorded.packet().traits().operation == wire::Operation::Acknowledge ? 1U : 0U;
                continue;
            }
            if (conversation_.name == "rc_nak_rnr" && naks == 4) {
                post_receives();
            }
            if (recorded.lost) {
                continue;
            }
            wire::Packet packet = recorded.packet();
            set_memory_for(packet);
            own_keys(packet);
            host_.take(datagram_of(packet));
            for (const Datagram& answer : host_.poll_all()) {
                EXPECT_EQ(packet_of(answer).bth().dest_qpn, recorded.packet().bth().dest_qpn);
                append(answers, answer_of(packet_of(answer)));
            }
        }
        return answers;
    }
    RcHost& host() { return host_; }

private:
    static std::optional<std::uint64_t> address_of(const wire::Packet& packet) {
        if (packet.traits().headers.has<wire::Reth>()) {
            return packet.get<wire::Reth>().address;
        }
        if (packet.traits().headers.has<wire::AtomicEth>()) {
            return packet.get<wire::AtomicEth>().address;
        }
        return std::nullopt;
    }

    void post_receives() {
        const std::uint32_t bytes = conversation_.name == "rc_nak_long_send" ? 100 : RcHost::kBytes / 2;
        for (std::uint64_t i = 0; i < 16; ++i) {
            EXPECT_EQ(host_.post_receive(i, RcHost::kBase + RcHost::kBytes / 2, bytes), PostVerdict::Posted);
        }
    }

    // Collects the memory's contents at the time of each request: READ responses, by PSN, and the first atomic's
    // original.
    void collect_answers() {
        for (const Recorded& recorded : conversation_.packets) {
            if (!recorded.is_request && recorded.packet().traits().role == wire::Role::Response) {
                answers_.emplace(recorded.packet().bth().psn.value(), recorded.packet());
            }
        }
    }
    void set_memory_for(const wire::Packet& request) {
        auto answer = answers_.find(request.bth().psn.value());
        if (answer == answers_.end()) {
            return;
        }
        std::uint8_t* at = host_.span().data() + (*address_of(request) - base_);
        if (request.traits().headers.has<wire::AtomicEth>()) {
            const std::uint64_t original = answer->second.get<wire::AtomicAckEth>().original;
            if (!std::exchange(atomics_begun_, true)) {
                std::memcpy(at, &original, sizeof(original));
            }
            return;
        }
        for (bool more = true; more && answer != answers_.end(); ++answer) {
            at = std::copy(answer->second.payload().begin(), answer->second.payload().end(), at);
            more = !answer->second.traits().ends_message();
        }
    }

    void own_keys(wire::Packet& packet) {
        const bool wrong = starts_with(conversation_.name, "rc_nak_rkey");
        if (packet.traits().headers.has<wire::Reth>() && !wrong) {
            wire::Reth reth = packet.get<wire::Reth>();
            reth.rkey = key_;
            packet.set(reth);
        }
        if (packet.traits().headers.has<wire::AtomicEth>() && !wrong) {
            wire::AtomicEth atomic = packet.get<wire::AtomicEth>();
            atomic.rkey = key_;
            packet.set(atomic);
        }
        if (packet.traits().headers.has<wire::Ieth>()) {
            const Rkey window =
                host_.memory.register_region({host_.pd, host_.span(), 0, Right::RemoteInvalidate}).value();
            packet.set(wire::Ieth{window});
        }
    }

    const Conversation& conversation_;
    RcHost host_;
    std::map<std::uint32_t, wire::Packet> answers_;
    bool atomics_begun_ = false;
    std::uint64_t base_ = 0;
    Rkey key_{};
};

TEST(RcGolden, EveryRecordedRequestGetsTheRecordedAnswers) {
    for (const Conversation& conversation : replayed()) {
        SCOPED_TRACE(conversation.name);
        std::vector<Answer> recorded;
        for (const Recorded& one : conversation.packets) {
            if (!one.is_request) {
                append(recorded, recorded_answer_of(one.packet(), conversation.name));
            }
        }
        ResponderReplay replay(conversation);
        EXPECT_EQ(replay.run(), recorded);
        EXPECT_EQ(replay.host().qp->state() == QpState::Err,
                  starts_with(conversation.name, "rc_nak") && conversation.name != "rc_nak_rnr");
    }
}

// The data of WRITEs, SENDs and immediates arrive at their place.
TEST(RcGolden, TheReplayedResponderCompletesWhatCameIn) {
    std::size_t received = 0;
    for (const Conversation& conversation : replayed()) {
        SCOPED_TRACE(conversation.name);
        ResponderReplay replay(conversation);
        (void)replay.run();
        std::size_t ends = 0;
        std::uint32_t newest = 0;
        bool any = false;
        for (const Recorded& one : conversation.packets) {
            const wire::Packet packet = one.packet();
            const auto& opcode = packet.traits();
            const bool takes =
                one.is_request && opcode.ends_message() && !one.lost &&
                (request_traits(opcode.operation).kind == MessageKind::Send || opcode.headers.has<wire::ImmDt>());
            ends += takes && (!any || packet.bth().psn.since(Psn{newest}) > 0) ? 1U : 0U;
            any = any || takes;
            newest = takes ? packet.bth().psn.value() : newest;
        }
        const std::vector<Completion> got = RcHost::drain(replay.host().receive_completions);
        const auto good = static_cast<std::size_t>(std::count_if(
            got.begin(), got.end(), [](const Completion& one) { return one.status == CompletionStatus::Success; }));
        EXPECT_EQ(good, conversation.name == "rc_nak_long_send" ? 0 : ends);
        received += good;
    }
    EXPECT_TRUE(received > 60 || !test::traces_are_golden()) << received;
}

}  // namespace
}  // namespace cairn::roce::rc
