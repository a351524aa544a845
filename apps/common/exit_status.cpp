#include "apps/common/exit_status.hpp"

#include <cstdio>

namespace cairn::app {

int complain(std::string_view name, std::string_view text) noexcept {
    std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(name.size()), name.data(), static_cast<int>(text.size()),
                 text.data());
    return kBadUsage;
}

}  // namespace cairn::app
