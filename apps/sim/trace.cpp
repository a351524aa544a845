#include "apps/sim/trace.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "lib/port/port.hpp"
#include "lib/roce/ud/mux.hpp"
#include "lib/wire/cm_message.hpp"
#include "lib/wire/packet.hpp"
#include "rpc/erpc/control.hpp"
#include "rpc/erpc/header.hpp"

namespace cairn::simulate {

namespace {

constexpr double kNanosecondsPerMillisecond = 1e6;

std::string name_of(const sim::WorldPlan& plan, std::size_t node) {
    return node < plan.clients                   ? fmt::format("client {}", node)
           : node < plan.clients + plan.servers  ? fmt::format("server {}", node)
           : node == plan.clients + plan.servers ? std::string("stranger")
                                                 : std::string("babbler");
}

std::string_view name_of(erpc::PacketType type) noexcept {
    switch (type) {
        case erpc::PacketType::Request:
            return "Request";
        case erpc::PacketType::Rfr:
            return "Rfr";
        case erpc::PacketType::CreditReturn:
            return "CreditReturn";
        case erpc::PacketType::Response:
            return "Response";
    }
    return "";
}

std::string_view name_of(erpc::ControlType type) noexcept {
    switch (type) {
        case erpc::ControlType::Connect:
            return "Connect";
        case erpc::ControlType::Accepted:
            return "Accepted";
        case erpc::ControlType::Refused:
            return "Refused";
        case erpc::ControlType::Disconnect:
            return "Disconnect";
        case erpc::ControlType::Disconnected:
            return "Disconnected";
        case erpc::ControlType::Ping:
            return "Ping";
        case erpc::ControlType::Pong:
            return "Pong";
        case erpc::ControlType::Challenge:
            return "Challenge";
        case erpc::ControlType::RequestRefused:
            return "RequestRefused";
    }
    return "";
}

std::string control_text(std::span<const std::uint8_t> message) {
    erpc::RawControl raw{};
    if (message.size() < sizeof(raw)) {
        return "a control packet without its message";
    }
    std::memcpy(&raw, message.data(), sizeof(raw));
    if (!erpc::Control::known(raw)) {
        return "a control packet of no known type";
    }
    const erpc::Control control = erpc::Control::parse(raw);
    return fmt::format("{:<12} session {:>3} from {:>3}", name_of(control.type), control.receiver_session.value,
                       control.sender_session.value);
}

// Returns the text of a UDP payload; a damaged one may have any contents.
std::string packet_text(std::span<const std::uint8_t> datagram) {
    constexpr std::size_t kHeaders = sizeof(wire::RawUd) + sizeof(erpc::RawHeader);
    erpc::RawHeader raw{};
    if (datagram.size() < kHeaders + port::kIcrcBytes) {
        return "too short for eRPC";
    }
    std::memcpy(&raw, datagram.data() + sizeof(wire::RawUd), sizeof(raw));
    if (!raw.well_formed()) {
        return "no eRPC header";
    }
    const erpc::Header header = erpc::Header::parse(raw);
    if (header.kind == erpc::Kind::Control) {
        return control_text(datagram.subspan(kHeaders, datagram.size() - kHeaders - port::kIcrcBytes));
    }
    return fmt::format("{:<12} session {:>3} request {:>14} packet {:>3}", name_of(header.type), header.session.value,
                       header.request_number, header.packet_number);
}

// Returns the text of a management datagram.
std::string message_text(std::span<const std::uint8_t> payload) {
    constexpr std::string_view kNames[] = {"REQ",  "MRA",      "REJ",      "REP", "RTU", "DREQ",
                                           "DREP", "SIDR REQ", "SIDR REP", "LAP", "APR"};
    wire::RawMadHeader raw{};
    if (payload.size() < sizeof(raw)) {
        return "too short for a management datagram";
    }
    std::memcpy(&raw, payload.data(), sizeof(raw));
    const std::size_t kind = raw.attribute.get() - std::size_t{wire::Req::kAttribute};
    return fmt::format("CM {:<9} transaction 0x{:016x}",
                       kind < std::size(kNames) ? kNames[kind] : std::string_view("?"), raw.transaction.get());
}

}  // namespace

std::string trace_line(const sim::WorldPlan& plan, const sim::Network::Passage& passage, const sim::Frame& frame) {
    const std::string packet = packet_text(std::span(frame.bytes).subspan(frame.lower_bytes()));
    std::string line =
        fmt::format("{:>12.6f} ms  {:>8} -> {:<8}  {:<58} {:>4} bytes  {}",
                    static_cast<double>(passage.sent.ns) / kNanosecondsPerMillisecond, name_of(plan, passage.from),
                    name_of(plan, passage.to), packet, frame.bytes.size(), sim::text_of(passage.fate));
    if (passage.fate <= sim::Fate::Late) {
        line +=
            fmt::format(", arrives at {:.6f} ms", static_cast<double>(passage.arrival.ns) / kNanosecondsPerMillisecond);
    }
    return line;
}

std::string trace_line(const sim::Network::Passage& passage, const sim::Frame& frame) {
    return trace_line({passage.sent, passage.from, passage.to, sim::text_of(passage.fate)},
                      std::span(frame.bytes).subspan(frame.lower_bytes()));
}

std::string trace_line(const sim::DatagramLog::Passage& passage, std::span<const std::uint8_t> datagram) {
    const wire::Parsed<wire::Packet> parsed = wire::Packet::parse(datagram);
    std::string packet = "no packet";
    if (parsed.ok()) {
        const wire::Packet& it = parsed.value();
        packet = it.bth().dest_qpn == wire::kGeneralServicesQpn
                     ? message_text(it.payload())
                     : fmt::format("{} {:<25} to 0x{:06x} PSN 0x{:06x}", wire::name_of(it.traits().service),
                                   it.traits().name, it.bth().dest_qpn.value, it.bth().psn.value());
    }
    return fmt::format("{:>12.6f} ms  host {} -> host {}  {:<58} {:>4} bytes  {}",
                       static_cast<double>(passage.sent.ns) / kNanosecondsPerMillisecond, passage.from, passage.to,
                       packet, datagram.size(), passage.fate);
}

}  // namespace cairn::simulate
