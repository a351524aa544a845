#include "tests/sim/stranger.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "lib/port/port.hpp"
#include "lib/roce/ud.hpp"
#include "rpc/erpc/control.hpp"
#include "rpc/erpc/header.hpp"

namespace cairn::sim {

namespace {

constexpr std::size_t kHeaders = sizeof(roce::RawUd) + sizeof(erpc::RawHeader);
constexpr std::size_t kControlBytes = kHeaders + sizeof(erpc::RawControl) + port::kIcrcBytes;
constexpr std::size_t kFirstForged = static_cast<std::size_t>(erpc::ControlType::Accepted);  // a Connect is anyone's
constexpr std::size_t kLastForged = static_cast<std::size_t>(erpc::ControlType::Reset);

// One datagram under construction, with the room that lower headers need before it.
struct Draft {
    std::array<std::uint8_t, 128 + port::kMaxUdpPayloadBytes> bytes;
    std::size_t len;

    explicit Draft(std::span<const std::uint8_t> seen) noexcept : len(seen.size()) {
        std::memcpy(datagram(), seen.data(), len);
    }

    [[nodiscard]] std::uint8_t* datagram() noexcept { return bytes.data() + 128; }
    [[nodiscard]] roce::RawUd& ud() noexcept { return *reinterpret_cast<roce::RawUd*>(datagram()); }
    [[nodiscard]] erpc::RawHeader& header() noexcept {
        return *reinterpret_cast<erpc::RawHeader*>(datagram() + sizeof(roce::RawUd));
    }
    [[nodiscard]] erpc::RawControl& control() noexcept {
        return *reinterpret_cast<erpc::RawControl*>(datagram() + kHeaders);
    }
};

// The slot's next request or response, with other contents.
void forge_data(Draft& draft, erpc::Header header) noexcept {
    header.request_number += erpc::kSlotsPerSession;
    header.emit(draft.header());
    for (std::size_t i = kHeaders; i < draft.len - port::kIcrcBytes; ++i) {
        draft.datagram()[i] = static_cast<std::uint8_t>(~draft.datagram()[i]);
    }
}

// "I know no such session", to the client whose request this is.
void forge_reset(Draft& draft, const erpc::Header& request) noexcept {
    erpc::Control reset;
    reset.type = erpc::ControlType::Reset;
    reset.sender_session = request.session;
    reset.request_number = request.request_number;
    reset.emit(draft.control());
    erpc::Header header;
    header.kind = erpc::Kind::Control;
    header.message_bytes = sizeof(erpc::RawControl);
    header.emit(draft.header());
    draft.ud().bth.flags = 0x40;  // no pad
    std::swap(draft.ud().bth.dest_qpn, draft.ud().source_qpn);
    draft.len = kControlBytes;
}

}  // namespace

void Stranger::forge_from(const Frame& frame, Instant now) {
    Draft draft(std::span(frame.bytes).subspan(frame.lower_bytes()));
    if (draft.len < kHeaders + port::kIcrcBytes || !draft.header().well_formed() ||
        frame.source() == network_.address_of(node_)) {
        return;
    }
    const erpc::Header header = erpc::Header::parse(draft.header());
    net::IpAddress from = frame.source();
    net::IpAddress to = frame.destination();
    if (header.kind == erpc::Kind::Control) {
        if (draft.len != kControlBytes || draft.control().type < kFirstForged) {
            return;  // who sends another's Connect first has its session: tokens are unguessable instead
        }
        draft.control().type = static_cast<std::uint8_t>(random_.between(kFirstForged, kLastForged));
    } else if (header.type == erpc::PacketType::Request && random_.chance(kMillion / 2)) {
        forge_reset(draft, header);
        std::swap(from, to);
    } else {
        forge_data(draft, header);
    }
    if (random_.chance(kMillion / 2)) {
        from = network_.address_of(node_);
    } else {
        draft.ud().source_qpn.set(draft.ud().source_qpn.get() + 1);
    }
    port::Path path({from, to, frame.udp_source_port(), 0});
    path.resolve(Network::mac_of(node_), Network::mac_of(network_.node_of(to)));
    path.seal(draft.datagram(), static_cast<std::uint16_t>(draft.len));
    std::uint8_t* const first = draft.datagram() - path.lower_bytes();
    network_.send(node_, Frame{std::vector<std::uint8_t>(first, draft.datagram() + draft.len)}, now);
    ++forged_;
}

}  // namespace cairn::sim
