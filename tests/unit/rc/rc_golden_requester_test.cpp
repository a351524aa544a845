// The golden traces of two Linux Soft-RoCE hosts. Given the recorded answers, our requester makes the recorded requests
// byte for byte from BTH to payload, also with lost packets. Addresses, IP headers and ICRC are below this layer.
//
// Departs: rxe sends MigReq 0; a queue pair without path migration is migrated (1). An attribute, set to 0 here.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/unit/rc/rc_capture.hpp"

namespace cairn::roce::rc {
namespace {

// The client's side: the recorded requests as work requests.
class RequesterReplay {
public:
    explicit RequesterReplay(const Conversation& conversation)
        : conversation_(conversation), host_(capacity_of(conversation)) {
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
                now = host_.qp->next_deadline();  // a timeout, or the end of an RNR wait
                host_.qp->on_timeout(now);
                made = host_.poll(now);
            }
            ASSERT_TRUE(made.has_value());
            Datagram wanted = recorded.datagram;
            wanted.resize(wanted.size() - wire::kIcrcBytes);
            made->resize(made->size() - wire::kIcrcBytes);
            if (!test::traces_are_golden()) {
                leave_to_sender(wanted);
                leave_to_sender(*made);
            }
            ASSERT_EQ(*made, wanted);
        }
        EXPECT_FALSE(host_.poll(now).has_value());
    }
    RcHost& host() { return host_; }
    [[nodiscard]] std::size_t posted() const { return posted_; }

private:
    // Clears the fields that each sender may choose: when to ask for an ACK, and congestion marks.
    static void leave_to_sender(Datagram& datagram) {
        constexpr std::size_t kMarksAt = 4;
        constexpr std::size_t kAckRequestAt = 8;
        datagram[kMarksAt] = 0;
        datagram[kAckRequestAt] &= 0x7f;
    }

    // Adds a new packet to its work request, which is posted with its last packet.
    void learn(const wire::Packet& packet) {
        if (posted_ + pending_.size() > 0 && packet.bth().psn.since(next_) < 0) {
            return;  // a retransmission
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
    for (const wire::Service service : {wire::Service::Rc, wire::Service::Uc}) {
        for (const Conversation& conversation : replayed(service)) {
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
    }
    std::printf("%zu work requests\n", requests);
}

// The result of a READ or atomic is at the place that the work request named.
TEST(RcGolden, RecordedDataArriveInTheRequestersMemory) {
    std::size_t with_data = 0;
    for (const Conversation& conversation : replayed()) {
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
    EXPECT_TRUE(with_data >= 8 || !test::traces_are_golden()) << with_data;
}

}  // namespace
}  // namespace cairn::roce::rc
