// A peer that sends anything that parses: no crash, no assertion, and no byte written outside of its rights.
#include <gtest/gtest.h>

#include "lib/sim/random.hpp"
#include "tests/support/guarded_pages.hpp"
#include "tests/unit/rc/rc_host.hpp"

namespace cairn::roce::rc {
namespace {

constexpr std::uint64_t kOpen = 0x900000;  // the region that the peer knows, between two inaccessible pages
constexpr std::size_t kOpenBytes = 4096;

class Hostile {
public:
    Hostile(std::uint64_t seed, wire::Service service) : random_(seed), service_(service), host_(capacity(service)) {
        constexpr std::array<std::uint32_t, 4> kWildness{2'000, 20'000, 200'000, sim::kMillion};
        wildness_ = kWildness[seed % kWildness.size()];
        revive();
    }

    void run(int packets) {
        for (int i = 0; i < packets; ++i) {
            act();
            host_.take(make(), now_);
            host_.qp->check_invariants();
            now_ = now_ + random_.between(Duration{}, microseconds(300));
            host_.qp->on_timeout(now_);
            host_.qp->check_invariants();
            std::array<OutPacket, 4> burst;
            const std::size_t count = host_.qp->poll_transmit(std::span(burst).first(random_.below(5)), now_);
            for (const OutPacket& packet : std::span(burst).first(count)) {
                (void)packet_of(datagram_of(packet));
                newest_ = psn_of(packet);
            }
            host_.qp->check_invariants();
            executed_ += RcHost::drain(host_.receive_completions).size() + RcHost::drain(host_.send_completions).size();
            if (host_.qp->state() == QpState::Err || host_.qp->state() == QpState::Sqe) {
                ++deaths_;
                revive();
            }
        }
    }
    void check_guards() {
        for (std::size_t i = RcHost::kBytes / 2; i < RcHost::kBytes; ++i) {
            ASSERT_EQ(host_.span()[i], 0) << i;
        }
    }
    [[nodiscard]] std::size_t deaths() const { return deaths_; }
    [[nodiscard]] std::size_t executed() const { return executed_; }

private:
    static QpCapacity capacity(wire::Service service) {
        QpCapacity all;
        all.service = service;
        return all;
    }
    std::span<std::uint8_t> open() { return memory_.span().first(kOpenBytes); }
    static Psn psn_of(const OutPacket& packet) {
        return wire::Bth::parse(read_raw<wire::RawBth>(packet.header.data())).psn;
    }

    void revive() {
        ASSERT_EQ(host_.qp->modify(QpState::Reset, {}, {}), std::nullopt);
        QpAttributes values = RcHost::usual_attributes();
        values.retry_count = static_cast<std::uint8_t>(random_.below(8));
        values.rnr_retry = static_cast<std::uint8_t>(random_.below(8));
        values.max_dest_rd_atomic = static_cast<std::uint8_t>(random_.below(kMaxRdAtomic + 1));
        values.ack_timeout = static_cast<std::uint8_t>(random_.below(8));
        values.access = kAllRemote | Right::FlushGlobal;
        values.selective = random_.chance(sim::kMillion / 2);
        values.delayed_acks = random_.chance(sim::kMillion / 2);
        host_.bring_to(QpState::Rts, values);
        newest_ = values.send_psn;
        // The peer knows the region, sometimes through a window over it that it may invalidate.
        host_.memory.destroy_window(key_);
        (void)host_.memory.destroy_region(region_);
        region_ = host_.memory
                      .register_region({host_.pd, open(), kOpen,
                                        kAllRights | Right::RemoteInvalidate | Right::BindWindow | Right::FlushGlobal})
                      .value();
        key_ = region_;
        if (random_.chance(sim::kMillion / 2)) {
            key_ = host_.memory.create_window(host_.pd, WindowType::Type2B).value();
            ASSERT_EQ(host_.memory.bind_window(
                          {key_, Lkey{region_.value}, kOpen, kOpenBytes, kAllRemote | Right::FlushGlobal, false},
                          {host_.pd, RcHost::kQpn}),
                      std::nullopt);
        }
    }

    // Does the victim's own work: receives and sends within the first half of its own memory.
    void act() {
        if (random_.chance(200'000)) {
            (void)host_.post_receive(1, RcHost::kBase + random_.below(1000),
                                     static_cast<std::uint32_t>(random_.below(3000)));
        }
        if (random_.chance(200'000)) {
            SendRequest request;
            request.opcode = static_cast<WorkOpcode>(random_.below(static_cast<std::uint64_t>(WorkOpcode::Count)));
            request.invalidate = key_;
            request.bind = {key_, Lkey{region_.value}, kOpen, kOpenBytes, kAllRemote, random_.chance(100'000)};
            const bool word = is_atomic(request.opcode) || request.opcode == WorkOpcode::AtomicWrite;
            const auto bytes = word ? kAtomicBytes : static_cast<std::uint32_t>(random_.below(3000));
            (void)host_.post(request, RcHost::kBase + random_.below(1000), bytes);
        }
    }

    // Most packets of a tame peer are correct; those of a wild one are arbitrary.
    bool wild() { return random_.chance(wildness_); }
    std::uint64_t some_address() {
        const std::array<std::uint64_t, 6> anchors{kOpen, kOpen + kOpenBytes, kOpen - 8,
                                                   0,     ~std::uint64_t{0},  RcHost::kBase};
        return wild() ? anchors[random_.below(anchors.size())] + random_.below(300) - random_.below(16)
                      : kOpen + random_.below(kOpenBytes / 2 / 8) * 8;
    }
    std::uint32_t some_length(const wire::OpcodeTraits& opcode, std::size_t payload) {
        if (wild()) {
            return static_cast<std::uint32_t>(random_.next() >> random_.below(64));
        }
        if (opcode.operation == wire::Operation::ReadRequest) {
            return static_cast<std::uint32_t>(random_.below(kOpenBytes / 2));
        }
        return static_cast<std::uint32_t>(payload) + (opcode.ends_message() ? 0 : 256 + 100);
    }
    Rkey some_key() { return wild() ? Rkey{static_cast<std::uint32_t>(random_.next())} : key_; }
    const wire::OpcodeTraits& some_opcode() {
        using enum wire::Operation;
        const std::array<wire::Operation, 11> whole{SendOnly,    WriteOnly,   ReadRequest,      FetchAdd,
                                                    CompareSwap, Acknowledge, Acknowledge,      ReadResponseOnly,
                                                    AtomicWrite, Flush,       AtomicAcknowledge};
        for (;;) {
            const auto any = static_cast<wire::Operation>(random_.below(32));
            const wire::Operation chosen = wild() ? any : whole[random_.below(whole.size())];
            const auto* found = wire::find_opcode(wire::opcode_of(service_, chosen));
            if (found != nullptr) {
                return *found;
            }
        }
    }

    wire::Packet make() {
        const wire::OpcodeTraits* const traits = &some_opcode();
        wire::Packet packet(service_, traits->operation);
        if (traits->payload == wire::Payload::Carried) {
            const bool fills = traits->place == wire::Place::First || traits->place == wire::Place::Middle;
            packet.set_payload(std::span(payload_).first(fills && !wild() ? 256
                                                         : traits->operation == wire::Operation::AtomicWrite && !wild()
                                                             ? 8
                                                             : random_.below(wild() ? 300 : 200)));
        }
        if (traits->headers.has<wire::Reth>()) {
            packet.set(wire::Reth{some_address(), some_key(), some_length(*traits, packet.payload().size())});
        }
        if (traits->headers.has<wire::Feth>()) {
            packet.set(wire::Feth{static_cast<std::uint8_t>(wild() ? random_.below(16) : 1U),
                                  static_cast<std::uint8_t>(random_.below(wild() ? 4 : 2))});
        }
        if (traits->headers.has<wire::AtomicEth>()) {
            packet.set(wire::AtomicEth{some_address(), some_key(), random_.next(), 0});
        }
        if (traits->headers.has<wire::Ieth>()) {
            packet.set(wire::Ieth{some_key()});
        }
        if (traits->headers.has<wire::Aeth>()) {
            packet.set(wire::Aeth{some_syndrome(), Msn{}});
        }
        const bool answers = traits->role != wire::Role::Request;
        const Psn near = answers ? newest_ : host_.qp->responder().expected_psn();
        wire::Bth bth;
        const std::uint32_t spread = !wild() ? 0 : static_cast<std::uint32_t>(random_.below(7)) + Psn::kMask - 2;
        bth.psn = wild() && wild() ? Psn{static_cast<std::uint32_t>(random_.next())} : near.plus(spread);
        bth.ack_request = random_.chance(500'000);
        packet.set_bth(bth);
        return packet;
    }
    wire::Aeth::Syndrome some_syndrome() {
        switch (wild() ? random_.below(6) : 6) {
            case 0:
                return wire::RnrTimer{static_cast<std::uint8_t>(random_.below(32))};
            case 1:
                return wire::NakCode::PsnSequence;
            case 2:
                return static_cast<wire::NakCode>(random_.below(5));
            default:
                return wire::AckCredits{31};
        }
    }

    sim::Random random_;
    std::uint32_t wildness_ = 0;
    wire::Service service_;
    test::GuardedPages memory_{1};
    RcHost host_;
    std::vector<std::uint8_t> payload_ = std::vector<std::uint8_t>(512, 0x77);
    Rkey region_{};
    Rkey key_{};
    Psn newest_{};
    Instant now_{};
    std::size_t deaths_ = 0;
    std::size_t executed_ = 0;
};

TEST(RcHostile, AnythingThatParsesDoesNoHarm) {
    for (const wire::Service service : {wire::Service::Rc, wire::Service::Uc}) {
        std::size_t deaths = 0;
        std::size_t executed = 0;
        for (std::uint64_t seed = 1; seed <= 200; ++seed) {
            SCOPED_TRACE(seed);
            Hostile hostile(seed, service);
            hostile.run(1500);
            hostile.check_guards();
            deaths += hostile.deaths();
            executed += hostile.executed();
            if (testing::Test::HasFailure()) {
                return;
            }
        }
        std::printf("%zu connections ended, %zu work requests completed\n", deaths, executed);
        EXPECT_GT(deaths, 200U);
        EXPECT_GT(executed, 10'000U);
    }
}

}  // namespace
}  // namespace cairn::roce::rc
