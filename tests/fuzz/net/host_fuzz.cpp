// A station that gets frames of unknown senders. Input bytes are times, questions of the station, and frames; some of
// them have correct addresses so that they come through.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/base/assert.hpp"
#include "lib/net/host.hpp"

namespace {

using namespace cairn;

constexpr net::MacAddress kMac{{2, 0, 0, 0, 0, 1}};

void right_addresses(std::vector<std::uint8_t>& frame, std::uint8_t choice) {
    if (frame.size() < 14) {
        return;
    }
    std::copy(kMac.octets.begin(), kMac.octets.end(), frame.begin());
    frame[6] = 2;
    constexpr std::array<std::uint16_t, 3> kTypes{net::kEtherTypeArp, net::kEtherTypeIpv4, net::kEtherTypeIpv6};
    const std::uint16_t type = kTypes[choice % kTypes.size()];
    frame[12] = static_cast<std::uint8_t>(type >> 8U);
    frame[13] = static_cast<std::uint8_t>(type);
    if (type == net::kEtherTypeArp && frame.size() >= 42) {
        constexpr std::array<std::uint8_t, 6> kStart{0, 1, 8, 0, 6, 4};
        std::copy(kStart.begin(), kStart.end(), frame.begin() + 14);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const bool v4 = size != 0 && (data[0] & 1U) != 0;
    net::Host host({kMac, net::IpAddress::parse(v4 ? "10.0.0.1" : "fd00::1").value(), 0, {}});
    std::vector<std::uint8_t> out(2048);
    Instant now{};
    for (std::size_t at = 1; at + 2 <= size;) {
        const std::uint8_t what = data[at];
        const std::size_t bytes = std::min<std::size_t>(data[at + 1], size - at - 2);
        at += 2;
        now = now + milliseconds(what);
        if (what % 4 == 0) {
            (void)host.resolve(net::IpAddress::from_v4(0x0a000000U + what), now);
        }
        while (const std::size_t asked = host.poll_question(now, out)) {
            CAIRN_ASSERT(asked <= net::Host::kQuestionBytes);
        }
        std::vector<std::uint8_t> frame(data + at, data + at + bytes);
        if (what % 2 == 1) {
            right_addresses(frame, static_cast<std::uint8_t>(what / 2));
        }
        CAIRN_ASSERT(host.on_frame(frame, now, out) <= out.size());
        (void)host.poll_name();
        while (host.poll_change()) {
        }
        at += bytes;
    }
    return 0;
}
