// The part of a path that a walk has not followed yet.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::fs {

struct PathComponent {
    std::string_view name{};
    bool is_last = false;
    bool has_slash = false;  // a slash follows it, so it must be a directory
};

class PathRest {
public:
    // Begins with a path, which stays until the walk ends.
    void begin(std::string_view path) noexcept { rest_ = path; }
    // Returns the next component, or nothing at the end. It is valid until expand().
    [[nodiscard]] std::optional<PathComponent> next() noexcept;
    // Puts a symbolic link's target in place of the component that was returned last.
    void expand(std::string_view target, bool has_slash);

private:
    void skip_slashes() noexcept { rest_.remove_prefix(std::min(rest_.find_first_not_of('/'), rest_.size())); }

    std::string_view rest_;
    std::string text_;   // holds the text of rest_ after a link was expanded
    std::string spare_;  // for the next expansion
};

}  // namespace cairn::fs
