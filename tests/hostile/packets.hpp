// The attacker's packets, as bytes with room for the ICRC. eRPC's formats are written here a second time, from their
// description. If the production headers change and the description does not, an attack reaches nothing.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/endian.hpp"
#include "lib/base/types.hpp"
#include "lib/wire/cm_message.hpp"
#include "lib/wire/packet.hpp"

namespace cairn::hostile {

using Bytes = std::vector<std::uint8_t>;

// Returns a packet as it is; for a datagram, with its Q_Key and sender.
[[nodiscard]] Bytes bytes_of(const wire::Packet& packet);
[[nodiscard]] Bytes datagram(Qpn to, Qkey qkey, Qpn from, std::span<const std::uint8_t> payload);
[[nodiscard]] Bytes management(const wire::CmMad& mad);
// Returns the message that a datagram to queue pair 1 carries, or nullopt for another datagram.
[[nodiscard]] std::optional<wire::CmMad> management_of(std::span<const std::uint8_t> udp_payload);

// Returns an IPv4 address as the connection manager writes it.
[[nodiscard]] wire::Gid gid_of(in_addr address);
// Makes a question for the service of that name, with `data` after the addresses.
[[nodiscard]] wire::SidrReq sidr_question(std::uint32_t id, std::uint16_t service, in_addr from, in_addr to,
                                          std::span<const std::uint8_t> data = {});

// Makes a REQ for a reliable connection with the service of that name, with `data` after the addresses.
[[nodiscard]] wire::Req connection_request(std::uint32_t id, Qpn qpn, std::uint16_t service, in_addr from, in_addr to,
                                           std::span<const std::uint8_t> data);

enum class ErpcType : std::uint8_t { Request = 0, Rfr = 1, CreditReturn = 2, Response = 3 };

struct ErpcHeader {
    bool control = false;
    std::uint8_t request_type = 0;
    std::uint32_t message_bytes = 0;
    std::uint16_t session = 0;
    ErpcType type = ErpcType::Request;
    std::uint16_t packet_number = 0;
    std::uint64_t request_number = 0;
};
[[nodiscard]] Bytes erpc_payload(const ErpcHeader& header, std::span<const std::uint8_t> payload);
// The header of an eRPC datagram and what follows it.
struct ErpcDatagram {
    ErpcHeader header;
    std::span<const std::uint8_t> payload;
};
[[nodiscard]] std::optional<ErpcDatagram> erpc_of(std::span<const std::uint8_t> udp_payload);

}  // namespace cairn::hostile
