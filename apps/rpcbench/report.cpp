#include "apps/rpcbench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

namespace cairn::rpcbench {

namespace {

telemetry::CounterSnapshot<BenchCounter> total_progress(Workers workers) {
    telemetry::CounterSnapshot<BenchCounter> sum;
    for (const auto& worker : workers) {
        sum += worker->progress().snapshot();
    }
    return sum;
}

struct Totals {
    double rate_mops = 0;
    double seconds = 0;  // of the worker that measured longest
    telemetry::Histogram latency_ns;
    std::uint64_t completed = 0;
    std::uint64_t failed = 0;
    std::uint64_t unfinished = 0;
    std::uint64_t not_begun = 0;
    std::uint64_t checked = 0;
    std::uint64_t memory_bytes = 0;
    StageTimes stages;
    SystemFigures system;
};

Totals totals_of(Workers workers) {
    Totals sum;
    for (const auto& worker : workers) {
        const Measurement& load = worker->system().load().figures();
        sum.rate_mops += load.rate_mops();
        sum.seconds = std::max(sum.seconds, load.seconds());
        sum.latency_ns.merge(load.latency_ns());
        sum.completed += load.completed();
        sum.failed += load.failed();
        sum.unfinished += load.unfinished();
        sum.not_begun += load.not_begun();
        sum.checked += load.checked();
        sum.memory_bytes += worker->memory_bytes();
        sum.stages += worker->stages();
        sum.system += worker->system().figures();
    }
    return sum;
}

// Returns the count per call, at either end.
double per_call(const Totals& sum, std::uint64_t count) {
    const std::uint64_t calls = sum.completed + sum.system.handled;
    return calls != 0 ? static_cast<double>(count) / static_cast<double>(calls) : 0;
}

// Returns the payload rate of the direction that carries more.
double gbit_s(const Options& options, const Totals& sum) {
    return sum.rate_mops * std::max(options.request_bytes, options.response_bytes) * 8 / 1e3;
}

const char* title_of(SystemKind system) {
    return system == SystemKind::Erpc ? "eRPC" : name_of(system);
}

double us(const telemetry::Histogram& latency_ns, double quantile) {
    return static_cast<double>(latency_ns.percentile(quantile)) / 1e3;
}

}  // namespace

ProgressPrinter::ProgressPrinter(Workers workers) : workers_(workers), thread_([this] { run(); }) {}

ProgressPrinter::~ProgressPrinter() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
}

void ProgressPrinter::run() {
    using Clock = std::chrono::steady_clock;
    constexpr auto kNap = std::chrono::milliseconds(20);
    auto before = total_progress(workers_);
    auto printed = Clock::now();
    while (!stop_.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(kNap);
        const auto now = Clock::now();
        if (now - printed < std::chrono::seconds(1)) {
            continue;
        }
        const double elapsed_us = std::chrono::duration<double, std::micro>(now - printed).count();
        const auto progress = total_progress(workers_);
        const auto since = progress.since(before);
        std::fprintf(stderr, "calls %.3f M/s, served %.3f M/s, %llu failed, %llu resent\n",
                     static_cast<double>(since.of(BenchCounter::Completed)) / elapsed_us,
                     static_cast<double>(since.of(BenchCounter::Handled)) / elapsed_us,
                     static_cast<unsigned long long>(progress.of(BenchCounter::Failed)),
                     static_cast<unsigned long long>(progress.of(BenchCounter::Resent)));
        before = progress;
        printed = now;
    }
}

void print_counters(Workers workers) {
    for (std::size_t i = 0; i < workers.size(); ++i) {
        const BenchWorker& worker = *workers[i];
        fmt::print(stderr, "worker {}, {} bytes per idle session:\n{}", i, worker.system().figures().bytes_of_session,
                   worker.worker().counters().text());
    }
}

