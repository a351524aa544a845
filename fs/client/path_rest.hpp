// What is left of a path that is walked.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace cairn::fs {

struct PathComponent {
    std::string_view name{};
    bool is_last = false;
    bool has_slash = false;  // behind it: it is a directory
};

class PathRest {
public:
    // `path` stays until the walk ends.
    void begin(std::string_view path) noexcept { rest_ = path; }
    // Returns nothing at the end. Valid until expand().
    [[nodiscard]] std::optional<PathComponent> next() noexcept;
    // A symbolic link's target stands in place of the component that was returned last.
    void expand(std::string_view target, bool has_slash);

private:
    void skip_slashes() noexcept { rest_.remove_prefix(std::min(rest_.find_first_not_of('/'), rest_.size())); }

    std::string_view rest_;
    std::string text_;   // what rest_ lies in, once a link was expanded
    std::string spare_;  // the next one
};

}  // namespace cairn::fs
