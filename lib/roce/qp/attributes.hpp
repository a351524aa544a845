// States and attributes of queue pairs: the allowed changes of state, and the attributes that each must and may set
// (IBTA vol. 1, 10.3.1, 11.2.5.2).
#pragma once

#include <cstdint>
#include <optional>

#include "lib/base/types.hpp"
#include "lib/roce/qp/limits.hpp"
#include "lib/roce/qp/memory.hpp"
#include "lib/wire/aeth.hpp"
#include "lib/wire/opcode.hpp"

namespace cairn::roce {

// A send request that fails leads to Sqe on an unreliable service, to Err on a reliable one (10.3.1).
enum class QpState : std::uint8_t { Reset, Init, Rtr, Rts, Sqd, Sqe, Err, Count };

enum class Attribute : std::uint8_t {
    Access,
    Pkey,
    Path,  // the way to the peer, which the engine keeps; in this list for the table of transitions
    PathMtu,
    DestQpn,
    ReceivePsn,
    MaxDestRdAtomic,
    MinRnrTimer,
    SendPsn,
    AckTimeout,
    RetryCount,
    RnrRetry,
    MaxRdAtomic,
    MigrationState,
    Qkey,         // of datagrams only
    Selective,    // between two Cairn peers; IBTA does not know it
    DelayedAcks,  // as Selective
    SendsWait,    // IBTA does not know it
    Count,
};

// A set of attributes.
class AttributeSet {
public:
    template <class... Attributes>
    [[nodiscard]] static constexpr AttributeSet of(Attributes... attributes) noexcept {
        return AttributeSet{(0U | ... | (1U << static_cast<unsigned>(attributes)))};
    }
    constexpr AttributeSet() noexcept = default;

    [[nodiscard]] constexpr bool has(Attribute one) const noexcept {
        return (bits_ >> static_cast<unsigned>(one) & 1U) != 0;
    }
    [[nodiscard]] constexpr bool covers(AttributeSet others) const noexcept { return (others.bits_ & ~bits_) == 0; }
    [[nodiscard]] constexpr AttributeSet with(AttributeSet others) const noexcept {
        return AttributeSet{bits_ | others.bits_};
    }
    [[nodiscard]] constexpr AttributeSet within(AttributeSet others) const noexcept {
        return AttributeSet{bits_ & others.bits_};
    }
    friend constexpr bool operator==(const AttributeSet&, const AttributeSet&) noexcept = default;

private:
    constexpr explicit AttributeSet(unsigned bits) noexcept : bits_(bits) {}
    unsigned bits_ = 0;
};

struct QpAttributes {
    Rights access{};  // the rights of the peer: some of RemoteWrite, RemoteRead, RemoteAtomic
    Pkey pkey{0xffff};
    std::uint32_t path_mtu_bytes = 1024;  // 256, 512, 1024, 2048 or 4096
    Qpn dest_qpn{};
    Psn receive_psn{};                    // of the first packet that the peer sends
    Psn send_psn{};                       // of the first packet of our own
    std::uint8_t max_dest_rd_atomic = 1;  // READs and atomics that the peer may have outstanding; <= kMaxRdAtomic
    std::uint8_t max_rd_atomic = 1;       // READs and atomics of our own outstanding; of both, 0 counts as 1
    wire::RnrTimer min_rnr_timer{};       // the time for which our RNR NAKs put the peer off
    std::uint8_t ack_timeout = 0;         // code, [0, 31]: see rc/timers.hpp
    std::uint8_t retry_count = 7;         // [0, 7]
    std::uint8_t rnr_retry = 7;           // [0, 7]; 7: for ever
    Qkey qkey{};
    bool selective = false;     // between Cairn peers: early packets are held, only missing ones are sent again
    bool delayed_acks = false;  // between Cairn peers: messages that do not ask are acknowledged by count or time
    bool sends_wait = false;    // send requests are taken and not begun: the peer is not known to be ready (12.9.7)
    bool migrated = true;       // bit MigReq of our packets: set where paths do not migrate (17.2.8)
};

// The reason why a change of state, or of attributes, is not made.
enum class ModifyRefusal : std::uint8_t { NoTransition, Missing, NotAllowed, BadValue };

// A transport service, and of XRC the end: the initiator unless stated otherwise.
struct QpKind {
    // NOLINTNEXTLINE(google-explicit-constructor): a service is a kind
    constexpr QpKind(wire::Service of, bool of_target = false) noexcept : service(of), is_target(of_target) {}

    wire::Service service;
    bool is_target;  // of Xrc: it only receives
};

// The abilities of a queue pair in a state.
struct Abilities {
    bool send = false;     // takes send requests and sends their packets
    bool receive = false;  // takes messages of its peers
    bool flush = false;    // takes send requests only to complete them as flushed

    friend constexpr bool operator==(const Abilities&, const Abilities&) noexcept = default;
};
// Returns the abilities. An XRC initiator receives nothing, an XRC target sends nothing.
[[nodiscard]] Abilities abilities_of(QpState state, QpKind kind) noexcept;

// The attributes that a change of state must and may set.
struct Transition {
    QpState from;
    QpState to;
    AttributeSet required;
    AttributeSet optional;
};
// Returns the transition, or nullopt if the two states are not connected. The service is not Cnp (asserted).
[[nodiscard]] std::optional<Transition> find_transition(QpState from, QpState to,
                                                        QpKind kind = wire::Service::Rc) noexcept;

// Judges if a queue pair in `from` may go to `to` and set the attributes in `which` to their values in `values`. Pure.
[[nodiscard]] std::optional<ModifyRefusal> judge_modify(QpState from, QpState to, AttributeSet which,
                                                        const QpAttributes& values,
                                                        QpKind kind = wire::Service::Rc) noexcept;
// Copies the attributes in `which` from `values` to `attributes`.
void assign(QpAttributes& attributes, AttributeSet which, const QpAttributes& values) noexcept;

}  // namespace cairn::roce
