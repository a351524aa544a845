// Forwarder: one worker of cairn-testpmd on the bare frames of its queue, in the modes that packet benchmarks and cable
// checks need.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/net/address.hpp"
#include "pmd_glue/device.hpp"
#include "pmd_glue/forward_mode.hpp"

struct rte_mbuf;

namespace cairn::pmd {

struct ForwardConfig {
    ForwardMode mode = ForwardMode::Io;  // none for which is_echo() is true
    std::uint16_t burst = 32;
    std::uint16_t frame_bytes = 114;  // txonly
    net::IpAddress local{};           // txonly
    net::IpAddress peer{};            // txonly
    net::MacAddress peer_mac = net::kBroadcastMac;
};

// Forwards frames. Ports are paired 0-1, 2-3 ...; a last port without a partner is its own partner. One worker drives
// the forwarder and owns queue `worker` of each device.
class Forwarder final : public ForwardTask {
public:
    Forwarder(const ForwardConfig& config, std::span<const std::unique_ptr<Device>> devices, std::uint16_t worker);
    ~Forwarder() override;

    [[nodiscard]] bool run_turn(Instant now) noexcept override;
    [[nodiscard]] const telemetry::CounterSet<ForwardCounter>& counters(std::size_t port) const noexcept override {
        return lanes_[port]->counters;
    }

private:
    static constexpr std::size_t kMaxBurst = 64;
    struct Lane {  // one port
        Device* device;
        telemetry::CounterSet<ForwardCounter> counters;
        std::vector<std::uint8_t> frame;  // txonly: the frame to send
    };

    [[nodiscard]] bool forward(Lane& from, Lane& to) noexcept;
    [[nodiscard]] bool transmit_only(Lane& lane) noexcept;
    void send(Lane& lane, rte_mbuf** frames, std::uint16_t count) const noexcept;

    ForwardConfig config_;
    std::uint16_t worker_;
    std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace cairn::pmd
