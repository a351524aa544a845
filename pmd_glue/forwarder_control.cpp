#include <algorithm>
#include <cstring>

#include "lib/roce/ud.hpp"
#include "pmd_glue/forwarder.hpp"

namespace cairn::pmd {

namespace {

constexpr std::uint16_t kUdpSourcePort = 0xc000;

struct ModeName {
    ForwardMode mode;
    std::string_view name;
};
constexpr std::array kModeNames{
#define CAIRN_X(enumerator, name, text) ModeName{ForwardMode::enumerator, name},
    CAIRN_FORWARD_MODES(CAIRN_X)
#undef CAIRN_X
};

// A sound RoCEv2 UD SEND to queue pair 1 of nobody in particular.
std::vector<std::uint8_t> make_frame(const ForwardConfig& config, const Device& device) {
    port::Path path({config.local, config.peer, kUdpSourcePort, 0});
    path.resolve(device.mac(), config.peer_mac);
    const std::size_t least = path.lower_bytes() + sizeof(roce::RawUd) + port::kIcrcBytes;
    const std::size_t bytes = std::max<std::size_t>(config.frame_bytes, least) & ~std::size_t{1};
    std::vector<std::uint8_t> frame(bytes, 0);
    roce::RawUd raw{};
    wire::Bth bth;
    bth.opcode = roce::kUdSendOnly;
    bth.dest_qpn = Qpn{1};
    const std::size_t payload = bytes - least;
    bth.pad_count = static_cast<std::uint8_t>((4 - payload % 4) % 4);
    bth.emit(raw.bth);
    frame.resize(bytes + bth.pad_count);
    std::uint8_t* at = frame.data() + path.lower_bytes();
    std::memcpy(at, &raw, sizeof(raw));
    path.seal(at, static_cast<std::uint16_t>(frame.size() - path.lower_bytes()));
    return frame;
}

net::IpAddress counted_up(const net::IpAddress& first, std::size_t by) {
    auto octets = first.octets();
    octets.back() = static_cast<std::uint8_t>(octets.back() + by);
    return net::IpAddress::from_v6(octets);
}

}  // namespace

std::optional<ForwardMode> forward_mode_named(std::string_view name) noexcept {
    const auto* found =
        std::find_if(kModeNames.begin(), kModeNames.end(), [name](const ModeName& each) { return each.name == name; });
    return found == kModeNames.end() ? std::nullopt : std::optional(found->mode);
}

std::string_view name_of(ForwardMode mode) noexcept {
    return kModeNames[static_cast<std::size_t>(mode)].name;
}

Forwarder::Forwarder(const ForwardConfig& config, std::span<const std::unique_ptr<Device>> devices,
                     std::uint16_t worker)
    : config_(config), worker_(worker) {
    config_.burst = std::clamp<std::uint16_t>(config_.burst, 1, kMaxBurst);
    for (std::size_t i = 0; i < devices.size(); ++i) {
        auto lane = std::make_unique<Lane>();
        lane->device = devices[i].get();
        if (config_.mode == ForwardMode::RoceEcho || config_.mode == ForwardMode::IcmpEcho) {
            lane->port = std::make_unique<EthdevPort>(
                *devices[i], EthdevPortConfig{worker, counted_up(config_.local, i), config_.burst, 0, {}});
        } else if (config_.mode == ForwardMode::TxOnly) {
            lane->frame = make_frame(config_, *devices[i]);
        }
        lanes_.push_back(std::move(lane));
    }
}

Forwarder::~Forwarder() = default;

}  // namespace cairn::pmd
