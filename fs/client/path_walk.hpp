// PathWalk: how a path is followed, name by name. It asks nobody itself: its user does, and tells it the answers.
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
    bool follows = true;     // also a link that is the last name
    bool creates = false;    // a regular file, if the last name is not there
    bool exclusive = false;
    std::uint32_t rights = 0;       // opens what it finds
    std::uint32_t mode = 0;         // of a file that it creates
    std::string* target = nullptr;  // gets that of a link that is found, if the link's shard said it
};

// Where a walk has ended.
struct Found {
    enum class Last : std::uint8_t { Name, Dot, DotDot, Root };

    FileId directory{};       // that has the last name
    std::string_view name{};  // valid until the walk begins anew
    Last last = Last::Root;   // unless it is a name, `directory` is what was found
    bool has_slash = false;   // behind the name
    WalkAnswer answer{};      // of the last name, unless to_parent. Its target is not valid
};

class PathWalk {
public:
    static constexpr int kMostLinks = 40;

    // What the user has to do next.
    enum class Step : std::uint8_t {
        AskName,  // ask request() of the shard of directory() and name(): on_name()
        AskLink,  // ask the home of link() for its target: on_link()
        Ended,    // see error() and found()
    };

    // `path` stays until the walk has ended. The cache is not looked at if `fresh`, but learns.
    void begin(std::string_view path, const FileId& root, const WalkWish& wish, bool fresh) noexcept;
    [[nodiscard]] Step next(const DirectoryCache& cache, Instant now) noexcept;
    void on_name(const Outcome<WalkAnswer>& answer, DirectoryCache& cache, Instant now) noexcept;
    void on_link(const Outcome<TextAnswer>& answer) noexcept;

    [[nodiscard]] const FileId& directory() const noexcept { return above_.back(); }
    [[nodiscard]] std::string_view name() const noexcept { return component_.name; }
    [[nodiscard]] Request request() const noexcept;
    [[nodiscard]] const FileId& link() const noexcept { return link_; }

    // 0 or an errno.
    [[nodiscard]] int error() const noexcept { return error_; }
    [[nodiscard]] const Found& found() const noexcept { return found_; }
    // The walk failed, and what it took from the cache may be the reason.
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
    std::vector<FileId> above_;  // the root, and directories below it to where the walk is
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
