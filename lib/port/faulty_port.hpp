// A port of a bad network. It wraps any other port, and loses, doubles, damages, delays and reorders received
// datagrams. It may also fail in both directions. It shows how programs behave then, and if they recover.
#pragma once

#include <memory>

#include "lib/base/secret_numbers.hpp"
#include "lib/port/faults.hpp"
#include "lib/port/held_datagrams.hpp"
#include "lib/port/port.hpp"
#include "lib/telemetry/counters.hpp"

namespace cairn::port {

// X(enumerator, counter name, what non-zero means)
#define CAIRN_FAULTY_COUNTERS(X)                                                                          \
    X(Injected, "port_injected", "packets lost on purpose: fault injection is on")                        \
    X(Duplicated, "port_injected_duplicates", "packets doubled on purpose: fault injection is on")        \
    X(Damaged, "port_injected_damage", "packets damaged on purpose: fault injection is on")               \
    X(HeldBack, "port_injected_delays", "packets delayed or reordered on purpose: fault injection is on") \
    X(Unreachable, "port_injected_outage",                                                                \
      "packets lost to a port or peer that fails on purpose: fault injection is on")

CAIRN_DECLARE_COUNTERS(FaultyCounter, CAIRN_FAULTY_COUNTERS);

// The fates of received datagrams follow from the seed and their order. The inner port does everything else. Not
// thread-safe, like any port.
class FaultyPort final : public Port {
public:
    // How long a datagram waits for others to overtake it. A datagram that finds no room to wait is lost, as in a
    // queue.
    static constexpr Duration kOvertaken = microseconds(200);

    // Wraps `inner`. Outages are counted from `opened` on.
    FaultyPort(std::unique_ptr<Port> inner, const Faults& faults, Instant opened);

    [[nodiscard]] std::size_t receive_burst(std::span<PacketRef> out, Instant now) noexcept override;
    [[nodiscard]] Instant empty_at() const noexcept override { return inner_->empty_at(); }
    [[nodiscard]] std::size_t transmit_burst(std::span<TxPacket> packets, Instant now) noexcept override;
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
    [[nodiscard]] Instant next_deadline() const noexcept override;
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return inner_->local_address(); }
    [[nodiscard]] PortLimits limits() const noexcept override { return inner_->limits(); }
    [[nodiscard]] std::string describe() const override;
    // Lists the counters, the inner port's first.
    void list_counters(telemetry::CounterList& list) const override;

    // Returns true while the port itself fails.
    [[nodiscard]] bool is_down(Instant now) const noexcept { return faults_.port.covers(now - opened_); }
    [[nodiscard]] const telemetry::CounterSet<FaultyCounter>& counters() const noexcept { return counters_; }

private:
    [[nodiscard]] bool is_cut_off(const Path& path, Instant now) const noexcept;
    [[nodiscard]] bool meet_fate(PacketRef& packet, Instant now) noexcept;

    std::unique_ptr<Port> inner_;
    const Faults faults_;
    const Instant opened_;
    SecretNumbers chances_;
    HeldDatagrams held_;
    telemetry::CounterSet<FaultyCounter> counters_;
};

}  // namespace cairn::port
