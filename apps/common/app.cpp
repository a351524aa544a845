#include "apps/common/app.hpp"

#include <cstdio>
#include <exception>
#include <string>

#include "pmd_glue/eal.hpp"
#include "pmd_glue/worker.hpp"

namespace cairn::app {

namespace {

Result<int> run_in_eal(int argc, char** argv, Program program) {
    for (int i = 1; i < argc; ++i) {
        if (std::string_view(argv[i]) == "--help") {  // without EAL
            return program(argc, argv, i);
        }
    }
    const auto eal = pmd::Eal::start(argc, argv);
    if (!eal.ok()) {
        return eal.error();
    }
    pmd::stop_on_signals();
    return program(argc, argv, eal.value().consumed() + 1);
}

int complain(std::string_view name, const char* text) noexcept {
    std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(name.size()), name.data(), text);
    return kBadUsage;
}

}  // namespace

int run(std::string_view name, int argc, char** argv, Program program) noexcept {
    try {
        const Result<int> status = run_in_eal(argc, argv, program);
        return status.ok() ? status.value() : complain(name, status.error().text().c_str());
    } catch (const std::exception& failure) {  // no memory, as a rule
        return complain(name, failure.what());
    }
}

}  // namespace cairn::app
