// PathWalk: follows a path, name by name. It sends no requests itself: its user asks the shards and hands over the
// answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/client/directory_cache.hpp"
#include "fs/client/outcome.hpp"
#include "fs/client/path_rest.hpp"
#include "fs/message/answers.hpp"
#include "fs/message/requests.hpp"

namespace cairn::fs {

struct WalkWish {
    bool to_parent = false;  // stops before the last name
    bool follows = true;     // follows the last name, too, if it is a link
    bool creates = false;    // creates a regular file if the last name does not exist
    bool exclusive = false;
    std::uint32_t rights = 0;       // rights with which the file is opened
    std::uint32_t mode = 0;         // mode of a created file
    std::string* target = nullptr;  // gets the target of a link, if the link's shard sent it
};

// The end of a walk.
struct Found {
    enum class Last : std::uint8_t { Name, Dot, DotDot, Root };

    FileId directory{};       // the directory with the last name
    std::string_view name{};  // valid until the walk begins anew
    Last last = Last::Root;   // if it is not Name, `directory` is the result
    bool has_slash = false;   // a slash follows the name
    WalkAnswer answer{};      // about the last name, unless to_parent; its target is not valid
};

class PathWalk {
public:
    static constexpr int kMostLinks = 40;

    // The next step of the user.
    enum class Step : std::uint8_t {
        AskName,  // ask the shard of directory() and name() with request(), then call on_name()
        AskLink,  // ask the home of link() for its target, then call on_link()
        Ended,    // see error() and found()
    };

    // Begins a walk. `path` stays until the walk has ended. If `fresh`, the cache is not used, but learns.
    void begin(std::string_view path, const FileId& root, const WalkWish& wish, bool fresh) noexcept;
    [[nodiscard]] Step next(const DirectoryCache& cache, Instant now) noexcept;
    void on_name(const Outcome<WalkAnswer>& answer, DirectoryCache& cache, Instant now) noexcept;
    void on_link(const Outcome<TextAnswer>& answer) noexcept;

    [[nodiscard]] const FileId& directory() const noexcept { return above_.back(); }
    [[nodiscard]] std::string_view name() const noexcept { return component_.name; }
    [[nodiscard]] Request request() const noexcept;
    [[nodiscard]] const FileId& link() const noexcept { return link_; }

    // Returns 0 or an errno.
    [[nodiscard]] int error() const noexcept { return error_; }
    [[nodiscard]] const Found& found() const noexcept { return found_; }
    // True if the walk failed, and an entry of the cache may be the reason.
    [[nodiscard]] bool may_be_stale(int error) const noexcept;

private:
    enum class State : std::uint8_t { Walks, HasName, HasLink, Ended };

    [[nodiscard]] bool step_into(const DirectoryCache& cache, Instant now) noexcept;
    void end_at_directory() noexcept;
    void fail(int error) noexcept;
    void on_file(const WalkAnswer& answer) noexcept;
    void on_symlink(const WalkAnswer& answer) noexcept;
    void expand(std::string_view target) noexcept;

    PathRest rest_;
    std::vector<FileId> above_;  // the root, and the directories on the way to the present one
    WalkWish wish_{};
    PathComponent component_{};
    Found found_{};
    FileId link_{};
    State state_ = State::Ended;
    int error_ = 0;
    int links_ = 0;
    bool fresh_ = false;
    bool used_cache_ = false;
};

}  // namespace cairn::fs
