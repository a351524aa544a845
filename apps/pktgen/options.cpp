#include "apps/pktgen/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/common/command_line.hpp"
#include "apps/pktgen/stream.hpp"

namespace cairn::pktgen {

namespace {

std::string faults_text() {
    std::string text;
#define CAIRN_X(enumerator, name, what, layer) text += fmt::format("\n  {:<12} {}", name, what);
    CAIRN_PKTGEN_FAULTS(CAIRN_X)
#undef CAIRN_X
    return text;
}

}  // namespace

Result<Options> parse_options(int argc, char** argv, int first) {
    CLI::App app("cairn-pktgen: sends a stream of packets; EAL arguments first, then --\nFaults:" + faults_text());
    Options options;
    app.add_option("--script", options.script, "the stream, in TOML; see config/")->required();
    app::add_port(app, options.ports);
    app::add_polling(app, options.spin);
    app::add_output(app, options.ports.pcap, options.json);
    const Status parsed = app::parse_arguments(app, argc, argv, first);
    if (!parsed.ok()) {
        return parsed.error();
    }
    app::note_given(app, options.ports);
    return options;
}

}  // namespace cairn::pktgen
