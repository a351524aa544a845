// The common parts of client and server of cairn-perf: a device on a port, turns, progress.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "apps/common/worker_program.hpp"
#include "apps/perf/channel.hpp"
#include "apps/perf/crew.hpp"
#include "apps/perf/message_area.hpp"
#include "apps/perf/protocol.hpp"
#include "lib/telemetry/counters.hpp"
#include "lib/telemetry/histogram.hpp"
#include "lib/verbs/connector.hpp"
#include "pmd_glue/heap_block.hpp"

namespace cairn::perf {

constexpr Duration kNeighbour = milliseconds(20);  // time in which a neighbour usually answers with its address
constexpr Duration kSilence = seconds(10);         // after which a client takes its server for gone

// Returns a quantile of a histogram of nanoseconds, in microseconds.
[[nodiscard]] inline double us(const telemetry::Histogram& of_ns, double quantile) {
    return static_cast<double>(of_ns.percentile(quantile)) / 1e3;
}

// X(enumerator, counter name, what non-zero means): counters that the progress line reads from another thread.
#define CAIRN_PERF_COUNTERS(X)                                     \
    X(Completed, "perf_completed", "operations of ours completed") \
    X(Received, "perf_received", "messages received as a server")  \
    X(Bytes, "perf_bytes", "bytes of either")                      \
    X(Connections, "perf_connections", "connections made")

CAIRN_DECLARE_COUNTERS(PerfCounter, CAIRN_PERF_COUNTERS);

[[nodiscard]] std::string_view text_of(verbs::CompletionStatus status) noexcept;
// Returns the text up to the first zero.
[[nodiscard]] std::string_view text_of(const cm::PrivateBytes& said) noexcept;

// Returns the connection that this event ends, or that was not made.
[[nodiscard]] std::optional<verbs::ConnectionId> ended_by(const cm::Event& event) noexcept;

class PerfWorker : public app::WorkerProgram {
public:
    // Makes the worker. `options` are this worker's part.
    PerfWorker(const Options& options, const Seat& seat, std::unique_ptr<port::Port> port)
        : WorkerProgram(std::move(port)), options_(options), seat_(seat) {}

    // Makes the device. `seed` is hard to guess.
    Status open_device(const roce::MemoryTable::Seed& seed, Instant now);

    [[nodiscard]] const telemetry::CounterSet<PerfCounter>& progress() const noexcept { return progress_; }
    // These are valid after the worker has stopped:
    [[nodiscard]] bool failed() const noexcept { return failed_; }
    // Adds another worker's result to this one's, if there may be several.
    virtual void absorb(const PerfWorker& other) { static_cast<void>(other); }
    // Returns the result of all workers: as one JSON object, or as lines for people.
    [[nodiscard]] virtual std::string json() const = 0;
    [[nodiscard]] virtual std::string table() const = 0;

protected:
    // Does all work that is due. Returns true if there was any.
    [[nodiscard]] virtual bool step(Instant now) = 0;
    virtual void on_event(const cm::Event& event, Instant now) = 0;
    // Is called every few milliseconds.
    virtual void look(Instant now) = 0;

    void show(PerfCounter which, std::uint64_t value) noexcept { progress_.count(which, value - progress_.of(which)); }
    // Prints the reason on stderr, once.
    void fail(std::string_view why);
    [[nodiscard]] verbs::ConnectionChoice choice(std::span<const std::uint8_t> private_data) const noexcept;
    [[nodiscard]] verbs::Device& device() noexcept { return *device_; }
    [[nodiscard]] const verbs::Device& device() const noexcept { return *device_; }
    [[nodiscard]] verbs::Connector& connector() noexcept { return *connector_; }
    [[nodiscard]] verbs::Pd& pd() noexcept { return *pd_; }
    [[nodiscard]] const Options& options() const noexcept { return options_; }
    [[nodiscard]] const Seat& seat() const noexcept { return seat_; }
    [[nodiscard]] Crew& crew() const noexcept { return seat_.crew; }
    // Returns whether this worker or another one has failed.
    [[nodiscard]] bool is_over() const noexcept { return failed_ || crew().failed.load(std::memory_order_relaxed); }
    // Returns the largest path MTU that this end accepts.
    [[nodiscard]] std::uint32_t own_path_mtu() const noexcept {
        return options_.ports.path_mtu_bytes != 0 ? options_.ports.path_mtu_bytes : device_->limits().path_mtu_bytes;
    }
    // Closes the connections. A derived destructor calls it before its queue pairs end.
    void close_connections() noexcept { connector_.reset(); }

private:
    bool on_turn(Instant now) noexcept final;
    [[nodiscard]] Instant next_deadline() const noexcept final { return next_look_; }

    const Options options_;
    const Seat seat_;
    std::unique_ptr<verbs::Device> device_;
    std::unique_ptr<verbs::Pd> pd_;
    std::unique_ptr<connections::Home> home_;
    std::unique_ptr<verbs::Connector> connector_;
    Instant next_look_{};
    bool failed_ = false;
    telemetry::CounterSet<PerfCounter> progress_;
};

// The rights that one end of a test has to the other's memory.
constexpr verbs::Rights kRemoteRights =
    verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::RemoteRead | verbs::Right::RemoteAtomic;

}  // namespace cairn::perf
