// Attacks on RPC servers over reliable connections: one host holds sessions and does not use them.
#include <chrono>
#include <map>
#include <utility>

#include "tests/hostile/attacks.hpp"

namespace cairn::hostile {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenRequests{5};

// The private data in which copyrpc's ends describe a ring: 4 KiB, 8 batches, no long messages, flow control by
// credits.
struct RawCopyrpcHello {
    Be32 magic{0x43525043};
    std::uint8_t version = 3;
    std::uint8_t ring_log2 = 12;
    Be16 receives{8};
    Be64 address{0x10000};
    Be32 rkey{0x100};
    Be32 longest{};
    std::uint8_t flow = 0;
    std::uint8_t mirror_log2 = 12;
    Be16 spare{};
    Be32 word{};
};
static_assert(sizeof(RawCopyrpcHello) == 32 && alignof(RawCopyrpcHello) == 1);

// The private data in which a client of ScaleRPC describes its memory: 16 blocks of 128 bytes.
struct RawScalerpcHello {
    Be32 magic{0x53525043};
    std::uint8_t version = 1;
    std::uint8_t block_log2 = 7;
    std::uint8_t blocks_log2 = 4;
    std::uint8_t cohort = 0;
    Be64 staged_address{0x10000};
    Be64 answers_address{0x20000};
    Be32 staged_rkey{0x100};
    Be32 answers_rkey{0x200};
};
static_assert(sizeof(RawScalerpcHello) == 32 && alignof(RawScalerpcHello) == 1);

// Sessions of one stranger, which acknowledges all that the target writes, and makes no call.
class IdleSessions {
public:
    IdleSessions(Attacker& attacker, std::span<const std::uint8_t> hello)
        : attacker_(attacker), from_(attacker.stranger(0)), hello_(hello.begin(), hello.end()) {}

    // Asks for another session. Returns false if the time is over.
    bool ask() {
        const std::uint32_t number = ++asked_;
        wire::Req req = connection_request(number, Qpn{number}, attacker_.options().service, from_.address(),
                                           attacker_.options().target, hello_);
        req.retry_count = req.rnr_retry = wire::RetryCount{7};
        return attacker_.send(from_, management({attacker_.random(), req}));
    }
    void answer(std::span<const std::uint8_t> came) {
        if (const std::optional<wire::CmMad> mad = management_of(came)) {
            answer(*mad);
        } else if (const wire::Parsed<wire::Packet> packet = wire::Packet::parse(came); packet.ok()) {
            acknowledge(packet.value().bth());
        }
    }
    [[nodiscard]] std::size_t held() const noexcept { return held_.size(); }

private:
    struct Held {
        Qpn peer{};
        std::uint32_t messages = 0;  // that were acknowledged
    };
    void answer(const wire::CmMad& mad) {
        if (const auto* const rep = std::get_if<wire::Rep>(&mad.message)) {
            held_[rep->ids.remote.value].peer = rep->local_qpn;
            wire::Rtu rtu;
            rtu.ids = {rep->ids.remote, rep->ids.local};
            (void)attacker_.send(from_, management({mad.transaction, rtu}));
        } else if (const auto* const dreq = std::get_if<wire::Dreq>(&mad.message)) {
            held_.erase(dreq->ids.remote.value);
            wire::Drep drep;
            drep.ids = {dreq->ids.remote, dreq->ids.local};
            (void)attacker_.send(from_, management({mad.transaction, drep}));
        }
    }
    void acknowledge(const wire::Bth& bth) {
        const auto found = held_.find(bth.dest_qpn.value);
        if (found == held_.end() || !bth.ack_request) {
            return;
        }
        wire::Packet ack(wire::Service::Rc, wire::Operation::Acknowledge);
        wire::Bth own;
        own.dest_qpn = found->second.peer;
        own.psn = bth.psn;
        ack.set_bth(own);
        ack.set(wire::Aeth{wire::AckCredits{31}, Msn{++found->second.messages}});
        (void)attacker_.send(from_, bytes_of(ack));
    }

    Attacker& attacker_;
    Host& from_;
    Bytes hello_;
    std::uint32_t asked_ = 0x1000;        // the last number of a connection and of its queue pair
    std::map<std::uint32_t, Held> held_;  // by number
};

// Asks for sessions until the time is over. The number that it holds at the end is the result.
template <class RawHello>
void hold_idle(Attacker& attacker) {
    const RawHello hello;
    IdleSessions sessions(attacker, {reinterpret_cast<const std::uint8_t*>(&hello), sizeof(hello)});
    for (Clock::time_point next = Clock::now(); !attacker.over();) {
        if (Clock::now() >= next) {
            next = Clock::now() + kBetweenRequests;
            (void)sessions.ask();
        }
        const Bytes came = attacker.await(attacker.stranger(0), kBetweenRequests);
        if (!came.empty()) {
            sessions.answer(came);
        }
    }
    for (std::size_t i = 0; i < sessions.held(); ++i) {
        attacker.reached();
    }
}

constexpr std::array kIdleAttacks{
    Attack{"idle-copyrpc", hold_idle<RawCopyrpcHello>, "sessions of one host that only answer probes"},
    Attack{"idle-scalerpc", hold_idle<RawScalerpcHello>, "the same, of blocks of 128 bytes, 16 of them"},
};

}  // namespace

std::span<const Attack> attacks_by_idle_sessions() {
    return kIdleAttacks;
}

}  // namespace cairn::hostile
