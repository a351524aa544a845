// cairn-pktgen: EAL arguments -- own arguments. Sends one stream of RoCEv2 UD packets, sound or broken, from a TOML
// script, and counts the packets that come back.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "apps/common/app.hpp"
#include "apps/common/ports.hpp"
#include "apps/pktgen/emitters.hpp"
#include "apps/pktgen/options.hpp"
#include "pmd_glue/lcores.hpp"

namespace {

using namespace cairn;

constexpr std::uint16_t kLeastPathMtu = 256;

app::PortOptions port_options(const pktgen::Options& options, const pktgen::Stream& stream) {
    app::PortOptions ports = options.ports;
    ports.ip = stream.source ? stream.source->text() : "";
    ports.ip_remedy = "name it in the script: source = \"ADDRESS\"";
    // The link has to carry the stream's own frames, and none that are larger.
    ports.path_mtu_bytes = kLeastPathMtu;
    ports.frame_bytes = static_cast<std::uint16_t>(pktgen::frame_bytes(stream));
    ports.frame_argument = "payload_bytes";
    ports.burst = 32;
    return ports;
}

// Refuses streams that a socket cannot send.
Status check_for_socket(const pktgen::Stream& stream, const net::IpAddress& local) {
    if (pktgen::layer_of(stream.fault) == pktgen::FaultLayer::Lower) {
        return Error{fmt::format("fault = \"{}\" lies below UDP, where a socket sends nothing of its own",
                                 pktgen::name_of(stream.fault)),
                     "use --port eth:N, or another fault"};
    }
    if (stream.source && *stream.source != local) {
        return Error{
            fmt::format("the script's source {} is not the socket's address {}", stream.source->text(), local.text()),
            fmt::format("use --port uring:{}, or leave source out", stream.source->text())};
    }
    return Nothing{};
}

void report(const port::Port& port, const pmd::Generator& generator, bool json) {
    const auto counts = generator.counters().snapshot();
    telemetry::CounterList list;
    port.list_counters(list.add(generator.counters()));
    fmt::print(stderr, "{}", list.text());
    const double seconds = generator.seconds_sending();
    const double sent = static_cast<double>(counts.of(pmd::GeneratorCounter::Sent));
    const double rate_pps = seconds > 0 ? (sent - 1) / seconds : 0.0;
    if (json) {
        std::string counters = telemetry::json_of(counts);
        counters.pop_back();
        fmt::print("{},\"rate_pps\":{:.0f}}}\n", counters, rate_pps);
    } else {
        fmt::print(" sent: {}, {:.0f} pps\n returned: {}, of them broken: {}\n", counts.of(pmd::GeneratorCounter::Sent),
                   rate_pps, counts.of(pmd::GeneratorCounter::Returned),
                   counts.of(pmd::GeneratorCounter::ReturnedBroken));
    }
}

Result<int> generate(const pktgen::Options& options, const pktgen::Stream& stream, app::Ports& ports, port::Port& port,
                     pmd::Emitter& emitter) {
    const net::IpAddress local = ports.local();
    if (local.is_v4() != stream.destination.is_v4()) {
        return Error{fmt::format("our address {} and the script's destination {} are of two families", local.text(),
                                 stream.destination.text()),
                     "give both as IPv4 or both as IPv6"};
    }
    if (pktgen::datagram_bytes(stream) > port.limits().max_udp_payload_bytes) {
        return Error{fmt::format("payload_bytes = {} does not fit a packet of this port", stream.payload_bytes),
                     "send less, or raise the link's MTU"};
    }
    const Status captured = ports.start_capture();
    if (!captured.ok()) {
        return captured.error();
    }
    pmd::GeneratorConfig generation;
    generation.path = {local, stream.destination, stream.udp_source_port, stream.traffic_class};
    generation.rate_pps = stream.rate_pps;
    generation.count = stream.count;
    pmd::Generator generator(generation, port, emitter);
    worker::Task* const task = &generator;
    const pmd::Clock clock;
    const auto clocks =
        pmd::run_workers({&task, 1}, clock, options.spin ? worker::Polling::Spin : worker::Polling::Adaptive);
    ports.stop_capture();
    report(port, generator, options.json);
    fmt::print(stderr, "{}", telemetry::text_of(clocks));
    if (!generator.neighbour_answered()) {
        fmt::print(stderr, "cairn-pktgen: {} does not answer; is it on this link?\n", stream.destination.text());
        return 1;
    }
    return 0;
}

Result<int> run_on(const pktgen::Options& options, const pktgen::Stream& stream) {
    auto opened = app::Ports::open(port_options(options, stream));
    if (!opened.ok()) {
        return opened.error();
    }
    app::Ports& ports = opened.value();
    if (!ports.is_socket()) {
        const auto port = ports.make_ethdev_port(0);
        if (!port.ok()) {
            return port.error();
        }
        pktgen::FrameEmitter emitter(stream, *port.value());
        return generate(options, stream, ports, *port.value(), emitter);
    }
    const Status possible = check_for_socket(stream, ports.local());
    if (!possible.ok()) {
        return possible.error();
    }
    const auto port = ports.make_socket_port(0);
    if (!port.ok()) {
        return port.error();
    }
    pktgen::DatagramEmitter emitter(stream, *port.value());
    return generate(options, stream, ports, *port.value(), emitter);
}

Result<int> run(int argc, char** argv, int first) {
    const Result<pktgen::Options> options = pktgen::parse_options(argc, argv, first);
    if (!options.ok()) {
        return options.error();
    }
    const Result<pktgen::Stream> stream = pktgen::read_stream(options.value().script);
    return stream.ok() ? run_on(options.value(), stream.value()) : Result<int>(stream.error());
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("cairn-pktgen", argc, argv, run);
}
