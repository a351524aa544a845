// Queue pair states and attributes: which change is allowed, and what it must and may set
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

// Sqe: a send request of an unreliable service failed; a reliable connection goes to Err instead (10.3.1).
enum class QpState : std::uint8_t { Reset, Init, Rtr, Rts, Sqd, Sqe, Err, Count };

enum class Attribute : std::uint8_t {
    Access,
    Pkey,
    Path,  // the peer's address: the port's, named here for the table's sake
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
    Qkey,       // of an unreliable datagram service only
    Selective,  // Cairn's own
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
    Rights access{};  // of RemoteWrite, RemoteRead, RemoteAtomic: what the peer may ask for
    Pkey pkey{0xffff};
    std::uint32_t path_mtu_bytes = 1024;  // 256, 512, 1024, 2048 or 4096
    Qpn dest_qpn{};
    Psn receive_psn{};                    // the first that the peer sends
    Psn send_psn{};                       // the first of our own
    std::uint8_t max_dest_rd_atomic = 1;  // READs and atomics that the peer may have outstanding; <= kMaxRdAtomic
    std::uint8_t max_rd_atomic = 1;       // and we; 0: none are possible
    wire::RnrTimer min_rnr_timer{};       // what our RNR NAKs ask for
    std::uint8_t ack_timeout = 0;         // code, [0, 31]: see rc/timers.hpp
    std::uint8_t retry_count = 7;         // [0, 7]
    std::uint8_t rnr_retry = 7;           // [0, 7]; 7: for ever
    Qkey qkey{};
    bool selective = false;  // between Cairn peers: early packets are held, and only what is missing is sent again
    bool migrated = true;    // MigReq of our packets: without path migration always so (17.2.8)
};

enum class ModifyVerdict : std::uint8_t { Ok, NoTransition, Missing, NotAllowed, BadValue };

// Whose states these are: a transport service, and of XRC the initiator unless told otherwise.
struct QpKind {
    // NOLINTNEXTLINE(google-explicit-constructor): a service is a kind
    constexpr QpKind(wire::Service of, bool of_target = false) noexcept : service(of), is_target(of_target) {}

    wire::Service service;
    bool is_target;  // of Xrc: it only receives
};

// What a change of state must and may set besides.
struct Transition {
    QpState from;
    QpState to;
    AttributeSet required;
    AttributeSet optional;
};
// Nothing: the two states are not connected. The service is none of Cnp (asserted).
[[nodiscard]] std::optional<Transition> find_transition(QpState from, QpState to,
                                                        QpKind kind = wire::Service::Rc) noexcept;

// Whether a queue pair in `from` may go to `to` with these attributes. Pure.
[[nodiscard]] ModifyVerdict judge_modify(QpState from, QpState to, AttributeSet which, const QpAttributes& values,
                                         QpKind kind = wire::Service::Rc) noexcept;
// Sets those of `which` in `attributes`.
void assign(QpAttributes& attributes, AttributeSet which, const QpAttributes& values) noexcept;

}  // namespace cairn::roce
