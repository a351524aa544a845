// Management datagrams: their header of 24 bytes, and the reasons for which a datagram is not for the connection
// manager (IBTA vol. 1, 13.4.2, 13.4.3). They travel as unreliable datagrams between the queue pairs 1 of two ports.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/base/endian.hpp"
#include "lib/base/parsed.hpp"
#include "lib/base/types.hpp"
#include "lib/telemetry/counters.hpp"

namespace cairn::wire {

constexpr std::size_t kMadBytes = 256;
using MadBytes = std::array<std::uint8_t, kMadBytes>;
constexpr Qpn kGeneralServicesQpn{1};             // (3.9.1)
constexpr Qkey kGeneralServicesQkey{0x80010000};  // (10.2.5)

// X(enumerator, counter name, what non-zero means)
#define CAIRN_MAD_DROPS(X)                                                                                     \
    X(BadSize, "mad_bad_size", "datagrams for queue pair 1 that are not 256 bytes: broken or hostile senders") \
    X(BadVersion, "mad_bad_version", "management datagrams of another base version")                           \
    X(OtherClass, "mad_other_class", "management datagrams that are not for the connection manager")           \
    X(BadClassVersion, "mad_bad_class_version", "peers whose connection manager speaks another version")       \
    X(BadMethod, "mad_bad_method", "connection manager messages with another method than Send")                \
    X(UnknownAttribute, "mad_unknown_attribute", "connection manager messages of a kind unknown here")         \
    X(ReservedValue, "mad_reserved_value", "connection manager messages with a reserved value in a field")     \
    X(BadInfoLength, "mad_bad_info_length", "refusals with more additional information than there is room for")

CAIRN_DECLARE_COUNTERS(MadDrop, CAIRN_MAD_DROPS);

template <class T>
using ParsedMad = cairn::Parsed<T, MadDrop>;

struct RawMadHeader {
    std::uint8_t base_version;
    std::uint8_t management_class;
    std::uint8_t class_version;
    std::uint8_t method;
    Be16 status;
    Be16 class_specific;
    Be64 transaction;
    Be16 attribute;
    Be16 reserved;
    Be32 attribute_modifier;
};
static_assert(sizeof(RawMadHeader) == 24 && alignof(RawMadHeader) == 1);

// The header of a connection manager's message. All its messages use the method Send (12.6, 16.7.1). The fields that
// are not here are the same in all of them.
struct MadHeader {
    using Raw = RawMadHeader;
    static constexpr std::size_t kBytes = sizeof(Raw);
    static constexpr std::uint8_t kBaseVersion = 1;
    static constexpr std::uint8_t kCommunicationClass = 0x07;
    static constexpr std::uint8_t kClassVersion = 2;
    static constexpr std::uint8_t kSend = 0x03;

    std::uint64_t transaction = 0;
    std::uint16_t attribute = 0;

    [[nodiscard]] static ParsedMad<MadHeader> parse(const Raw& raw) noexcept {
        if (raw.base_version != kBaseVersion) {
            return MadDrop::BadVersion;
        }
        if (raw.management_class != kCommunicationClass) {
            return MadDrop::OtherClass;
        }
        if (raw.class_version != kClassVersion) {
            return MadDrop::BadClassVersion;
        }
        if (raw.method != kSend) {
            return MadDrop::BadMethod;
        }
        return MadHeader{raw.transaction.get(), raw.attribute.get()};
    }
    void emit(Raw& raw) const noexcept {
        raw = {kBaseVersion, kCommunicationClass, kClassVersion,   kSend,  Be16{},
               Be16{},       Be64{transaction},   Be16{attribute}, Be16{}, Be32{}};
    }

    friend bool operator==(const MadHeader&, const MadHeader&) noexcept = default;
};

}  // namespace cairn::wire
