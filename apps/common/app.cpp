#include "apps/common/app.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "pmd_glue/eal.hpp"
#include "pmd_glue/eal_arguments.hpp"
#include "pmd_glue/worker.hpp"

namespace cairn::app {

namespace {

// "0,1,3": where this process may run.
std::string allowed_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    std::string text;
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set)) {
            text += fmt::format("{}{}", text.empty() ? "" : ",", cpu);
        }
    }
    return text;
}

Result<int> run_on_devices(int argc, char** argv, Program program) {
    const auto eal = pmd::Eal::start(argc, argv);
    if (!eal.ok()) {
        return eal.error();
    }
    pmd::stop_on_signals();
    return program(argc, argv, eal.value().consumed() + 1);
}

// Without "--" there are no arguments for EAL.
Result<int> run_on_socket(std::span<char*> arguments, Program program) {
    const auto dashes = std::find_if(arguments.begin() + 1, arguments.end(),
                                     [](const char* argument) { return std::string_view(argument) == "--"; });
    const bool split = dashes != arguments.end();
    const auto own = static_cast<std::size_t>(dashes - arguments.begin()) + 1;
    std::vector<std::string> texts =
        pmd::arguments_without_device(split ? arguments.first(own - 1) : arguments.first(1), allowed_cpus());
    std::vector<char*> for_eal;
    for (std::string& text : texts) {
        for_eal.push_back(text.data());
    }
    const auto eal = pmd::Eal::start(static_cast<int>(for_eal.size()), for_eal.data());
    if (!eal.ok()) {
        return eal.error();
    }
    pmd::stop_on_signals();
    return program(static_cast<int>(arguments.size()), arguments.data(), split ? static_cast<int>(own) : 1);
}

Result<int> run_in_eal(int argc, char** argv, Program program) {
    for (int i = 1; i < argc; ++i) {
        if (std::string_view(argv[i]) == "--help") {  // without EAL
            return program(argc, argv, i);
        }
    }
    const std::span arguments(argv, static_cast<std::size_t>(argc));
    return pmd::asks_for_socket(arguments) ? run_on_socket(arguments, program) : run_on_devices(argc, argv, program);
}

}  // namespace

int run(std::string_view name, int argc, char** argv, Program program) noexcept {
    return exit_status(name, [&] { return run_in_eal(argc, argv, program); });
}

}  // namespace cairn::app
