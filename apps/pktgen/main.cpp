// cairn-pktgen: EAL arguments -- own arguments; sends one stream of RoCEv2 UD packets, sound or broken, from a
// TOML script and counts what comes back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/app.hpp"
#include "apps/pktgen/stream.hpp"
#include "pmd_glue/capture.hpp"
#include "pmd_glue/generator.hpp"
#include "pmd_glue/port_argument.hpp"

namespace {

using namespace cairn;

struct Options {
    std::string script;
    std::string port;
    std::string pcap;
    bool spin = false;
    bool json = false;
};

std::string faults_text() {
    std::string text;
#define CAIRN_X(enumerator, name, what) text += fmt::format("\n  {:<12} {}", name, what);
    CAIRN_PKTGEN_FAULTS(CAIRN_X)
#undef CAIRN_X
    return text;
}

Result<Options> parse_options(int argc, char** argv, int first) {
    CLI::App app("cairn-pktgen: sends a stream of packets; EAL arguments first, then --\nFaults:" + faults_text());
    Options options;
    app.add_option("--script", options.script, "the stream, in TOML; see config/")->required();
    app.add_option("--port", options.port, "port: eth:N; without it the first one");
    app.add_option("--pcap", options.pcap, "record the RoCEv2 frames in this file, for Wireshark");
    app.add_flag("--spin", options.spin, "never give the CPU away");
    app.add_flag("--json", options.json, "end with one JSON object on stdout");
    std::vector<char*> arguments{argv[0]};
    arguments.insert(arguments.end(), argv + first, argv + argc);
    try {
        app.parse(static_cast<int>(arguments.size()), arguments.data());
    } catch (const CLI::CallForHelp&) {
        std::cout << app.help();
        std::exit(0);
    } catch (const CLI::ParseError& error) {
        return Error{error.what(), "--help lists the arguments"};
    }
    return options;
}

class StreamSource final : public pmd::FrameSource {
public:
    explicit StreamSource(const pktgen::Stream& stream) : stream_(stream) {}
    [[nodiscard]] std::size_t make(port::Path& path, std::uint64_t serial, std::span<std::uint8_t> out) override {
        return pktgen::make_frame(stream_, path, serial, out);
    }

private:
    const pktgen::Stream& stream_;
};

void report(const pmd::Generator& generator, bool json) {
    const auto counts = generator.counters().snapshot();
    fmt::print(stderr, "{}", telemetry::text_of(counts));
    if (json) {
        const double seconds = generator.seconds_sending();
        const double sent = static_cast<double>(counts.of(pmd::GeneratorCounter::Sent));
        std::string counters = telemetry::json_of(counts);
        counters.pop_back();
        fmt::print("{},\"rate_pps\":{:.0f}}}\n", counters, seconds > 0 ? (sent - 1) / seconds : 0.0);
    }
}

Result<int> generate(const Options& options, const pktgen::Stream& stream) {
    const Result<std::uint16_t> chosen = pmd::choose_ethdev(options.port);
    if (!chosen.ok()) {
        return chosen.error();
    }
    pmd::DeviceConfig config;
    config.port_id = chosen.value();
    config.wish.path_mtu_bytes = stream.payload_bytes > 1024 ? 4096 : 1024;
    auto device = pmd::Device::open(config);
    if (!device.ok()) {
        return device.error();
    }
    fmt::print(stderr, "{}\n", device.value()->describe());
    std::unique_ptr<pmd::Capture> capture;
    if (!options.pcap.empty()) {
        auto started = pmd::Capture::start(*device.value(), options.pcap);
        if (!started.ok()) {
            return started.error();
        }
        capture = std::move(started).value();
    }
    pmd::EthdevPort port(*device.value(), {0, stream.source, 32, 0, {}});
    pmd::GeneratorConfig generation;
    generation.path = {stream.source, stream.destination, stream.udp_source_port, stream.traffic_class};
    generation.rate_pps = stream.rate_pps;
    generation.count = stream.count;
    StreamSource source(stream);
    pmd::Generator generator(generation, port, source);
    pmd::WorkerTask* const task = &generator;
    const pmd::Clock clock;
    pmd::run_workers({&task, 1}, clock, options.spin ? pmd::Polling::Spin : pmd::Polling::Adaptive);
    capture.reset();
    report(generator, options.json);
    if (!generator.neighbour_answered()) {
        fmt::print(stderr, "cairn-pktgen: {} does not answer; is it on this link?\n", stream.destination.text());
        return 1;
    }
    return 0;
}

Result<int> run(int argc, char** argv, int first) {
    const Result<Options> options = parse_options(argc, argv, first);
    if (!options.ok()) {
        return options.error();
    }
    const Result<pktgen::Stream> stream = pktgen::read_stream(options.value().script);
    return stream.ok() ? generate(options.value(), stream.value()) : Result<int>(stream.error());
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("cairn-pktgen", argc, argv, run);
}
