#include "apps/common/emulation.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <vector>

#include "pmd_glue/eal.hpp"

namespace cairn::app {

void add_context_cache(CLI::App& app, roce::ContextCacheEmulation& emulation) {
    constexpr std::uint32_t kMost = 1'000'000;
    app.add_option_function<std::vector<std::uint32_t>>(
           "--emulate-context-cache",
           [&emulation](const std::vector<std::uint32_t>& given) {
               emulation = {given[0], nanoseconds(given[1]), pmd::keep_busy};
           },
           "an experiment, not how Cairn is: COUNT,NS. This end behaves like an adapter that has the contexts of COUNT "
           "queue pairs at hand; a request of another one waits NS nanoseconds")
        ->delimiter(',')
        ->expected(2)
        ->type_name("COUNT,NS")
        ->check(CLI::Range(0U, kMost));
}

}  // namespace cairn::app
