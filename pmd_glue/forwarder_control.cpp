#include <algorithm>
#include <cstring>

#include "lib/base/assert.hpp"
#include "lib/port/path.hpp"
#include "lib/wire/ud.hpp"
#include "pmd_glue/forwarder.hpp"

namespace cairn::pmd {

namespace {

// Makes a sound RoCEv2 UD SEND to queue pair 1.
std::vector<std::uint8_t> make_frame(const ForwardConfig& config, const Device& device) {
    port::Path path({config.local, config.peer, port::kFirstUdpSourcePort, 0});
    path.resolve(device.mac(), config.peer_mac);
    const std::size_t least = path.lower_bytes() + wire::kUdOverheadBytes;
    const std::size_t payload_bytes =
        (std::max<std::size_t>(config.frame_bytes, least) - least) & ~std::size_t{3};  // without a pad
    std::vector<std::uint8_t> frame(least + payload_bytes, 0);
    CAIRN_ASSERT(frame.size() <= device.plan().frame_bytes);
    wire::UdHeader header;
    header.to = Qpn{1};
    const wire::RawUd raw = header.raw(payload_bytes);
    std::uint8_t* at = frame.data() + path.lower_bytes();
    std::memcpy(at, &raw, sizeof(raw));
    path.seal(at, static_cast<std::uint16_t>(frame.size() - path.lower_bytes()));
    return frame;
}

}  // namespace

Forwarder::Forwarder(const ForwardConfig& config, std::span<const std::unique_ptr<Device>> devices,
                     std::uint16_t worker)
    : config_(config), worker_(worker) {
    CAIRN_ASSERT(!is_echo(config_.mode));
    config_.burst = std::clamp<std::uint16_t>(config_.burst, 1, kMaxBurst);
    for (std::size_t i = 0; i < devices.size(); ++i) {
        auto lane = std::make_unique<Lane>();
        lane->device = devices[i].get();
        if (config_.mode == ForwardMode::TxOnly) {
            lane->frame = make_frame(config_, *devices[i]);
        }
        lanes_.push_back(std::move(lane));
    }
}

Forwarder::~Forwarder() = default;

}  // namespace cairn::pmd
