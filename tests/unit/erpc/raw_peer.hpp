// A host without an endpoint: it sends the packets of the test, and keeps the packets that it gets.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "lib/roce/send/sender.hpp"
#include "rpc/erpc/control.hpp"
#include "rpc/erpc/header.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::erpc {

class RawPeer final : public roce::UdReceiver {
public:
    struct Heard {
        Header header{};
        std::vector<std::uint8_t> payload;  // after the header
        roce::UdAddress from{};

        // Returns the control message of a control packet.
        [[nodiscard]] Control control() const {
            RawControl raw{};
            std::memcpy(&raw, payload.data(), std::min(sizeof(raw), payload.size()));
            return Control::parse(raw);
        }
    };

    explicit RawPeer(const char* address, Qpn qpn = Qpn{0x100})
        : port(address, 1024), service_(port), sender_(port), qp_(service_.create_qp({qpn, kQkey}, *this).value()) {}

    [[nodiscard]] roce::UdAddress address_of(const test::WirePort& other, std::uint16_t udp_source_port = 0xc000) {
        return {port.open_path({port.local_address(), other.local_address(), udp_source_port, 0}, {}), Qpn{0x100},
                kQkey};
    }
    void send(const roce::UdAddress& to, const Header& header, std::span<const std::uint8_t> payload, Instant now) {
        const port::PacketRef buffer = sender_.take();
        wire::RawUd ud = qp_->make_header(to);
        const std::size_t pad = (0 - payload.size()) & 3U;
        ud.bth.flags = static_cast<std::uint8_t>(ud.bth.flags | (pad << 4U));
        std::memcpy(buffer.data, &ud, sizeof(ud));
        header.emit(*reinterpret_cast<RawHeader*>(buffer.data + sizeof(ud)));
        std::uint8_t* const behind = buffer.data + sizeof(ud) + sizeof(RawHeader);
        std::copy(payload.begin(), payload.end(), behind);
        std::memset(behind + payload.size(), 0, pad);
        sent_bytes += payload.size() + kOverheadBytes;
        sender_.send(buffer, to.path, sizeof(ud) + sizeof(RawHeader) + payload.size() + pad + port::kIcrcBytes, {},
                     now);
        sender_.flush(now);
    }
    // Sends a control packet. `bytes` is the size of the payload; bytes after the control message are zero.
    void send(const roce::UdAddress& to, const Control& control, Instant now, std::size_t bytes = sizeof(RawControl)) {
        std::vector<std::uint8_t> payload(std::max(bytes, sizeof(RawControl)));
        control.emit(*reinterpret_cast<RawControl*>(payload.data()));
        payload.resize(bytes);
        Header header;
        header.kind = Kind::Control;
        header.message_bytes = static_cast<std::uint32_t>(bytes);
        header.session = control.receiver_session;
        send(to, header, payload, now);
    }
    void turn(Instant now) {
        std::array<port::PacketRef, 16> burst;
        for (std::size_t count = burst.size(); count == burst.size();) {
            count = port.receive_burst(burst, now);
            service_.on_packets(std::span(burst).first(count), now);
        }
        sender_.flush(now);
    }
    void on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant) noexcept override {
        for (const roce::UdDatagram& datagram : datagrams) {
            const std::span<const std::uint8_t> payload(datagram.payload + sizeof(RawHeader),
                                                        datagram.payload_bytes - sizeof(RawHeader));
            heard.push_back({Header::parse(*reinterpret_cast<const RawHeader*>(datagram.payload)),
                             {payload.begin(), payload.end()},
                             {datagram.packet->path, datagram.source_qpn, kQkey}});
            heard_bytes += payload.size() + kOverheadBytes;
        }
    }
    // Asks for a session as a client, with a cookie or without.
    void ask(const roce::UdAddress& to, std::uint64_t token, std::uint64_t cookie, Instant now) {
        Control control;
        control.type = ControlType::Connect;
        control.credits = 8;
        control.path_mtu_bytes = kPathMtuBytes;
        control.token = token;
        control.cookie = cookie;
        send(to, control, now, control.payload_bytes(kPacketBytes));
    }
    // Makes both round trips. Returns the last message it got: Accepted or Refused.
    template <class Host>
    Control open(Host& host, const roce::UdAddress& to, std::uint64_t token, Instant now) {
        for (std::uint64_t cookie = 0;;) {
            heard.clear();
            ask(to, token, cookie, now);
            host.turn(now);
            turn(now);
            const Control answer = heard.empty() ? Control{} : heard.back().control();
            if (answer.type != ControlType::Challenge || cookie != 0) {
                return answer;
            }
            cookie = answer.cookie;
        }
    }
    // Accepts as the server of the last Connect's sender: the session's numbers begin at `first_request`.
    Heard accept(std::uint64_t first_request, Instant now) {
        const Heard asked = *last(ControlType::Connect);
        accepted = {};
        accepted.type = ControlType::Accepted;
        accepted.receiver_session = asked.control().sender_session;
        accepted.token = asked.control().token;
        accepted.first_request = first_request;
        send(asked.from, accepted, now, kPacketBytes);
        return asked;
    }
    // Returns the last control packet of this type that it got.
    [[nodiscard]] std::optional<Heard> last(ControlType type) const {
        for (auto each = heard.rbegin(); each != heard.rend(); ++each) {
            if (each->header.kind == Kind::Control && each->control().type == type) {
                return *each;
            }
        }
        return std::nullopt;
    }

    static constexpr Qkey kQkey{0x205};
    static constexpr std::uint16_t kPathMtuBytes = 1024;
    static constexpr std::uint32_t kPacketBytes = kPathMtuBytes - sizeof(RawHeader);
    static constexpr std::size_t kOverheadBytes = 14 + 20 + 8 + 12 + 8 + 16 + 4;  // the overhead of a packet on an
                                                                                  // Ethernet

    test::WirePort port;
    std::vector<Heard> heard;
    Control accepted{};  // the last message of accept()
    std::size_t heard_bytes = 0;
    std::size_t sent_bytes = 0;

private:
    roce::UdMux service_;
    roce::Sender sender_;
    roce::UdEntry* qp_;
};

}  // namespace cairn::erpc
