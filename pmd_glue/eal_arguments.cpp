#include "pmd_glue/eal_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace cairn::pmd {

namespace {

// A cause of a failure: the line of the output that has `sign` in it, which is quoted.
struct Cause {
    std::string_view sign;
    std::string_view remedy;
};

constexpr std::string_view kWhereItStands =
    "EAL's arguments stand before \"--\", the program's own behind it; --help lists those";
constexpr std::string_view kLeaveOneOut = "leave one of the two out; --no-huge means --legacy-mem, too";
constexpr std::string_view kAnotherValue = "give that argument another value, or leave it out";

// Refusals of EAL's option parser. EAL mostly names the argument itself; else the remedy does.
constexpr std::array<Cause, 22> kRefusals{{
    {"unrecognized option", kWhereItStands},
    {"invalid option", kWhereItStands},
    {"is ambiguous", "write that argument out"},
    {"doesn't allow an argument", "leave the value behind = out"},
    {"requires an argument", "give it the value that it lacks"},
    {"cannot be specified", kLeaveOneOut},
    {"not compatible with", kLeaveOneOut},
    {"can't be used at the same time", kLeaveOneOut},
    {"is ignored, because", kLeaveOneOut},
    {"is not supported on", "leave that argument out"},
    {"Invalid process type", "--proc-type is primary, secondary or auto"},
    {"invalid channel number", "-n is a number of memory channels: 1 or more"},
    {"invalid rank number", "-r is a number of memory ranks: 1 to 16"},
    {"invalid --huge-unlink", "--huge-unlink is existing, always or never"},
    {"Main lcore is not enabled", "choose one of the lcores of -l for --main-lcore"},
    {"invalid core list", "choose lcores that the machine has: -l 0"},
    {"invalid coremask", "choose lcores that the machine has: -l 0"},
    {"invalid service core", "choose lcores that -l lists for -s or -S"},
    {"invalid parameter for --lcores", "choose CPUs that the machine has: --lcores=0@0"},
    {"invalid parameter", kAnotherValue},
    {"Invalid length of", kAnotherValue},
    {"Invalid char, ", kAnotherValue},
}};

// Other causes that keep EAL from starting, the most specific one first: EAL complains of consequences, too.
constexpr std::array<Cause, 14> kCauses{{
    {"Cannot create lock on", "another process uses this --file-prefix: give each process its own"},
    {"failed to parse device", "check that --vdev, -a or -b argument"},
    {"Unable to parse device", "check that --vdev, -a or -b argument"},
    {"Invalid parameters", "check the arguments of that --vdev"},
    {"cannot open shared object file", "check the driver that -d names"},
    {"lcore", "choose lcores that the machine has and that are allowed here: -l 0"},
    {"Error creating '", "name a folder of yours for EAL's files in XDG_RUNTIME_DIR, or say --no-shconf"},
    {"Permission denied", "run with --no-huge -m 256 --no-pci, or give access to the huge pages"},
    {"No free", "reserve huge pages, or run with --no-huge -m 256"},
    {"No available", "reserve huge pages, or run with --no-huge -m 256"},
    {"hugepage", "reserve huge pages, or run with --no-huge -m 256"},
    {"memseg", "lower -m, or free memory"},
    {"mmap", "lower -m, or free memory"},
    {"probe", "check the --vdev and -a arguments"},
}};

std::string_view trimmed(std::string_view line) {
    for (const std::string_view prefix : {"EAL: ", "Error: "}) {
        if (line.starts_with(prefix)) {
            line.remove_prefix(prefix.size());
        }
    }
    return line;
}

// Returns the text without EAL's list of arguments, which follows a refusal of its parser and names all of them.
std::string_view without_usage(std::string_view text) {
    const std::size_t at = text.find("Usage: ");
    return at == 0 || (at != std::string_view::npos && text[at - 1] == '\n') ? text.substr(0, at) : text;
}

std::string_view line_with(std::string_view text, std::string_view sign) {
    const std::size_t at = text.find(sign);
    if (at == std::string_view::npos) {
        return {};
    }
    const std::size_t first = text.rfind('\n', at) + 1;  // npos + 1 is 0
    return text.substr(first, text.find('\n', at) - first);
}

}  // namespace

