// The opcodes. The first byte of the BTH determines the headers that follow it and the packet's kind (IBTA vol. 1,
// 9.2.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "lib/wire/aeth.hpp"
#include "lib/wire/feth.hpp"
#include "lib/wire/headers.hpp"

namespace cairn::wire {

// The set of a packet's extension headers. A set is enough, since the headers of a packet always follow one another in
// the order of All.
template <class... All>
class HeaderSetAmong {
public:
    using Values = std::tuple<All...>;  // one value of each

    template <class... Headers>
    [[nodiscard]] static consteval HeaderSetAmong of() noexcept {
        return HeaderSetAmong{(0U | ... | bit_of<Headers>())};
    }
    constexpr HeaderSetAmong() noexcept = default;

    template <class Header>
    [[nodiscard]] constexpr bool has() const noexcept {
        return (bits_ & bit_of<Header>()) != 0;
    }
    [[nodiscard]] constexpr HeaderSetAmong with(HeaderSetAmong others) const noexcept {
        return HeaderSetAmong{bits_ | others.bits_};
    }
    [[nodiscard]] constexpr std::size_t bytes() const noexcept {
        return (std::size_t{0} + ... + (has<All>() ? All::kBytes : 0));
    }

    friend constexpr bool operator==(const HeaderSetAmong&, const HeaderSetAmong&) noexcept = default;

private:
    constexpr explicit HeaderSetAmong(unsigned bits) noexcept : bits_(bits) {}

    template <class Header>
    static consteval unsigned bit_of() noexcept {
        static_assert((std::is_same_v<Header, All> || ...), "not an extension header");
        unsigned bit = 1;
        (void)((std::is_same_v<Header, All> || (bit <<= 1U, false)) || ...);
        return bit;
    }

    unsigned bits_ = 0;
};
using HeaderSet = HeaderSetAmong<Xrceth, Deth, Feth, Reth, AtomicEth, Aeth, AtomicAckEth, ImmDt, Ieth, CnpReserved>;

// The upper three bits of the opcode.
enum class Service : std::uint8_t { Rc = 0x00, Uc = 0x20, Ud = 0x60, Cnp = 0x80, Xrc = 0xa0 };

// The lower five bits of the opcode. A congestion notification shares none of these meanings, so its value is the whole
// opcode.
enum class Operation : std::uint8_t {
    SendFirst = 0x00,
    SendMiddle = 0x01,
    SendLast = 0x02,
    SendLastImmediate = 0x03,
    SendOnly = 0x04,
    SendOnlyImmediate = 0x05,
    WriteFirst = 0x06,
    WriteMiddle = 0x07,
    WriteLast = 0x08,
    WriteLastImmediate = 0x09,
    WriteOnly = 0x0a,
    WriteOnlyImmediate = 0x0b,
    ReadRequest = 0x0c,
    ReadResponseFirst = 0x0d,
    ReadResponseMiddle = 0x0e,
    ReadResponseLast = 0x0f,
    ReadResponseOnly = 0x10,
    Acknowledge = 0x11,
    AtomicAcknowledge = 0x12,
    CompareSwap = 0x13,
    FetchAdd = 0x14,
    SendLastInvalidate = 0x16,
    SendOnlyInvalidate = 0x17,
    Flush = 0x1c,
    AtomicWrite = 0x1d,
    CongestionNotification = 0x81,
};

[[nodiscard]] constexpr std::uint8_t opcode_of(Service service, Operation operation) noexcept {
    return static_cast<std::uint8_t>(static_cast<unsigned>(service) | static_cast<unsigned>(operation));
}

enum class Role : std::uint8_t { Request, Response, Acknowledge, Notification };
enum class Place : std::uint8_t { First, Middle, Last, Only };  // place in the message
enum class Payload : std::uint8_t { None, Carried };            // Carried: the payload may still be empty

struct OpcodeTraits {
    Operation operation{};
    std::string_view name{};  // without the service: "SEND First"
    Role role{};
    Place place{};
    Payload payload{};
    HeaderSet headers{};
    Service service{};
    std::uint8_t header_bytes = 0;  // BTH and extension headers

    [[nodiscard]] constexpr std::uint8_t opcode() const noexcept { return opcode_of(service, operation); }
    [[nodiscard]] constexpr bool starts_message() const noexcept {
        return place == Place::First || place == Place::Only;
    }
    [[nodiscard]] constexpr bool ends_message() const noexcept { return place == Place::Last || place == Place::Only; }
};

// Returns nullptr for an opcode that no service here has.
[[nodiscard]] const OpcodeTraits* find_opcode(std::uint8_t opcode) noexcept;
// Returns true for a response or an acknowledgement of a connection; the opcode may be unknown. Looks at no table.
[[nodiscard]] constexpr bool is_answer(std::uint8_t opcode) noexcept {
    const auto operation = static_cast<unsigned>(opcode) & 0x1fU;
    return operation >= static_cast<unsigned>(Operation::ReadResponseFirst) &&
           operation <= static_cast<unsigned>(Operation::AtomicAcknowledge);
}
// Returns "RC", "UC", "UD", "CNP" or "XRC".
[[nodiscard]] std::string_view name_of(Service service) noexcept;

}  // namespace cairn::wire
