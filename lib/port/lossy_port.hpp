// A port that loses packets on purpose. It wraps any other port. It shows how programs behave on a bad link, and if
// they recover.
#pragma once

#include <memory>

#include "lib/base/secret_numbers.hpp"
#include "lib/port/port.hpp"
#include "lib/telemetry/counters.hpp"

namespace cairn::port {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_LOSSY_COUNTERS(X) X(Injected, "port_injected", "packets lost on purpose: fault injection is on")

CAIRN_DECLARE_COUNTERS(LossyCounter, CAIRN_LOSSY_COUNTERS);

// Loses each received datagram with a chance of `drop_per_million` in a million. The inner port does everything else.
// Not thread-safe, like any port.
class LossyPort final : public Port {
public:
    // The losses follow from `key`. The same key loses the same datagrams.
    LossyPort(std::unique_ptr<Port> inner, std::uint32_t drop_per_million, const SipKey& key) noexcept
        : inner_(std::move(inner)), drop_per_million_(drop_per_million), chances_(key, Purpose::InjectedFaults) {}

    [[nodiscard]] std::size_t receive_burst(std::span<PacketRef> out, Instant now) noexcept override;
    [[nodiscard]] Instant empty_at() const noexcept override { return inner_->empty_at(); }
    [[nodiscard]] std::size_t transmit_burst(std::span<TxPacket> packets, Instant now) noexcept override {
        return inner_->transmit_burst(packets, now);
    }
    [[nodiscard]] std::size_t allocate_burst(std::span<PacketRef> out) noexcept override {
        return inner_->allocate_burst(out);
    }
    void release_burst(std::span<PacketRef> packets) noexcept override { inner_->release_burst(packets); }
    [[nodiscard]] bool has_spare_buffers() const noexcept override { return inner_->has_spare_buffers(); }
    [[nodiscard]] bool can_send_from(std::span<const std::uint8_t> range) const noexcept override {
        return inner_->can_send_from(range);
    }
    [[nodiscard]] bool attach(std::span<const std::uint8_t> range) override { return inner_->attach(range); }
    void detach(std::span<const std::uint8_t> range) noexcept override { inner_->detach(range); }
    [[nodiscard]] bool holds_back() const noexcept override { return inner_->holds_back(); }
    void copy_tails(const TailFilter& which) noexcept override { inner_->copy_tails(which); }
    void settle_tails() noexcept override { inner_->settle_tails(); }
    [[nodiscard]] Path* open_path(const PathKey& key, Instant now) noexcept override {
        return inner_->open_path(key, now);
    }
    [[nodiscard]] Path* path_back(const WayBack& way, Instant now) noexcept override {
        return inner_->path_back(way, now);
    }
    Status join(const net::IpAddress& group) override { return inner_->join(group); }
    void leave(const net::IpAddress& group) noexcept override { inner_->leave(group); }
    [[nodiscard]] bool loops_groups() const noexcept override { return inner_->loops_groups(); }
    void wait(Duration most, int also) noexcept override { inner_->wait(most, also); }
    [[nodiscard]] int descriptor() noexcept override { return inner_->descriptor(); }
    void on_timeout(Instant now) noexcept override { inner_->on_timeout(now); }
    [[nodiscard]] Instant next_deadline() const noexcept override { return inner_->next_deadline(); }
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return inner_->local_address(); }
    [[nodiscard]] PortLimits limits() const noexcept override { return inner_->limits(); }
    [[nodiscard]] std::string describe() const override;
    // Those of the inner port come first.
    void list_counters(telemetry::CounterList& list) const override;

    [[nodiscard]] const telemetry::CounterSet<LossyCounter>& counters() const noexcept { return counters_; }

private:
    std::unique_ptr<Port> inner_;
    const std::uint32_t drop_per_million_;
    SecretNumbers chances_;
    telemetry::CounterSet<LossyCounter> counters_;
};

}  // namespace cairn::port