namespace {

// Returns the time of a stage per call. A server's calls are those that it handled.
double stage_ns(const StageTimes& times, Duration stage) {
    return times.calls != 0 ? static_cast<double>(stage.ns) / static_cast<double>(times.calls) : 0;
}

// Prints the stages. The parts of a system's own turn are there if the system reports them.
void print_stages(const StageTimes& times) {
    fmt::print(
        ",\"receive_ns\":{:.1f},\"handle_ns\":{:.1f},\"send_ns\":{:.1f},\"idle_ns\":{:.1f},\"handler_ns\":{:.1f}",
        stage_ns(times, times.receive), stage_ns(times, times.handle), stage_ns(times, times.send),
        stage_ns(times, times.idle), stage_ns(times, times.handler));
    if (times.compose.ns != 0) {
        fmt::print(",\"judge_ns\":{:.1f},\"compose_ns\":{:.1f}", stage_ns(times, times.judge),
                   stage_ns(times, times.compose));
    }
}

// Prints [[percent, us], ...].
void print_latencies(const telemetry::Histogram& latency_ns) {
    constexpr std::array kPercents{1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9};
    fmt::print(",\"latency_us\":[");
    for (std::size_t i = 0; i < kPercents.size(); ++i) {
        fmt::print("{}[{},{:.3f}]", i == 0 ? "" : ",", kPercents[i], us(latency_ns, kPercents[i] / 100));
    }
    fmt::print("]");
}

void print_batches(const Totals& sum) {
    fmt::print(",\"batches_per_call\":{:.3f},\"batches_by_size\":[", per_call(sum, sum.system.batches_sent));
    for (std::size_t i = 0; i < kBatchSizes; ++i) {
        fmt::print("{}{}", i == 0 ? "" : ",", sum.system.batches_by_size[i]);
    }
    fmt::print("]");
}

void print_slices(const SliceFigures& slices) {
    fmt::print(
        ",\"slices\":{},\"notices_alone\":{},\"keys_ended\":{},\"fetches\":{},\"polls\":{},\"legacy_requests\":{}",
        slices.begun, slices.notices_alone, slices.keys_ended, slices.fetches, slices.polls, slices.legacy_requests);
}

// Prints the page kind; of several workers, the smallest one.
void print_pages(Workers workers) {
    mem::PageKind buffers = mem::PageKind::Huge;
    mem::PageKind messages = mem::PageKind::Huge;
    for (const auto& worker : workers) {
        const BenchWorker& one = *worker;
        buffers = std::max(buffers, one.port().limits().buffer_pages);
        messages = std::max(messages, one.message_pages());
    }
    fmt::print(",\"buffer_pages\":\"{}\",\"message_pages\":\"{}\"", mem::name_of(buffers), mem::name_of(messages));
}

// Prints the counters of the emulated cache.
void print_contexts(Workers workers) {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    for (const auto& worker : workers) {
        const BenchWorker& one = *worker;
        const auto& counted = one.worker().engine().counters();
        hits += counted.of(roce::EngineCounter::ContextHits);
        misses += counted.of(roce::EngineCounter::ContextMisses);
    }
    fmt::print(",\"emulated_context_hits\":{},\"emulated_context_misses\":{}", hits, misses);
}

}  // namespace

