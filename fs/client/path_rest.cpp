#include "fs/client/path_rest.hpp"

namespace cairn::fs {

std::optional<PathComponent> PathRest::next() noexcept {
    skip_slashes();
    if (rest_.empty()) {
        return std::nullopt;
    }
    PathComponent component{rest_.substr(0, rest_.find('/'))};
    rest_.remove_prefix(component.name.size());
    component.has_slash = !rest_.empty();
    skip_slashes();
    component.is_last = rest_.empty();
    return component;
}

// `target` may lie in the text that is replaced.
void PathRest::expand(std::string_view target, bool has_slash) {
    spare_.assign(target);
    if (has_slash) {
        spare_ += '/';
    }
    spare_ += rest_;
    text_.swap(spare_);
    rest_ = text_;
}

}  // namespace cairn::fs
