// How much of a captured conversation the replays can judge.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "lib/roce/rc/judge_request.hpp"
#include "tests/unit/rc/rc_trace.hpp"

namespace cairn::roce::rc {

// Returns how many packets at the front of a conversation are judged, and why the later ones are not.
class CaptureJudge {
public:
    explicit CaptureJudge(const Conversation& conversation)
        : packets_(conversation.packets), mtu_(path_mtu_of(conversation)) {}

    [[nodiscard]] std::size_t judge() {
        while (at_ != packets_.size() && take_message()) {
            judged_ = at_;
            ++messages_;
        }
        return judged_;
    }
    [[nodiscard]] const std::string& why() const noexcept { return why_; }

private:
    static constexpr std::size_t kMost = 16;  // messages for which the replay posts receive requests
    static constexpr std::size_t kMostBytes = RcHost::kBytes / 2;

    bool refuse(const char* why) {
        why_ = why;
        return false;
    }
    [[nodiscard]] static bool is_unreliable(const wire::Packet& packet) {
        return packet.traits().service == wire::Service::Uc;
    }
    [[nodiscard]] static bool is_plain(const wire::Packet& packet) {
        const wire::OpcodeTraits& opcode = packet.traits();
        return !opcode.headers.has<wire::Ieth>() && !opcode.headers.has<wire::AtomicEth>() &&
               (request_traits(opcode.operation).kind != MessageKind::None ||
                opcode.operation == wire::Operation::ReadRequest);
    }
    bool take_message() {
        const wire::Packet head = packets_[at_].packet();
        if (messages_ == (is_unreliable(head) ? 1 : kMost)) {
            return refuse("more messages than are replayed");
        }
        if (!packets_[at_].is_request) {
            return refuse("an answer that nobody waits for");
        }
        if (!is_plain(head)) {
            return refuse("atomics, invalidations and what else the replay has no memory for");
        }
        next_ = messages_ == 0 ? head.bth().psn : next_;
        return take_requests() && (is_unreliable(head) || take_answers());
    }
    // Takes packets up to the last request of the message, and answers to the first ones.
    bool take_requests() {
        std::size_t bytes = 0;
        for (;; ++at_) {
            if (at_ == packets_.size()) {
                return refuse("a message without its end");
            }
            const wire::Packet packet = packets_[at_].packet();
            if (!packets_[at_].is_request) {
                continue;
            }
            if (packet.bth().psn != next_ || (bytes != 0 && packet.traits().starts_message())) {
                return refuse("packets that were lost, sent again or overtaken");
            }
            std::uint32_t psns = 1;
            if (packet.traits().headers.has<wire::Reth>()) {
                const auto& reth = packet.get<wire::Reth>();
                is_read_ = packet.traits().operation == wire::Operation::ReadRequest;
                psns = is_read_ ? std::max(1U, (reth.dma_bytes + mtu_ - 1) / mtu_) : 1;
                bytes += is_read_ ? reth.dma_bytes : 0;
                lowest_ = std::min(lowest_, reth.address & ~std::uint64_t{4095});
                highest_ = std::max(highest_, reth.address + reth.dma_bytes);
            } else if (packet.traits().starts_message()) {
                is_read_ = false;
            }
            bytes += packet.payload().size();
            next_ = next_.plus(psns);
            if (packet.traits().ends_message()) {
                ++at_;
                used_ += (bytes + 7) & ~std::size_t{7};
                const bool fits = used_ <= kMostBytes && (highest_ == 0 || highest_ - lowest_ <= kMostBytes) &&
                                  (!is_unreliable(packet) || bytes <= 4096);
                return fits || refuse("more memory than the replay has");
            }
        }
    }
    bool take_answers() {
        for (; at_ != packets_.size(); ++at_) {
            const wire::Packet packet = packets_[at_].packet();
            if (packets_[at_].is_request) {
                return refuse("several messages under way at a time");
            }
            const bool acknowledges = packet.traits().operation == wire::Operation::Acknowledge;
            if (acknowledges && !std::holds_alternative<wire::AckCredits>(packet.get<wire::Aeth>().syndrome)) {
                return refuse("a request that was refused");
            }
            const bool ends = is_read_ ? !acknowledges && packet.traits().ends_message() : acknowledges;
            if (ends && packet.bth().psn.next() == next_) {
                ++at_;
                return true;
            }
        }
        return refuse("requests whose answers are not there: one direction, or the capture's end");
    }

    const std::vector<Recorded>& packets_;
    std::uint32_t mtu_;
    std::size_t at_ = 0;
    std::size_t judged_ = 0;
    std::size_t messages_ = 0;
    std::size_t used_ = 0;
    Psn next_{};
    bool is_read_ = false;
    std::uint64_t lowest_ = ~std::uint64_t{0};
    std::uint64_t highest_ = 0;
    std::string why_;
};

}  // namespace cairn::roce::rc
