// The messages after a REQ: REP, RTU, MRA, REJ, DREQ, DREP (IBTA vol. 1, 12.6.6 to 12.6.11).
#pragma once

#include "lib/base/endian.hpp"
#include "lib/wire/cm_types.hpp"
#include "lib/wire/mad.hpp"

namespace cairn::wire {

enum class Failover : std::uint8_t { Accepted = 0, NotSupported = 1, Rejected = 2, Reserved = 3 };

struct RawRep {
    RawCommIds ids;
    Be32 local_qkey;
    Be24 local_qpn;
    std::uint8_t reserved15;
    Be24 local_eecn;
    std::uint8_t reserved19;
    Be24 starting_psn;
    std::uint8_t reserved23;
    std::uint8_t responder_resources;
    std::uint8_t initiator_depth;
    std::uint8_t ack_delay;  // target ACK delay 5, failover accepted 2, end-to-end flow control 1
    std::uint8_t rnr_retry;  // RNR retry count 3, SRQ 1, reserved 4
    Be64 local_ca_guid;
    PrivateData<196> private_data;
};
static_assert(sizeof(RawRep) == kMessageBytes && alignof(RawRep) == 1);

// The passive end is ready to receive.
struct Rep {
    using Raw = RawRep;
    static constexpr std::uint16_t kAttribute = 0x0013;

    CommIds ids{};
    Qkey local_qkey{};
    Qpn local_qpn{};
    Eecn local_eecn{};
    Psn starting_psn{};
    std::uint8_t responder_resources = 0;
    std::uint8_t initiator_depth = 0;
    CmTimeout target_ack_delay{};
    Failover failover = Failover::Accepted;
    bool flow_control = false;
    RetryCount rnr_retry{};
    bool srq = false;
    std::uint64_t local_ca_guid = 0;
    PrivateData<196> private_data{};

    [[nodiscard]] static ParsedMad<Rep> parse(const Raw& raw) noexcept;
    void emit(Raw& raw) const noexcept;

    friend bool operator==(const Rep&, const Rep&) noexcept = default;
};

struct RawPlainMessage {
    RawCommIds ids;
    PrivateData<224> private_data;
};
static_assert(sizeof(RawPlainMessage) == kMessageBytes && alignof(RawPlainMessage) == 1);

template <std::uint16_t kAttributeId>
struct PlainMessage {
    using Raw = RawPlainMessage;
    static constexpr std::uint16_t kAttribute = kAttributeId;

    CommIds ids{};
    PrivateData<224> private_data{};

    [[nodiscard]] static ParsedMad<PlainMessage> parse(const Raw& raw) noexcept {
        return PlainMessage{raw.ids.get(), raw.private_data};
    }
    void emit(Raw& raw) const noexcept {
        raw.ids.set(ids);
        raw.private_data = private_data;
    }

    friend bool operator==(const PlainMessage&, const PlainMessage&) noexcept = default;
};
using Rtu = PlainMessage<0x0014>;   // the active end is ready, too
using Drep = PlainMessage<0x0016>;  // the connection has ended

// The message that a MRA or REJ is about. Other means a LAP for a MRA, and no message for a REJ.
enum class Answered : std::uint8_t { Req = 0, Rep = 1, Other = 2 };

struct RawMra {
    RawCommIds ids;
    std::uint8_t message;  // message 2, reserved 6
    std::uint8_t timeout;  // timeout 5, reserved 3
    PrivateData<222> private_data;
};
static_assert(sizeof(RawMra) == kMessageBytes && alignof(RawMra) == 1);

// Confirms that the message came. Its answer takes up to `service_timeout`.
struct Mra {
    using Raw = RawMra;
    static constexpr std::uint16_t kAttribute = 0x0011;

    CommIds ids{};
    Answered message = Answered::Req;
    CmTimeout service_timeout{};
    PrivateData<222> private_data{};

    [[nodiscard]] static ParsedMad<Mra> parse(const Raw& raw) noexcept;
    void emit(Raw& raw) const noexcept;

    friend bool operator==(const Mra&, const Mra&) noexcept = default;
};

struct RawRej {
    RawCommIds ids;
    std::uint8_t message;      // message 2, reserved 6
    std::uint8_t info_length;  // length 7, reserved 1
    Be16 reason;
    AdditionalInfo info;
    PrivateData<148> private_data;
};
static_assert(sizeof(RawRej) == kMessageBytes && alignof(RawRej) == 1);

struct Rej {
    using Raw = RawRej;
    static constexpr std::uint16_t kAttribute = 0x0012;

    CommIds ids{};
    Answered message = Answered::Req;
    RejectReason reason{};
    std::uint8_t info_bytes = 0;  // <= kInfoBytes
    AdditionalInfo info{};
    PrivateData<148> private_data{};

    [[nodiscard]] static ParsedMad<Rej> parse(const Raw& raw) noexcept;
    void emit(Raw& raw) const noexcept;

    friend bool operator==(const Rej&, const Rej&) noexcept = default;
};

struct RawDreq {
    RawCommIds ids;
    Be24 remote_qpn;
    std::uint8_t reserved11;
    PrivateData<220> private_data;
};
static_assert(sizeof(RawDreq) == kMessageBytes && alignof(RawDreq) == 1);

// Asks for the end of the connection.
struct Dreq {
    using Raw = RawDreq;
    static constexpr std::uint16_t kAttribute = 0x0015;

    CommIds ids{};
    Qpn remote_qpn{};  // the receiver's
    PrivateData<220> private_data{};

    [[nodiscard]] static ParsedMad<Dreq> parse(const Raw& raw) noexcept;
    void emit(Raw& raw) const noexcept;

    friend bool operator==(const Dreq&, const Dreq&) noexcept = default;
};

}  // namespace cairn::wire
