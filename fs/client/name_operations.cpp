#include "fs/client/operations.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "fs/client/asking.hpp"
#include "fs/rules/names.hpp"

namespace cairn::fs {

// The errno for each kind of last component that is no name, and for a name that a slash follows.
struct LastErrors {
    int dot = 0;
    int dot_dot = 0;
    int root = 0;
    int slash = 0;  // 0 if a slash is allowed

    [[nodiscard]] int judge(const Found& found) const noexcept {
        switch (found.last) {
            case Found::Last::Dot:
                return dot;
            case Found::Last::DotDot:
                return dot_dot;
            case Found::Last::Root:
                return root;
            case Found::Last::Name:
                break;
        }
        return found.has_slash ? slash : 0;
    }
};

namespace {

constexpr std::uint32_t kDirectoryModeBits = 01777;

bool ends_with_slash(std::string_view path) noexcept {
    return path.ends_with('/');
}

constexpr LastErrors kMakesDirectory{EEXIST, EEXIST, EEXIST, 0};
constexpr LastErrors kMakesName{EEXIST, EEXIST, EEXIST, ENOENT};
constexpr LastErrors kUnlinks{EISDIR, EISDIR, EISDIR, EISDIR};
constexpr LastErrors kRemovesDirectory{EINVAL, ENOTEMPTY, EBUSY, 0};
constexpr LastErrors kRenames{EBUSY, EBUSY, EBUSY, 0};

// Puts the name into the request.
void set_name(Request& request, const Found& found) noexcept {
    std::visit(
        [&found](auto& fields) {
            if constexpr (requires { fields.directory, fields.name; }) {
                fields.directory = found.directory;
                fields.name = found.name;
            }
        },
        request);
}

// Asks the shard of a path's last name. The name goes into the request.
template <class Answer>
Task<Outcome<Answer>> ask_at_name(ClientThread& thread, std::string_view path, LastErrors errors, Request request) {
    const WalkLease walk(thread);
    WalkWish wish;
    wish.to_parent = true;
    for (bool fresh = false;; fresh = true) {
        Outcome<Answer> answer;
        answer.error = co_await follow(thread, *walk, path, wish, fresh);
        const Found& found = walk->found();
        answer.error = answer.error != 0 ? answer.error : errors.judge(found);
        if (answer.ok()) {
            set_name(request, found);
            const Target target = Target::slot(thread.view().slot_of(found.directory, found.name));
            answer = co_await Asking<Answer>(thread.road(), target, request);
        }
        if (answer.ok() || fresh || !walk->may_be_stale(answer.error)) {
            co_return answer;
        }
    }
}

template <class Answer>
Outcome<> without_value(const Outcome<Answer>& outcome) noexcept {
    return outcome.ok() ? Outcome<>{} : Outcome<>{Failure{outcome.error}};
}

// Checks a path that ends in a slash: it has to name a directory.
Task<int> judge_slash(ClientThread& thread, std::string_view path) {
    const Outcome<Attributes> found = co_await stat_path(thread, path, false);
    co_return found.error;
}

}  // namespace

Task<Outcome<>> make_directory(ClientThread& thread, std::string_view path, std::uint32_t mode) {
    const std::uint32_t bits = S_IFDIR | (mode & ~thread.umask() & kDirectoryModeBits);
    const CreateRequest make{{}, bits, 0, true, {}, {}};
    const Outcome<WalkAnswer> made = co_await ask_at_name<WalkAnswer>(thread, path, kMakesDirectory, make);
    co_return without_value(made);
}

Task<Outcome<>> make_symlink(ClientThread& thread, std::string_view target, std::string_view path) {
    if (target.empty() || target.size() > kLongestPath) {
        co_return Failure{target.empty() ? ENOENT : ENAMETOOLONG};
    }
    const CreateRequest make{{}, S_IFLNK | 0777, 0, true, {}, target};
    const Outcome<WalkAnswer> made = co_await ask_at_name<WalkAnswer>(thread, path, kMakesName, make);
    co_return without_value(made);
}

Task<Outcome<>> make_link(ClientThread& thread, std::string_view path, std::string_view new_path) {
    WalkWish wish;
    wish.follows = false;
    const Outcome<Found> found = co_await find(thread, path, wish);
    if (!found.ok()) {
        co_return Failure{found.error};
    }
    if (S_ISDIR(found.value.answer.attributes.mode)) {
        co_return Failure{EPERM};
    }
    const LinkRequest make{found.value.answer.attributes.id, {}, {}};
    const Outcome<AttributesAnswer> made = co_await ask_at_name<AttributesAnswer>(thread, new_path, kMakesName, make);
    co_return without_value(made);
}

Task<Outcome<std::string>> read_symlink(ClientThread& thread, std::string_view path) {
    std::string target;
    WalkWish wish;
    wish.follows = false;
    wish.target = &target;
    const Outcome<Found> found = co_await find(thread, path, wish);
    if (!found.ok()) {
        co_return Failure{found.error};
    }
    const FileId link = found.value.answer.attributes.id;
    if (!S_ISLNK(found.value.answer.attributes.mode)) {
        co_return Failure{EINVAL};
    }
    if (target.empty()) {
        const Outcome<TextAnswer> answer =
            co_await Asking<TextAnswer>(thread.road(), Target::home(link), ReadLinkRequest{link});
        if (!answer.ok()) {
            co_return Failure{answer.error};
        }
        target.assign(answer.value.text);
    }
    co_return target;
}

Task<Outcome<>> remove_name(ClientThread& thread, std::string_view path, bool is_directory) {
    if (!is_directory && ends_with_slash(path)) {
        const int error = co_await judge_slash(thread, path);
        co_return Failure{error != 0 ? error : EISDIR};
    }
    const RemoveRequest remove{{}, is_directory, {}};
    const Outcome<EmptyAnswer> removed =
        co_await ask_at_name<EmptyAnswer>(thread, path, is_directory ? kRemovesDirectory : kUnlinks, remove);
    if (is_directory && removed.ok()) {
        thread.on_move();
    }
    co_return without_value(removed);
}

Task<Outcome<>> rename_path(ClientThread& thread, std::string_view path, std::string_view new_path, bool no_replace) {
    if (ends_with_slash(path) || ends_with_slash(new_path)) {
        std::string as_directory(path);
        as_directory += '/';
        if (const int error = co_await judge_slash(thread, as_directory); error != 0) {
            co_return Failure{error};
        }
    }
    const WalkLease to(thread);
    WalkWish wish;
    wish.to_parent = true;
    for (bool fresh = false;; fresh = true) {
        Outcome<EmptyAnswer> renamed;
        renamed.error = co_await follow(thread, *to, new_path, wish, fresh);
        renamed.error = renamed.error != 0 ? renamed.error : kRenames.judge(to->found());
        if (renamed.ok()) {
            const Found& at = to->found();
            const RenameRequest rename{{}, at.directory, no_replace, {}, at.name};
            renamed = co_await ask_at_name<EmptyAnswer>(thread, path, kRenames, rename);
        }
        if (renamed.ok()) {
            thread.on_move();
        }
        if (renamed.ok() || fresh || !to->may_be_stale(renamed.error)) {
            co_return without_value(renamed);
        }
    }
}

}  // namespace cairn::fs
