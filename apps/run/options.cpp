#include "apps/run/options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>

#include "apps/common/choice.hpp"
#include "apps/common/command_line.hpp"

namespace cairn::launch {

namespace {

constexpr const char* kAbout =
    "cairn-run [OPTIONS] PROGRAM [ARGUMENTS...]\ncairn-run --info | --stat [PID]\n\n"
    "Runs a program that was built for RDMA adapters over UDP sockets, as in cairn-run ibv_devinfo.\n"
    "It needs no adapter, no kernel module and no privilege. What follows PROGRAM is the program's own, and so are "
    "its\n"
    "exit status and signals. Programs that it starts run so, too.";

constexpr const char* kFooter =
    "\nEnvironment, for programs that run without cairn-run, too (LD_LIBRARY_PATH is all that they need else):\n"
    "  CAIRN_DEVICES=NAME=ADDRESS,...  the devices; as --devices\n"
    "  CAIRN_PCAP=FILE                 as --pcap\n"
    "  CAIRN_FAULTS=SPEC               as --faults\n"
    "  CAIRN_POLL=WORD                 as --poll\n"
    "  CAIRN_RDMACM=FILE               the distribution's librdmacm.so.1, for rsockets, if the loader does not find "
    "it\n"
    "\nExamples of configuration files are in the folder config/: run.toml is one for --config.\n"
    "\nExit status: the program's; 2 if it is out of reach or an argument is wrong. Of --stat PID, 1 if that program\n"
    "does not use the library.";

// Returns why the text is no process number; empty if it is one.
std::string refuse_no_pid(const std::string& text) {
    int pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    const bool is_pid = error == std::errc{} && end == text.data() + text.size() && pid > 0;
    return is_pid ? "" : text + " is no PID: these are whole numbers from 1";
}

void add_options(CLI::App& app, Options& options, bool& info) {
    app.add_option("--devices", options.devices,
                   "the devices: NAME=ADDRESS,... as in cairn0=10.0.0.1,cairn1=10.0.0.2; otherwise one for each "
                   "address of this machine")
        ->type_name("LIST");
    app.add_option("--pcap", options.pcap, "record RoCEv2 packets in this file, for Wireshark")->type_name("FILE");
    app.add_option(
           "--faults", options.faults,
           "what goes wrong on purpose, with what this end receives: "
           "loss=1%,duplicates=1%,reorder=1%,damage=0.1%,delay=1ms,seed=7; for good, or for a time, that long "
           "after the device was opened: port=2s+500ms,peer=10.0.0.2@2s; the first queue pair that is ready then: "
           "qp=2s")
        ->type_name("SPEC");
    app.add_option("--poll", options.poll,
                   "adaptive, or spin: the thread that looks at the socket while the program does not never gives the "
                   "CPU away; for programs that compute or spin on memory, where there are more CPUs than threads")
        ->type_name("WORD")
        ->check(CLI::IsMember({"adaptive", "spin"}));
    app::add_choice(
        app, "--view", options.view,
        {{"auto", View::Auto}, {"namespaces", View::Namespaces}, {"shim", View::Shim}, {"none", View::None}},
        "how /sys/class/infiniband and /dev/infiniband come about, of the program alone: by private "
        "namespaces, by a preloaded shim (then as long as PROGRAM itself runs), or not");
    app.set_config("--config", "", "a file with these arguments, in TOML: devices = \"cairn0=10.0.0.1\"");
    app.add_flag("--info", info, "show the devices, their GIDs and limits, and what this machine allows");
    app.add_option("--stat", options.stat_pid,
                   "show the counters of running programs that use the library: of the one with this PID, or of all")
        ->expected(0, 1)
        ->type_name("[PID]")
        ->check(CLI::Validator(refuse_no_pid, ""));
    app.footer(kFooter);
    app.prefix_command();
}

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
    Options options;
    bool info = false;
    CLI::App app(kAbout);
    add_options(app, options, info);
    if (const Status parsed = app::parse_arguments(app, argc, argv, 1); !parsed.ok()) {
        return parsed.error();
    }
    options.command = app.remaining();
    if (!options.command.empty() && options.command.front() == "--") {
        options.command.erase(options.command.begin());
    } else if (!options.command.empty() && options.command.front().starts_with('-')) {
        return Error{"there is no argument " + options.command.front(), "--help lists the arguments"};
    }
    const bool stat = app.count("--stat") != 0;
    options.task = info ? Task::Info : stat ? Task::Stat : Task::Run;
    if ((info && stat) || (options.task != Task::Run && !options.command.empty())) {
        return Error{"--info and --stat stand alone", "run programs without them"};
    }
    if (options.task == Task::Run && options.command.empty()) {
        return Error{"no program was given", "as in: cairn-run ibv_devinfo"};
    }
    return options;
}

}  // namespace cairn::launch
