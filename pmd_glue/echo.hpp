// Echo: the modes of cairn-testpmd that need only a Port of any kind. It sends sound UD datagrams back, or leaves the
// work to the port, which answers pings by itself.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/port/port.hpp"
#include "lib/wire/drops.hpp"
#include "pmd_glue/forward_mode.hpp"

namespace cairn::pmd {

// One worker drives it and owns its ports.
class Echo final : public ForwardTask {
public:
    Echo(ForwardMode mode, std::uint16_t burst, std::vector<std::unique_ptr<port::Port>> ports);
    ~Echo() override;

    [[nodiscard]] bool run_turn(Instant now) noexcept override;
    [[nodiscard]] bool can_wait() const noexcept override;
    void wait(Instant now) noexcept override;
    [[nodiscard]] const telemetry::CounterSet<ForwardCounter>& counters(std::size_t port) const noexcept override {
        return lanes_[port].counters;
    }
    [[nodiscard]] std::string reasons_text(std::size_t port) const override;

private:
    static constexpr std::size_t kMaxBurst = 64;
    struct Lane {
        std::unique_ptr<port::Port> port;
        telemetry::CounterSet<ForwardCounter> counters;
        telemetry::CounterSet<wire::Drop> drops;
    };

    [[nodiscard]] bool echo(Lane& lane, Instant now) noexcept;
    void ignore(Lane& lane, port::PacketRef& packet) const noexcept;

    ForwardMode mode_;
    std::size_t burst_packets_;
    std::vector<Lane> lanes_;
    std::array<port::PacketRef, kMaxBurst> burst_{};
    std::array<port::TxPacket, kMaxBurst> answers_{};
};

}  // namespace cairn::pmd
