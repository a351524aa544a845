#include "rpc/sim/stranger.hpp"

#include <utility>

#include "rpc/sim/draft.hpp"

namespace cairn::sim {

namespace {

constexpr std::size_t kFirstForged = static_cast<std::size_t>(erpc::ControlType::Accepted);  // all may send Connects
constexpr std::size_t kLastForged = static_cast<std::size_t>(erpc::ControlType::RequestRefused);

// Forges the slot's next request or response, with other contents.
void forge_data(Draft& draft, erpc::Header header) noexcept {
    header.request_number += erpc::kSlotsPerSession;
    header.emit(draft.header());
    for (std::size_t i = Draft::kHeaders; i < draft.len - port::kIcrcBytes; ++i) {
        draft.datagram()[i] = static_cast<std::uint8_t>(~draft.datagram()[i]);
    }
}

// Forges the answer "no such session" to the client of this request. All but the token is right.
void forge_end(Draft& draft, const erpc::Header& request) noexcept {
    erpc::Control end;
    end.type = erpc::ControlType::Disconnected;
    end.sender_session = end.receiver_session = request.session;
    end.token = request.request_number;
    end.first_request = request.request_number;
    end.emit(draft.control());
    erpc::Header header;
    header.kind = erpc::Kind::Control;
    header.message_bytes = sizeof(erpc::RawControl);
    header.emit(draft.header());
    draft.ud().bth.flags = 0x40;  // no pad
    std::swap(draft.ud().bth.dest_qpn, draft.ud().deth.source_qpn);
    draft.len = Draft::kControlBytes;
}

}  // namespace

void Stranger::forge_from(const Frame& frame, Instant now) {
    Draft draft;
    draft.copy(std::span(frame.bytes).subspan(frame.lower_bytes()));
    if (!draft.readable() || frame.source() == network_.address_of(node_)) {
        return;
    }
    const erpc::Header header = erpc::Header::parse(draft.header());
    net::IpAddress from = frame.source();
    net::IpAddress to = frame.destination();
    if (header.kind == erpc::Kind::Control) {
        if (draft.len < Draft::kControlBytes || draft.control().type < kFirstForged) {
            return;  // the first sender of a Connect gets its session; secret tokens prevent that
        }
        draft.control().type = static_cast<std::uint8_t>(random_.between(kFirstForged, kLastForged));
    } else if (header.type == erpc::PacketType::Request && random_.chance(kMillion / 2)) {
        forge_end(draft, header);
        std::swap(from, to);
    } else {
        forge_data(draft, header);
    }
    if (random_.chance(kMillion / 2)) {
        from = network_.address_of(node_);
    } else {
        draft.ud().deth.source_qpn.set(draft.ud().deth.source_qpn.get() + 1);
    }
    draft.send(network_, node_, {from, to, frame.udp_source_port(), 0}, now);
    ++forged_;
}

}  // namespace cairn::sim
