#include "pmd_glue/forward_mode.hpp"

#include <algorithm>
#include <array>

namespace cairn::pmd {

namespace {

struct ModeName {
    ForwardMode mode;
    std::string_view name;
};
constexpr std::array kModeNames{
#define CAIRN_X(enumerator, name, text) ModeName{ForwardMode::enumerator, name},
    CAIRN_FORWARD_MODES(CAIRN_X)
#undef CAIRN_X
};

}  // namespace

std::optional<ForwardMode> forward_mode_named(std::string_view name) noexcept {
    const auto* found =
        std::find_if(kModeNames.begin(), kModeNames.end(), [name](const ModeName& each) { return each.name == name; });
    return found == kModeNames.end() ? std::nullopt : std::optional(found->mode);
}

std::string_view name_of(ForwardMode mode) noexcept {
    return kModeNames[static_cast<std::size_t>(mode)].name;
}

std::string ForwardTask::reasons_text(std::size_t) const {
    return {};
}

}  // namespace cairn::pmd
