// Senders over one queue in virtual time, to test a congestion control. Packets have one size; an endless first in,
// first out queue marks like RED; acknowledgements never wait.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "lib/roce/pace/congestion_control.hpp"
#include "lib/roce/pace/dcqcn.hpp"
#include "lib/sim/random.hpp"

namespace cairn::roce::test {

struct BottleneckConfig {
    double link_rate_bytes_per_s = 12.5e9;
    Duration base_rtt = microseconds(4);
    std::size_t packet_bytes = 1024;
    std::size_t window_packets = 32;      // per sender
    double mark_from_bytes = 5e3;         // marks begin here
    double mark_all_bytes = 200e3;        // from here on every packet is marked
    double mark_chance_most = 0.01;       // just below mark_all_bytes
    Duration warm_up = milliseconds(20);  // not measured
    Duration measured = milliseconds(10);
};

struct BottleneckResult {
    double utilisation = 0;  // of the link, in the measured time
    double fairness = 0;     // Jain's index of the senders' bytes: 1 is equal shares, 1/n is one sender alone
    Duration rtt_mean{};
    Duration rtt_max{};
};

class Bottleneck {
public:
    explicit Bottleneck(const BottleneckConfig& config, std::uint64_t seed) : config_(config), random_(seed) {}

    void add(std::unique_ptr<CongestionControl> control) {
        flows_.push_back(Flow{std::move(control), DcqcnNotificationPoint{}, 0, false, 0});
        schedule(now_ + random_.between(Duration{}, milliseconds(1)), flows_.size() - 1, false);
    }
    BottleneckResult run() {
        const Instant end = now_ + config_.warm_up + config_.measured;
        while (!events_.empty() && events_.top().at < end) {
            const Event event = events_.top();
            events_.pop();
            now_ = event.at;
            if (event.is_ack) {
                on_ack(event);
            } else {
                send(event.flow);
            }
        }
        return result();
    }

private:
    struct Flow {
        std::unique_ptr<CongestionControl> control;
        DcqcnNotificationPoint notification;
        std::size_t in_flight_packets;
        bool waits_for_window;
        double measured_bytes = 0;
    };
    struct Event {
        Instant at;
        std::uint64_t serial;  // of two with equal times the earlier scheduled one comes first
        std::size_t flow;
        bool is_ack;
        Instant sent{};
        bool marked = false;
        bool operator<(const Event& other) const { return at != other.at ? other.at < at : other.serial < serial; }
    };

    void schedule(Instant at, std::size_t flow, bool is_ack, Instant sent = {}, bool marked = false) {
        events_.push(Event{at, serial_++, flow, is_ack, sent, marked});
    }
    [[nodiscard]] bool marks(double queue_bytes) {
        if (queue_bytes >= config_.mark_all_bytes) {
            return true;
        }
        const double depth =
            (queue_bytes - config_.mark_from_bytes) / (config_.mark_all_bytes - config_.mark_from_bytes);
        return depth > 0 && random_.chance(static_cast<std::uint32_t>(depth * config_.mark_chance_most * 1e6));
    }
    void send(std::size_t index) {
        Flow& flow = flows_[index];
        if (flow.in_flight_packets == config_.window_packets) {
            flow.waits_for_window = true;
            return;
        }
        ++flow.in_flight_packets;
        const double begin_ns = std::max(link_free_ns_, static_cast<double>(now_.ns));
        const bool marked = marks((begin_ns - static_cast<double>(now_.ns)) * config_.link_rate_bytes_per_s / 1e9);
        link_free_ns_ = begin_ns + static_cast<double>(config_.packet_bytes) / config_.link_rate_bytes_per_s * 1e9;
        const Instant leaves_queue{static_cast<std::int64_t>(link_free_ns_)};
        schedule(leaves_queue + config_.base_rtt, index, true, now_, marked);
        flow.control->on_sent(config_.packet_bytes, now_);
        schedule(now_ + flow.control->gap(config_.packet_bytes), index, false);
    }
    void on_ack(const Event& event) {
        Flow& flow = flows_[event.flow];
        const Duration rtt = now_ - event.sent;
        flow.control->on_ack({rtt, config_.packet_bytes}, now_);
        if (event.marked && flow.notification.on_marked(now_)) {
            flow.control->on_cnp(now_);
        }
        --flow.in_flight_packets;
        if (flow.waits_for_window) {
            flow.waits_for_window = false;
            schedule(now_, event.flow, false);
        }
        if (now_ >= Instant{} + config_.warm_up) {
            flow.measured_bytes += static_cast<double>(config_.packet_bytes);
            rtt_sum_ns_ += static_cast<double>(rtt.ns);
            ++samples_;
            rtt_max_ = std::max(rtt_max_, rtt);
        }
    }
    [[nodiscard]] BottleneckResult result() const {
        double sum = 0;
        double squares = 0;
        for (const Flow& flow : flows_) {
            sum += flow.measured_bytes;
            squares += flow.measured_bytes * flow.measured_bytes;
        }
        const double capacity = config_.link_rate_bytes_per_s * static_cast<double>(config_.measured.ns) / 1e9;
        return {sum / capacity, sum * sum / (squares * static_cast<double>(flows_.size())),
                Duration{static_cast<std::int64_t>(rtt_sum_ns_ / static_cast<double>(samples_))}, rtt_max_};
    }

    BottleneckConfig config_;
    sim::Random random_;
    std::vector<Flow> flows_;
    std::priority_queue<Event> events_;
    std::uint64_t serial_ = 0;
    Instant now_{};
    double link_free_ns_ = 0;
    double rtt_sum_ns_ = 0;
    std::uint64_t samples_ = 0;
    Duration rtt_max_{};
};

}  // namespace cairn::roce::test
