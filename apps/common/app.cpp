#include "apps/common/app.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "pmd_glue/eal.hpp"
#include "pmd_glue/eal_arguments.hpp"
#include "pmd_glue/lcores.hpp"

namespace cairn::app {

namespace {

bool asks_for_text(std::span<char* const> own) {
    return std::any_of(own.begin(), own.end(), [](std::string_view argument) {
        return argument == "-h" || argument == "--help" || argument == "--version";
    });
}

// Runs the program in EAL. Without "--" there are no arguments for EAL. Then there is no device either, unless the
// program's own arguments ask for one.
Result<int> run_in_eal(int argc, char** argv, const Program& program, unsigned lcores) {
    const std::span arguments(argv, static_cast<std::size_t>(argc));
    const auto dashes = std::find_if(arguments.begin() + 1, arguments.end(),
                                     [](std::string_view argument) { return argument == "--"; });
    const bool split = dashes != arguments.end();
    const auto before = split ? static_cast<std::size_t>(dashes - arguments.begin()) : std::size_t{1};
    const std::size_t first = split ? before + 1 : before;
    if (asks_for_text(arguments.subspan(first))) {  // needs no EAL
        return program(argc, argv, static_cast<int>(first));
    }
    const auto given = arguments.first(before);
    const bool device = split ? !pmd::asks_for_port(arguments, "uring") : pmd::asks_for_port(arguments, "eth");
    const std::string cpus = fmt::format("{}", fmt::join(pmd::allowed_cpus(), ","));
    std::vector<std::string> texts = device ? std::vector<std::string>(given.begin(), given.end())
                                            : pmd::arguments_without_device(given, cpus, lcores);
    std::vector<char*> for_eal;
    std::transform(texts.begin(), texts.end(), std::back_inserter(for_eal),
                   [](std::string& text) { return text.data(); });
    pmd::stop_on_signals();  // from here on there may be files to remove
    const auto eal = pmd::Eal::start(static_cast<int>(for_eal.size()), for_eal.data());
    return eal.ok() ? program(argc, argv, static_cast<int>(first)) : Result<int>(eal.error());
}

}  // namespace

int run(std::string_view name, int argc, char** argv, const Program& program, unsigned lcores) noexcept {
    return exit_status(name, [&] { return run_in_eal(argc, argv, program, lcores); });
}

}  // namespace cairn::app
