#include "rpc/sim/babbler.hpp"

#include <algorithm>
#include <array>

#include "rpc/erpc/session.hpp"

namespace cairn::sim {

namespace {

constexpr std::uint32_t kHalf = kMillion / 2;
constexpr std::uint16_t kUdpSourcePort = 0xc0b0;

}  // namespace

Babbler::Babbler(Network& network, std::size_t node, std::size_t hosts, std::uint16_t path_mtu_bytes, Qpn qpn,
                 std::uint64_t seed) noexcept
    : network_(network),
      node_(node),
      hosts_(hosts),
      packet_bytes_(path_mtu_bytes - static_cast<std::uint32_t>(sizeof(erpc::RawHeader))),
      path_mtu_bytes_(path_mtu_bytes),
      qpn_(qpn),
      random_(seed) {}

void Babbler::on_frame(const Frame& frame, Instant now) {
    Draft seen;
    seen.copy(std::span(frame.bytes).subspan(frame.lower_bytes()));
    const std::size_t from = network_.node_of(frame.source());
    port::Path path({network_.address_of(node_), frame.source(), frame.udp_source_port(), 0});
    // The forger's packets have the forger's address, or another queue pair.
    if (!seen.readable() || !seen.whole(path) || from >= hosts_ || seen.ud().deth.source_qpn.get() != qpn_.value) {
        return;
    }
    const erpc::Header header = erpc::Header::parse(seen.header());
    if (header.kind == erpc::Kind::Control) {
        if (seen.len >= Draft::kControlBytes && erpc::Control::known(seen.control())) {
            on_control(erpc::Control::parse(seen.control()), from, now);
        }
        return;
    }
    for (Talk& talk : talks_) {
        if (talk.serves && talk.peer == from && header.type != erpc::PacketType::Response) {
            talk.request = header;
        }
    }
}

void Babbler::on_control(const erpc::Control& control, std::size_t from, Instant now) {
    erpc::Control answer = control;
    answer.sender_session = SessionId{static_cast<std::uint16_t>(random_.below(4))};
    answer.receiver_session = control.sender_session;
    answer.cookie = random_.next();
    answer.first_request = random_.chance(kMillion / 10) ? random_.next() : first_request_;
    switch (control.type) {
        case erpc::ControlType::Connect:
            answer.type = random_.chance(kMillion / 10) ? erpc::ControlType::Refused : erpc::ControlType::Accepted;
            answer.credits = static_cast<std::uint16_t>(random_.next());
            if (control.cookie == 0 || random_.chance(kMillion / 10)) {
                answer.type = erpc::ControlType::Challenge;
            }
            talks_.push_back({from, true, control.sender_session, control.token, 0, {}});
            break;
        case erpc::ControlType::Challenge: {
            erpc::Control proof = parameters_of(control.token);
            proof.cookie = random_.chance(kMillion / 10) ? random_.next() : control.cookie;
            send_control(from, proof, now);
            break;
        }
        case erpc::ControlType::Accepted:
            believed_ += control.token & 1U;
            talks_.push_back({from, false, control.sender_session, control.token, control.first_request, {}});
            break;
        case erpc::ControlType::Ping:
            answer.type = erpc::ControlType::Pong;
            break;
        case erpc::ControlType::Refused:
        case erpc::ControlType::Disconnect:
        case erpc::ControlType::Disconnected:
        case erpc::ControlType::Pong:
        case erpc::ControlType::RequestRefused:
            break;
    }
    if (talks_.size() > kTalksMost) {
        talks_.erase(talks_.begin());
    }
    if (answer.type != control.type) {
        send_control(from, answer, now);
    }
}

void Babbler::babble(std::size_t server, Instant now) {
    if (talks_.empty() || random_.chance(kMillion / 50)) {
        connect(server, now);
        return;
    }
    const Talk& talk = talks_[random_.below(talks_.size())];
    if (random_.chance(kMillion / 20)) {
        erpc::Control control;
        control.type = static_cast<erpc::ControlType>(random_.below(12));  // 1 to 9 are known
        control.reason = static_cast<erpc::RefuseReason>(random_.below(12));
        control.token = random_.chance(kHalf) ? talk.token : random_.next();
        control.receiver_session = random_.chance(kHalf) ? talk.theirs : SessionId{any_number()};
        control.first_request = random_.chance(kHalf) ? talk.first_request : random_.next();
        control.cookie = random_.chance(kHalf) ? 0 : random_.next();
        control.request_number = random_.chance(kHalf) ? talk.request.request_number : random_.next();
        send_control(talk.peer, control, now);
        return;
    }
    std::size_t payload_bytes = 0;
    const erpc::Header header = talk.serves ? answer_to(talk, payload_bytes) : request_to(talk, payload_bytes);
    send_data(talk, header, payload_bytes, now);
}

void Babbler::connect(std::size_t server, Instant now) {
    send_control(server, parameters_of(random_.next()), now);
}

// Returns random parameters. A quarter of them are valid, and only these have even tokens.
erpc::Control Babbler::parameters_of(std::uint64_t token) {
    constexpr std::array<std::uint16_t, 6> kCredits{0, 1, 32, 128, 129, 0xffff};
    erpc::Control control;
    control.type = erpc::ControlType::Connect;
    control.sender_session = SessionId{any_number()};
    control.credits = kCredits[random_.below(kCredits.size())];
    control.features = static_cast<std::uint16_t>(random_.next());
    control.path_mtu_bytes = random_.chance(kHalf) ? path_mtu_bytes_ : static_cast<std::uint16_t>(random_.next());
    const bool sound =
        control.credits != 0 && control.credits <= erpc::kMaxCredits && control.path_mtu_bytes == path_mtu_bytes_;
    control.token = (token & ~std::uint64_t{1}) | (sound ? 0U : 1U);
    return control;
}

// Returns a request packet. Half of them are packets of one valid message per request number, so that some arrive
// whole.
erpc::Header Babbler::request_to(const Talk& talk, std::size_t& payload_bytes) {
    erpc::Header header;
    header.session = random_.chance(kMillion / 20) ? SessionId{any_number()} : talk.theirs;
    header.request_type = static_cast<std::uint8_t>(random_.between(kType, kNoType));
    header.type = static_cast<erpc::PacketType>(random_.chance(kHalf) ? 0 : random_.below(4));
    const std::uint64_t round = random_.between(1, 6);
    const std::uint64_t first = talk.first_request + erpc::kSlotsPerSession;
    header.request_number = random_.chance(kMillion / 10)
                                ? random_.next() & erpc::kRequestNumberMask
                                : first + round * erpc::kSlotsPerSession + random_.below(erpc::kSlotsPerSession);
    if (random_.chance(kHalf)) {
        header.type = erpc::PacketType::Request;
        header.request_type = static_cast<std::uint8_t>(kType + header.request_number % 2);
        header.message_bytes = static_cast<std::uint32_t>(header.request_number % 4 * packet_bytes_ + round);
        const std::uint32_t packets = erpc::packets_of(header.message_bytes, packet_bytes_);
        header.packet_number = static_cast<std::uint16_t>(random_.below(packets));
        payload_bytes = erpc::bytes_of_packet(header.message_bytes, packet_bytes_, header.packet_number);
    } else {
        header.message_bytes = any_size();
        header.packet_number = any_number();
        payload_bytes = std::min(any_size(), packet_bytes_);
    }
    return header;
}

// Returns an answer to the last request that it saw, with that request's numbers or with others.
erpc::Header Babbler::answer_to(const Talk& talk, std::size_t& payload_bytes) {
    erpc::Header header = talk.request;
    header.session = talk.theirs;
    header.type = random_.chance(kHalf) ? erpc::PacketType::Response : static_cast<erpc::PacketType>(random_.below(4));
    header.packet_number = random_.chance(kHalf) ? talk.request.packet_number : any_number();
    header.message_bytes = any_size();
    payload_bytes = random_.chance(kHalf) ? header.message_bytes : any_size();
    payload_bytes = std::min<std::size_t>(payload_bytes, packet_bytes_);
    return header;
}

void Babbler::send_data(const Talk& talk, erpc::Header header, std::size_t payload_bytes, Instant now) {
    Draft draft;
    header.emit(draft.header());
    if (random_.chance(kMillion / 10)) {
        spoil(draft.header());
    }
    std::memset(draft.datagram() + Draft::kHeaders, static_cast<int>(random_.below(256)), payload_bytes + 3);
    const bool truncated = random_.chance(kMillion / 50);
    draft.len = truncated ? random_.below(Draft::kHeaders) : Draft::kHeaders + payload_bytes;
    send(draft, talk.peer, now);
}

void Babbler::send_control(std::size_t to, const erpc::Control& control, Instant now) {
    Draft draft;
    erpc::Header header;
    header.kind = erpc::Kind::Control;
    header.message_bytes = control.payload_bytes(packet_bytes_);
    header.emit(draft.header());
    std::memset(draft.datagram() + Draft::kHeaders, 0, header.message_bytes);
    control.emit(draft.control());
    const bool short_one = random_.chance(kMillion / 50);
    draft.len = Draft::kHeaders + header.message_bytes - (short_one ? 4 : 0);
    send(draft, to, now);
}

// Makes a header of another version, of another kind, or with a wrong magic.
void Babbler::spoil(erpc::RawHeader& header) {
    switch (random_.below(3)) {
        case 0:
            header.version = static_cast<std::uint8_t>(erpc::kHeaderVersion + random_.between(1, 255));
            break;
        case 1:
            header.kind = static_cast<std::uint8_t>(random_.between(2, 255));
            break;
        default:
            header.request_and_magic.set(header.request_and_magic.get() ^ random_.between(1, 15));
            break;
    }
}

void Babbler::send(Draft& draft, std::size_t to, Instant now) {
    const std::size_t payload_end = std::max(draft.len, sizeof(wire::RawUd));
    const std::size_t pad = (0 - payload_end) & 3U;
    wire::Bth bth;
    bth.opcode = wire::kUdSendOnly;
    bth.dest_qpn = qpn_;
    bth.pad_count = static_cast<std::uint8_t>(pad);
    bth.emit(draft.ud().bth);
    draft.ud().deth.qkey.set(kErpcQkey.value);
    draft.ud().deth.reserved = 0;
    draft.ud().deth.source_qpn.set(qpn_.value);
    draft.len = payload_end + pad + port::kIcrcBytes;
    draft.send(network_, node_, {network_.address_of(node_), network_.address_of(to), kUdpSourcePort, 0}, now);
    ++sent_;
}

// Returns a size at or near a limit, or a random one.
std::uint32_t Babbler::any_size() {
    const std::array<std::uint32_t, 10> sizes{0,
                                              1,
                                              packet_bytes_ - 1,
                                              packet_bytes_,
                                              packet_bytes_ + 1,
                                              packet_bytes_ * 3 + 5,
                                              packet_bytes_ * 200,
                                              erpc::kMaxMessageBytes,
                                              static_cast<std::uint32_t>(random_.below(packet_bytes_)),
                                              static_cast<std::uint32_t>(random_.below(erpc::kMaxMessageBytes))};
    return sizes[random_.below(sizes.size())];
}

std::uint16_t Babbler::any_number() {
    const std::array<std::uint16_t, 8> numbers{0,   1,   2,      static_cast<std::uint16_t>(random_.below(8)),
                                               127, 128, 0x3fff, static_cast<std::uint16_t>(random_.next())};
    return numbers[random_.below(numbers.size())];
}

}  // namespace cairn::sim
