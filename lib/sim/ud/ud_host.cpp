#include "lib/sim/ud/ud_host.hpp"

#include <algorithm>
#include <cstring>

#include "lib/port/path.hpp"

namespace cairn::sim {

namespace {

constexpr std::size_t kSlackBytes = 24;  // after the longest message of a place
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kDatagramHeaders = 20;  // BTH and DETH

}  // namespace

Grh grh_of(const std::uint8_t* ip, bool is_v4) {
    Grh grh{};
    const std::size_t bytes = is_v4 ? kIpv4Bytes : grh.size();
    std::memcpy(grh.data() + grh.size() - bytes, ip, bytes);
    return grh;
}

std::optional<roce::Drop> judge_datagram(std::span<const std::uint8_t> datagram) {
    if (datagram.size() < kDatagramHeaders + port::kIcrcBytes) {
        return roce::Drop::TooShort;
    }
    if ((datagram[1] & 0xfU) != 0) {
        return roce::Drop::BadVersion;
    }
    if (datagram[0] != wire::kUdSendOnly && datagram[0] != wire::kUdSendOnlyImmediate) {
        return roce::Drop::BadOpcode;
    }
    const std::size_t headers = kDatagramHeaders + (datagram[0] == wire::kUdSendOnlyImmediate ? 4 : 0);
    if (datagram.size() < headers + port::kIcrcBytes) {
        return roce::Drop::TooShort;
    }
    const std::size_t pad = datagram[1] >> 4U & 3U;
    const bool fits = datagram.size() >= headers + pad + port::kIcrcBytes && datagram.size() % 4 == 0;
    return fits ? std::nullopt : std::optional(roce::Drop::BadLength);
}

std::optional<UdMessage> message_of(const Frame& frame) {
    const std::span<const std::uint8_t> datagram = std::span(frame.bytes).subspan(frame.lower_bytes());
    if (judge_datagram(datagram)) {
        return std::nullopt;
    }
    const auto number_at = [&datagram](std::size_t at, std::size_t bytes) {
        std::uint32_t number = 0;
        for (const std::uint8_t octet : datagram.subspan(at, bytes)) {
            number = number << 8U | octet;
        }
        return number;
    };
    UdMessage message;
    message.from = frame.source();
    message.to = frame.destination();
    message.solicited = (datagram[1] & 0x80U) != 0;
    message.pkey = Pkey{static_cast<std::uint16_t>(number_at(2, 2))};
    message.dest = Qpn{number_at(5, 3)};
    message.qkey = Qkey{number_at(12, 4)};
    message.source = Qpn{number_at(17, 3)};
    std::size_t headers = kDatagramHeaders;
    if (datagram[0] == wire::kUdSendOnlyImmediate) {
        message.immediate = number_at(headers, 4);
        headers += 4;
    }
    const std::size_t pad = datagram[1] >> 4U & 3U;
    const auto payload = datagram.subspan(headers, datagram.size() - headers - pad - port::kIcrcBytes);
    message.payload.assign(payload.begin(), payload.end());
    return message;
}

UdHost::UdHost(Node& of, std::uint32_t path_mtu_bytes, Random& random)
    : node(of),
      index(of.host()),
      place_bytes((verbs::kGrhBytes + path_mtu_bytes + kSlackBytes) & ~std::size_t{7}),
      memory(2 * kMarginBytes + kPlaces * place_bytes + kSourceBytes, kUntouched) {
    for (std::size_t i = 0; i < kSourceBytes; ++i) {
        *at(source_at() + i) = static_cast<std::uint8_t>(random.next());
    }
}

void UdHost::start(std::span<const net::IpAddress> peers) {
    device = std::make_unique<verbs::Device>(node.worker());
    pd = device->create_pd();
    mr = device->register_memory(*pd, {at(0), source_at() + kSourceBytes}, verbs::Right::LocalWrite).value();
    for (const net::IpAddress& peer : peers) {
        ways.push_back(device->create_ah(peer, port::kFirstUdpSourcePort, node.now()).value());
    }
    free_places.clear();
    for (std::size_t i = 0; i < kPlaces; ++i) {
        free_place(i);
    }
}

void UdHost::stop() {
    users.clear();
    queues.clear();
    ways.clear();
    mr.reset();
    pd.reset();
    device.reset();
}

bool UdHost::is_untouched(std::size_t number, std::uint32_t from) {
    return std::all_of(place(number) + from, place(number) + place_bytes,
                       [](std::uint8_t octet) { return octet == kUntouched; });
}

bool UdHost::margins_untouched() const {
    const auto untouched = [](std::uint8_t octet) { return octet == kUntouched; };
    return std::all_of(memory.begin(), memory.begin() + kMarginBytes, untouched) &&
           std::all_of(memory.end() - kMarginBytes, memory.end(), untouched);
}

void UdHost::free_place(std::size_t number) {
    std::memset(place(number), kUntouched, place_bytes);
    free_places.push_back(number);
}

void UdHost::free_line(UdLine& line) {
    for (const UdPlace& each : line.posted) {
        free_place(each.number);
    }
    line.posted.clear();
}

UdUser* UdHost::find(Qpn qpn) {
    const auto found =
        std::find_if(users.begin(), users.end(), [qpn](const auto& user) { return user->qp->qpn() == qpn; });
    return found == users.end() ? nullptr : found->get();
}

}  // namespace cairn::sim
