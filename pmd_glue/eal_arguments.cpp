#include "pmd_glue/eal_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace cairn::pmd {

namespace {

// A line with `sign` in it is the cause. The line itself is quoted.
struct Cause {
    std::string_view sign;
    std::string_view remedy;
};

// The most telling cause first: EAL complains of consequences, too.
// mutants: pmd-eal-causes
constexpr std::array<Cause, 16> kCauses{{
    {"unrecognized option", "EAL's arguments stand before \"--\", the program's own behind it; --help lists those"},
    {"invalid option", "EAL's arguments stand before \"--\", the program's own behind it; --help lists those"},
    {"Cannot create lock on", "another process uses this --file-prefix: give each process its own"},
    {"failed to parse device", "check the name and arguments of that --vdev"},
    {"Unable to parse device", "check the name and arguments of that --vdev"},
    {"Invalid parameters", "check the arguments of that --vdev"},
    {"invalid core list", "choose lcores that the machine has: -l 0"},
    {"invalid coremask", "choose lcores that the machine has: -l 0"},
    {"lcore", "choose lcores that the machine has and that are allowed here: -l 0"},
    {"Error creating '", "name a folder of yours for EAL's files in XDG_RUNTIME_DIR, or say --no-shconf"},
    {"Permission denied", "run with --no-huge -m 256 --no-pci, or give access to the huge pages"},
    {"No free", "reserve huge pages, or run with --no-huge -m 256"},
    {"No available", "reserve huge pages, or run with --no-huge -m 256"},
    {"hugepage", "reserve huge pages, or run with --no-huge -m 256"},
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

// mutants: pmd-eal-arguments-without-device
std::vector<std::string> arguments_without_device(std::span<char* const> eal_arguments, std::string_view cpus,
                                                  unsigned lcores) {
    std::vector<std::string> all(eal_arguments.begin(), eal_arguments.end());
    const auto lacks = [&all](std::initializer_list<std::string_view> names) {
        return std::none_of(all.begin(), all.end(), [names](const std::string& argument) {
            return std::any_of(names.begin(), names.end(),
                               [&argument](std::string_view name) { return argument.starts_with(name); });
        });
    };
    if (lacks({"--no-huge", "--socket-mem", "--huge", "--in-memory"})) {
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
    for (const Cause& cause : kCauses) {
        const std::string_view line = line_with(output, cause.sign);
        if (!line.empty()) {
            return {fmt::format("EAL does not start: {}", trimmed(line)), std::string(cause.remedy)};
        }
    }
    const std::string_view first = output.substr(0, output.find('\n'));
    return {fmt::format("EAL does not start: {}", first.empty() ? "it gives no reason" : trimmed(first)),
            "check the arguments before \"--\"; --log-level=debug says more"};
}

}  // namespace cairn::pmd
