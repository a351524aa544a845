// The golden traces of two Linux Soft-RoCE hosts: each recorded request gets the recorded answers from our responder,
// and our requester makes the recorded requests, lost packets and all. Set equal before comparing: rkeys, QPNs,
// credits; addresses, IP headers and ICRC are below this layer. Runs of ACKs count as the last of them.
//
// Departs: rxe refuses a SEND longer than the receive request as remote operational (0x63); the specification's code,
// and ours, is invalid request (0x61).
// Departs: rxe sends MigReq 0; a queue pair without path migration is migrated (1). An attribute, set to 0 here.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/unit/rc/rc_trace.hpp"

namespace cairn::roce::rc {
namespace {

// An answer less what differs between hosts, as text that a failing test can show.
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

Answer answer_of(const wire::Packet& packet, const std::string& trace) {
    Answer answer{packet.bth().opcode, packet.bth().psn, {}, {packet.payload().begin(), packet.payload().end()}};
    if (packet.traits().headers.has<wire::Aeth>()) {
        answer.aeth = packet.get<wire::Aeth>();
        if (std::holds_alternative<wire::AckCredits>(answer.aeth->syndrome)) {
            answer.aeth->syndrome = wire::AckCredits{31};
        }
        if (trace == "rc_nak_long_send" &&
            answer.aeth->syndrome == wire::Aeth::Syndrome(wire::NakCode::RemoteOperational)) {
            answer.aeth->syndrome = wire::NakCode::InvalidRequest;  // the departure above
        }
    }
    if (packet.traits().headers.has<wire::AtomicAckEth>()) {
        answer.original = packet.get<wire::AtomicAckEth>().original;
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

QpAttributes recorded_attributes(const Conversation& conversation) {
    QpAttributes values = RcHost::usual_attributes();
    const wire::Bth bth = conversation.packets.front().packet().bth();
    values.path_mtu_bytes = path_mtu_of(conversation);
    values.dest_qpn = bth.dest_qpn;
    values.receive_psn = bth.psn;
    values.send_psn = bth.psn;
    values.min_rnr_timer = wire::RnrTimer{26};
    values.ack_timeout = 17;
    values.migrated = false;
    values.access = starts_with(conversation.name, "rc_nak_noaccess") ? Rights{} : kAllRemote;
    return values;
}

// The server's side: memory under the recorded addresses, with what the recorded answers say was there.
class ResponderReplay {
public:
    explicit ResponderReplay(const Conversation& conversation) : conversation_(conversation) {
        host_.bring_to(QpState::Rtr, recorded_attributes(conversation));
        // A page below the lowest remote address, so that all of a trace's are in.
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
                append(answers, answer_of(packet_of(answer), conversation_.name));
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

    // READ responses, by PSN, and the first atomic's original tell the memory's contents when the request comes.
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
    for (const Conversation& conversation : conversations()) {
        SCOPED_TRACE(conversation.name);
        std::vector<Answer> recorded;
        for (const Recorded& one : conversation.packets) {
            if (!one.is_request) {
                append(recorded, answer_of(one.packet(), conversation.name));
            }
        }
        ResponderReplay replay(conversation);
        EXPECT_EQ(replay.run(), recorded);
        EXPECT_EQ(replay.host().qp->state() == QpState::Err,
                  starts_with(conversation.name, "rc_nak") && conversation.name != "rc_nak_rnr");
    }
}

// What a WRITE, SEND or immediate brought is where it was to go.
TEST(RcGolden, TheReplayedResponderCompletesWhatCameIn) {
    std::size_t received = 0;
    for (const Conversation& conversation : conversations()) {
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
    EXPECT_GT(received, 60U);
}

// The client's side: the recorded requests as work requests.
class RequesterReplay {
public:
    explicit RequesterReplay(const Conversation& conversation) : conversation_(conversation) {
        host_.bring_to(QpState::Rts, recorded_attributes(conversation));
        for (const Recorded& recorded : conversation.packets) {
            if (recorded.is_request) {
                learn(recorded.packet());
            }
        }
    }

    void run() {
        Instant now{};
        for (const Recorded& recorded : conversation_.packets) {
            if (!recorded.is_request) {
                if (!recorded.lost) {
                    host_.take(recorded.datagram, now);
                }
                continue;
            }
            std::optional<Datagram> made = host_.poll(now);
            if (!made && host_.qp->next_deadline() != Instant::never()) {
                now = host_.qp->next_deadline();  // a timeout, or the end of the peer's not being ready
                host_.qp->on_timeout(now);
                made = host_.poll(now);
            }
            ASSERT_TRUE(made.has_value());
            Datagram wanted = recorded.datagram;
            wanted.resize(wanted.size() - wire::kIcrcBytes);
            made->resize(made->size() - wire::kIcrcBytes);
            ASSERT_EQ(*made, wanted);
        }
        EXPECT_FALSE(host_.poll(now).has_value());
    }
    RcHost& host() { return host_; }
    [[nodiscard]] std::size_t posted() const { return posted_; }

private:
    // Each packet not seen before is part of a work request, posted with its last.
    void learn(const wire::Packet& packet) {
        if (posted_ + pending_.size() > 0 && packet.bth().psn.since(next_) < 0) {
            return;  // sent again
        }
        const wire::OpcodeTraits& opcode = packet.traits();
        const bool is_read = opcode.operation == wire::Operation::ReadRequest;
        std::uint32_t psns = 1;
        if (opcode.headers.has<wire::Reth>()) {
            const auto& reth = packet.get<wire::Reth>();
            request_.remote_address = reth.address;
            request_.rkey = reth.rkey;
            psns = is_read ? std::max(1U, (reth.dma_bytes + mtu() - 1) / mtu()) : 1;
            pending_.resize(is_read ? reth.dma_bytes : pending_.size());
        }
        next_ = packet.bth().psn.plus(psns);
        pending_.insert(pending_.end(), packet.payload().begin(), packet.payload().end());
        if (opcode.ends_message()) {
            finish(packet);
        }
    }

    void finish(const wire::Packet& packet) {
        const wire::OpcodeTraits& opcode = packet.traits();
        const bool is_send = request_traits(opcode.operation).kind == MessageKind::Send;
        request_.opcode = is_send ? WorkOpcode::Send : WorkOpcode::RdmaWrite;
        if (opcode.headers.has<wire::ImmDt>()) {
            request_.immediate = packet.get<wire::ImmDt>().data;
            request_.opcode = is_send ? WorkOpcode::SendWithImmediate : WorkOpcode::RdmaWriteWithImmediate;
        } else if (opcode.headers.has<wire::Ieth>()) {
            request_.invalidate = packet.get<wire::Ieth>().rkey;
            request_.opcode = WorkOpcode::SendWithInvalidate;
        } else if (opcode.headers.has<wire::AtomicEth>()) {
            const auto& atomic = packet.get<wire::AtomicEth>();
            request_.remote_address = atomic.address;
            request_.rkey = atomic.rkey;
            request_.compare = atomic.compare;
            request_.swap_or_add = atomic.swap_or_add;
            pending_.resize(kAtomicBytes);
            request_.opcode =
                opcode.operation == wire::Operation::FetchAdd ? WorkOpcode::FetchAdd : WorkOpcode::CompareSwap;
        } else if (opcode.operation == wire::Operation::ReadRequest) {
            request_.opcode = WorkOpcode::RdmaRead;
        }
        request_.solicited = packet.bth().solicited;
        request_.wr_id = posted_++;
        std::copy(pending_.begin(), pending_.end(), host_.at(RcHost::kBase + used_));
        EXPECT_EQ(host_.post(request_, RcHost::kBase + used_, static_cast<std::uint32_t>(pending_.size())),
                  PostVerdict::Posted);
        used_ += (pending_.size() + 7) & ~std::size_t{7};
        pending_.clear();
        request_ = {};
    }

    [[nodiscard]] std::uint32_t mtu() const { return path_mtu_of(conversation_); }

    const Conversation& conversation_;
    RcHost host_;
    SendRequest request_;
    std::vector<std::uint8_t> pending_;
    Psn next_{};
    std::size_t posted_ = 0;
    std::size_t used_ = 0;
};

CompletionStatus recorded_status(const std::string& name) {
    const std::vector<std::pair<std::string, CompletionStatus>> refused{
        {"rc_nak_long_send", CompletionStatus::RemoteOperation},
        {"rc_nak_noaccess", CompletionStatus::RemoteInvalidRequest},
        {"rc_nak_rkey", CompletionStatus::RemoteAccess}};
    for (const auto& [prefix, status] : refused) {
        if (starts_with(name, prefix)) {
            return status;
        }
    }
    return CompletionStatus::Success;
}

TEST(RcGolden, EveryRecordedRequestIsMadeByteForByte) {
    std::size_t requests = 0;
    for (const Conversation& conversation : conversations()) {
        SCOPED_TRACE(conversation.name);
        RequesterReplay replay(conversation);
        replay.run();
        const std::vector<Completion> got = RcHost::drain(replay.host().send_completions);
        ASSERT_EQ(got.size(), replay.posted());
        for (std::size_t i = 0; i < got.size(); ++i) {
            EXPECT_EQ(got[i].wr_id, i);
            EXPECT_EQ(got[i].status, recorded_status(conversation.name));
        }
        requests += got.size();
    }
    std::printf("%zu conversations, %zu work requests\n", conversations().size(), requests);
}

// What a READ or atomic brought is where the work request said.
TEST(RcGolden, RecordedDataArriveInTheRequestersMemory) {
    std::size_t with_data = 0;
    for (const Conversation& conversation : conversations()) {
        SCOPED_TRACE(conversation.name);
        std::vector<std::uint8_t> wanted;
        bool only_data = true;
        for (const Recorded& recorded : conversation.packets) {
            const wire::Packet packet = recorded.packet();
            only_data =
                only_data && (recorded.is_request ? request_traits(packet.traits().operation).kind == MessageKind::None
                                                  : packet.traits().role == wire::Role::Response);
            wanted.insert(wanted.end(), packet.payload().begin(), packet.payload().end());
            if (packet.traits().headers.has<wire::AtomicAckEth>()) {
                const std::uint64_t original = packet.get<wire::AtomicAckEth>().original;
                const auto* bytes = reinterpret_cast<const std::uint8_t*>(&original);
                wanted.insert(wanted.end(), bytes, bytes + sizeof(original));
            }
        }
        if (!only_data) {
            continue;
        }
        RequesterReplay replay(conversation);
        replay.run();
        const std::uint8_t* at = replay.host().at(RcHost::kBase);
        EXPECT_EQ(std::vector<std::uint8_t>(at, at + wanted.size()), wanted);
        ++with_data;
    }
    EXPECT_GE(with_data, 8U);
}

}  // namespace
}  // namespace cairn::roce::rc