void print_json(const Options& options, Workers workers) {
    const Totals sum = totals_of(workers);
    const SystemFigures& system = sum.system;
    fmt::print(
        "{{\"system\":\"{}\",\"rate_mops\":{:.6f},\"gbit_s\":{:.2f},\"p50_us\":{:.3f},\"p99_us\":{:.3f},"
        "\"p999_us\":{:.3f},\"max_us\":{:.3f},\"retransmits\":{},\"failed\":{},\"calls_unfinished\":{},"
        "\"checked\":{},\"congestion_notified\":{},\"requests_handled\":{},\"responses_resent\":{},"
        "\"sessions_lost\":{},\"workers\":{},\"bytes_of_session\":{},\"memory_bytes\":{}",
        name_of(options.system), sum.rate_mops, gbit_s(options, sum), us(sum.latency_ns, 0.5), us(sum.latency_ns, 0.99),
        us(sum.latency_ns, 0.999), us(sum.latency_ns, 1), system.resent, sum.failed, sum.unfinished, sum.checked,
        system.notified, system.handled, system.responses_resent, system.sessions_lost, workers.size(),
        system.bytes_of_session / workers.size(), sum.memory_bytes);
    if (!options.peer.empty()) {
        print_latencies(sum.latency_ns);
    }
    if (options.rate_per_s > 0) {
        fmt::print(",\"offered_mops\":{:.6f},\"calls_not_begun\":{}", options.rate_per_s / 1e6, sum.not_begun);
    }
    if (system.packets_sent != 0) {
        fmt::print(",\"packets_per_call\":{:.3f}", per_call(sum, system.packets_sent));
    }
    if (options.system == SystemKind::Copyrpc) {
        print_batches(sum);
    }
    if (options.system == SystemKind::Scalerpc || options.system == SystemKind::Rawwrite) {
        print_slices(system.slices);
    }
    print_pages(workers);
    if (options.stages) {
        print_stages(sum.stages);
    }
    if (options.context_cache.contexts != 0) {
        print_contexts(workers);
    }
    fmt::print("}}\n");
}

namespace {

void print_client(const Options& options, const Totals& sum, std::size_t workers) {
    fmt::print("{}, requests of {} bytes, responses of {}, {} outstanding over {} sessions, {} workers, {:.1f} s\n",
               title_of(options.system), options.request_bytes, options.response_bytes, options.window,
               options.sessions, workers, sum.seconds);
    fmt::print("  {:<22}{:.6f} M calls/s, {:.2f} Gbit/s of payload in the direction with more\n", "rate", sum.rate_mops,
               gbit_s(options, sum));
    if (options.rate_per_s > 0) {
        fmt::print("  {:<22}{:.6f} M calls/s; {} were due and could not begin\n", "offered", options.rate_per_s / 1e6,
                   sum.not_begun);
    }
    fmt::print("  {:<22}p50 {:.2f}, p99 {:.2f}, p99.9 {:.2f}, max {:.2f} us\n",
               options.rate_per_s > 0 ? "latency since due" : "latency", us(sum.latency_ns, 0.5),
               us(sum.latency_ns, 0.99), us(sum.latency_ns, 0.999), us(sum.latency_ns, 1));
    fmt::print("  {:<22}{} completed, {} failed, {} never ended{}\n", "calls", sum.completed, sum.failed,
               sum.unfinished, options.check ? fmt::format(", {} verified", sum.checked) : "");
}

}  // namespace

void print_table(const Options& options, Workers workers) {
    const Totals sum = totals_of(workers);
    const SystemFigures& system = sum.system;
    if (!options.peer.empty()) {
        print_client(options, sum, workers.size());
    }
    if (options.server) {
        fmt::print("  {:<22}{}\n  {:<22}{}\n", "requests served", system.handled, "responses sent again",
                   system.responses_resent);
    }
    if (system.packets_sent != 0) {
        fmt::print("  {:<22}{:.3f} packets, {:.3f} batches\n", "sent per call", per_call(sum, system.packets_sent),
                   per_call(sum, system.batches_sent));
    }
    if (options.stages) {
        const StageTimes& times = sum.stages;
        fmt::print("  {:<22}receive {:.1f}, handle {:.1f}, send {:.1f}, idle {:.1f} ns; handlers {:.1f} of them\n",
                   "time per call", stage_ns(times, times.receive), stage_ns(times, times.handle),
                   stage_ns(times, times.send), stage_ns(times, times.idle), stage_ns(times, times.handler));
    }
    fmt::print("  {:<22}{} bytes of messages, sessions and queue pairs; {} per idle session\n", "memory",
               sum.memory_bytes, system.bytes_of_session / workers.size());
    fmt::print("  {:<22}{}\n  {:<22}{}\n", "packets sent again", system.resent, "sessions lost", system.sessions_lost);
}

}  // namespace cairn::rpcbench