std::optional<std::string> devarg_value(std::string_view argument, std::string_view key) {
    while (!argument.empty()) {
        const std::string_view pair = argument.substr(0, argument.find(','));
        argument.remove_prefix(std::min(argument.size(), pair.size() + 1));
        if (pair.size() > key.size() && pair.starts_with(key) && pair[key.size()] == '=') {
            return std::string(pair.substr(key.size() + 1));
        }
    }
    return std::nullopt;
}

std::optional<std::string> memif_listening_file(std::string_view vdev_argument) {
    const bool listens = vdev_argument.starts_with("net_memif") && devarg_value(vdev_argument, "role") == "server" &&
                         devarg_value(vdev_argument, "socket-abstract") == "no";
    return listens ? devarg_value(vdev_argument, "socket") : std::nullopt;
}

std::vector<std::string> vdev_arguments(std::span<char* const> arguments) {
    constexpr std::string_view kName = "--vdev";
    std::vector<std::string> found;
    for (std::size_t i = 1; i < arguments.size() && std::strcmp(arguments[i], "--") != 0; ++i) {
        const std::string_view argument = arguments[i];
        if (argument == kName && i + 1 < arguments.size()) {
            found.emplace_back(arguments[++i]);
        } else if (argument.starts_with(kName) && argument.size() > kName.size() && argument[kName.size()] == '=') {
            found.emplace_back(argument.substr(kName.size() + 1));
        }
    }
    return found;
}

bool asks_for_port(std::span<char* const> arguments, std::string_view kind) {
    constexpr std::string_view kName = "--port";
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        std::string_view argument = arguments[i];
        if (argument == kName && i + 1 < arguments.size()) {
            argument = arguments[++i];
        } else if (argument.starts_with("--port=")) {
            argument.remove_prefix(kName.size() + 1);
        } else {
            continue;
        }
        if (argument.starts_with(kind)) {
            return true;
        }
    }
    return false;
}

std::vector<std::string> arguments_without_device(std::span<char* const> eal_arguments, std::string_view cpus,
                                                  unsigned lcores) {
    std::vector<std::string> all(eal_arguments.begin(), eal_arguments.end());
    const auto lacks = [&all](std::initializer_list<std::string_view> names) {
        return std::none_of(all.begin(), all.end(), [names](const std::string& argument) {
            return std::any_of(names.begin(), names.end(),
                               [&argument](std::string_view name) { return argument.starts_with(name); });
        });
    };
    if (lacks({"--no-huge", "--socket-mem", "--huge", "--in-memory", "--match-allocations"})) {
        all.emplace_back("--no-huge");
        if (lacks({"-m"})) {
            all.insert(all.end(), {"-m", "512"});
        }
    }
    if (lacks({"--no-pci", "-a", "--allow", "-b", "--block"})) {
        all.emplace_back("--no-pci");
    }
    if (lacks({"--file-prefix", "--in-memory", "--no-shconf"})) {
        all.emplace_back("--no-shconf");
    }
    if (lacks({"--no-telemetry"})) {
        all.emplace_back("--no-telemetry");
    }
    if (lacks({"-l", "-c", "--lcores"})) {
        all.push_back(lcores == 1 ? fmt::format("--lcores=0@({})", cpus)
                                  : fmt::format("--lcores=(0-{})@({})", lcores - 1, cpus));
    }
    return all;
}

Error explain_eal_failure(std::string_view output) {
    output = without_usage(output);
    for (const std::span<const Cause> causes : {std::span<const Cause>(kRefusals), std::span<const Cause>(kCauses)}) {
        for (const Cause& cause : causes) {
            const std::string_view line = line_with(output, cause.sign);
            if (!line.empty()) {
                return {fmt::format("EAL does not start: {}", trimmed(line)), std::string(cause.remedy)};
            }
        }
    }
    const std::string_view first = output.substr(0, output.find('\n'));
    return {fmt::format("EAL does not start: {}", first.empty() ? "it gives no reason" : trimmed(first)),
            "check the arguments before \"--\"; --log-level=debug says more"};
}

}  // namespace cairn::pmd
