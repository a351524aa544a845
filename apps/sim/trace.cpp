#include "apps/sim/trace.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "lib/port/port.hpp"
#include "lib/roce/ud.hpp"
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
    constexpr std::string_view kNames[] = {"Connect",      "Accepted", "Refused", "Disconnect",
                                           "Disconnected", "Ping",     "Pong",    "Reset"};
    return kNames[static_cast<std::size_t>(type) - 1];
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

// Of the UDP payload; a damaged one may say anything.
std::string packet_text(std::span<const std::uint8_t> datagram) {
    constexpr std::size_t kHeaders = sizeof(roce::RawUd) + sizeof(erpc::RawHeader);
    erpc::RawHeader raw{};
    if (datagram.size() < kHeaders + port::kIcrcBytes) {
        return "too short for eRPC";
    }
    std::memcpy(&raw, datagram.data() + sizeof(roce::RawUd), sizeof(raw));
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

}  // namespace cairn::simulate
