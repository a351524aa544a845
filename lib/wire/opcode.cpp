#include "lib/wire/opcode.hpp"

#include <array>

#include "lib/wire/bth.hpp"

namespace cairn::wire {

namespace {

using enum Operation;
using enum Place;
using enum Payload;

// The operations of RC are all but the last one. The other services take theirs from here.
constexpr std::array kOperations{
    OpcodeTraits{SendFirst, "SEND First", Role::Request, First, Carried, HeaderSet::of<>()},
    OpcodeTraits{SendMiddle, "SEND Middle", Role::Request, Middle, Carried, HeaderSet::of<>()},
    OpcodeTraits{SendLast, "SEND Last", Role::Request, Last, Carried, HeaderSet::of<>()},
    OpcodeTraits{SendLastImmediate, "SEND Last with Immediate", Role::Request, Last, Carried, HeaderSet::of<ImmDt>()},
    OpcodeTraits{SendOnly, "SEND Only", Role::Request, Only, Carried, HeaderSet::of<>()},
    OpcodeTraits{SendOnlyImmediate, "SEND Only with Immediate", Role::Request, Only, Carried, HeaderSet::of<ImmDt>()},
    OpcodeTraits{WriteFirst, "RDMA WRITE First", Role::Request, First, Carried, HeaderSet::of<Reth>()},
    OpcodeTraits{WriteMiddle, "RDMA WRITE Middle", Role::Request, Middle, Carried, HeaderSet::of<>()},
    OpcodeTraits{WriteLast, "RDMA WRITE Last", Role::Request, Last, Carried, HeaderSet::of<>()},
    OpcodeTraits{WriteLastImmediate, "RDMA WRITE Last with Immediate", Role::Request, Last, Carried,
                 HeaderSet::of<ImmDt>()},
    OpcodeTraits{WriteOnly, "RDMA WRITE Only", Role::Request, Only, Carried, HeaderSet::of<Reth>()},
    OpcodeTraits{WriteOnlyImmediate, "RDMA WRITE Only with Immediate", Role::Request, Only, Carried,
                 HeaderSet::of<Reth, ImmDt>()},
    OpcodeTraits{ReadRequest, "RDMA READ Request", Role::Request, Only, None, HeaderSet::of<Reth>()},
    OpcodeTraits{ReadResponseFirst, "RDMA READ response First", Role::Response, First, Carried, HeaderSet::of<Aeth>()},
    OpcodeTraits{ReadResponseMiddle, "RDMA READ response Middle", Role::Response, Middle, Carried, HeaderSet::of<>()},
    OpcodeTraits{ReadResponseLast, "RDMA READ response Last", Role::Response, Last, Carried, HeaderSet::of<Aeth>()},
    OpcodeTraits{ReadResponseOnly, "RDMA READ response Only", Role::Response, Only, Carried, HeaderSet::of<Aeth>()},
    OpcodeTraits{Acknowledge, "Acknowledge", Role::Acknowledge, Only, None, HeaderSet::of<Aeth>()},
    OpcodeTraits{AtomicAcknowledge, "ATOMIC Acknowledge", Role::Response, Only, None,
                 HeaderSet::of<Aeth, AtomicAckEth>()},
    OpcodeTraits{CompareSwap, "CmpSwap", Role::Request, Only, None, HeaderSet::of<AtomicEth>()},
    OpcodeTraits{FetchAdd, "FetchAdd", Role::Request, Only, None, HeaderSet::of<AtomicEth>()},
    OpcodeTraits{SendLastInvalidate, "SEND Last with Invalidate", Role::Request, Last, Carried, HeaderSet::of<Ieth>()},
    OpcodeTraits{SendOnlyInvalidate, "SEND Only with Invalidate", Role::Request, Only, Carried, HeaderSet::of<Ieth>()},
    OpcodeTraits{Flush, "FLUSH", Role::Request, Only, None, HeaderSet::of<Feth, Reth>()},
    OpcodeTraits{AtomicWrite, "ATOMIC WRITE", Role::Request, Only, Carried, HeaderSet::of<Reth>()},
    OpcodeTraits{CongestionNotification, "Congestion Notification", Role::Notification, Only, None,
                 HeaderSet::of<CnpReserved>()},
};

struct ServiceTraits {
    Service service;
    std::string_view name;
    Operation first;  // the service has first ... last of kOperations
    Operation last;
    HeaderSet request_headers;  // headers that each of its requests has in addition
};
constexpr std::array kServices{
    ServiceTraits{Service::Rc, "RC", SendFirst, AtomicWrite, HeaderSet::of<>()},
    ServiceTraits{Service::Uc, "UC", SendFirst, WriteOnlyImmediate, HeaderSet::of<>()},
    ServiceTraits{Service::Ud, "UD", SendOnly, SendOnlyImmediate, HeaderSet::of<Deth>()},
    ServiceTraits{Service::Cnp, "CNP", CongestionNotification, CongestionNotification, HeaderSet::of<>()},
    ServiceTraits{Service::Xrc, "XRC", SendFirst, SendOnlyInvalidate, HeaderSet::of<Xrceth>()},
};

using Table = std::array<OpcodeTraits, 256>;  // an entry without a name is no opcode

consteval Table make_table() {
    Table table{};
    for (const ServiceTraits& service : kServices) {
        for (OpcodeTraits traits : kOperations) {
            if (traits.operation < service.first || traits.operation > service.last) {
                continue;
            }
            traits.service = service.service;
            if (traits.role == Role::Request) {
                traits.headers = traits.headers.with(service.request_headers);
            }
            traits.header_bytes = static_cast<std::uint8_t>(Bth::kBytes + traits.headers.bytes());
            table[traits.opcode()] = traits;
        }
    }
    return table;
}

constexpr Table kTable = make_table();
static_assert(kTable[0x64].header_bytes == 12 + 8);       // UD SEND Only
static_assert(kTable[0x81].header_bytes == 12 + 16);      // CNP
static_assert(kTable[0xb4].header_bytes == 12 + 4 + 28);  // XRC FetchAdd

}  // namespace

const OpcodeTraits* find_opcode(std::uint8_t opcode) noexcept {
    const OpcodeTraits& traits = kTable[opcode];
    return traits.name.empty() ? nullptr : &traits;
}

std::string_view name_of(Service service) noexcept {
    for (const ServiceTraits& traits : kServices) {
        if (traits.service == service) {
            return traits.name;
        }
    }
    return {};
}

}  // namespace cairn::wire
