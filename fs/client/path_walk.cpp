#include "fs/client/path_walk.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "fs/rules/names.hpp"
#include "lib/base/assert.hpp"

namespace cairn::fs {

void PathWalk::begin(std::string_view path, const FileId& root, const WalkWish& wish, bool fresh) noexcept {
    rest_.begin(path);
    above_.assign(1, root);
    wish_ = wish;
    component_ = {};
    found_ = {};
    state_ = State::Walks;
    error_ = 0;
    links_ = 0;
    fresh_ = fresh;
    used_cache_ = false;
    if (path.empty() || path.size() > kLongestPath) {
        fail(path.empty() ? ENOENT : ENAMETOOLONG);
    }
}

PathWalk::Step PathWalk::next(const DirectoryCache& cache, Instant now) noexcept {
    while (state_ == State::Walks) {
        const std::optional<PathComponent> component = rest_.next();
        if (!component) {
            end_at_directory();
            break;
        }
        component_ = *component;
        if (component_.name == ".") {
            found_.last = Found::Last::Dot;
        } else if (component_.name == "..") {
            found_.last = Found::Last::DotDot;
            above_.resize(above_.size() > 1 ? above_.size() - 1 : 1);
        } else if (!step_into(cache, now)) {
            break;
        }
    }
    return state_ == State::HasName ? Step::AskName : state_ == State::HasLink ? Step::AskLink : Step::Ended;
}

// Returns true if the name is a known directory.
bool PathWalk::step_into(const DirectoryCache& cache, Instant now) noexcept {
    found_.last = Found::Last::Name;
    if (const int error = judge_name(component_.name); error != 0) {
        fail(error);
        return false;
    }
    if (component_.is_last) {
        found_.directory = directory();
        found_.name = component_.name;
        found_.has_slash = component_.has_slash;
        state_ = wish_.to_parent ? State::Ended : State::HasName;
        if (wish_.creates && component_.has_slash) {
            fail(EISDIR);
        }
        return false;
    }
    const FileId* const known = fresh_ ? nullptr : cache.find(directory(), component_.name, now);
    if (known == nullptr) {
        state_ = State::HasName;
        return false;
    }
    used_cache_ = true;
    above_.push_back(*known);
    return true;
}

void PathWalk::end_at_directory() noexcept {
    found_.directory = directory();
    found_.answer.attributes.id = directory();
    found_.answer.attributes.mode = S_IFDIR;
    state_ = State::Ended;
    if (wish_.creates) {
        fail(wish_.exclusive ? EEXIST : EISDIR);
    }
}

// A name that a slash follows is not opened before it is known to be a directory.
Request PathWalk::request() const noexcept {
    const std::uint32_t rights = component_.is_last && !component_.has_slash ? wish_.rights : 0;
    if (component_.is_last && wish_.creates) {
        return CreateRequest{directory(), S_IFREG | wish_.mode, rights, wish_.exclusive, component_.name, {}};
    }
    return WalkRequest{directory(), rights, component_.name};
}

void PathWalk::on_name(const Outcome<WalkAnswer>& answer, DirectoryCache& cache, Instant now) noexcept {
    CAIRN_ASSERT(state_ == State::HasName);
    state_ = State::Walks;
    const std::uint32_t type = answer.value.attributes.mode & S_IFMT;
    const bool is_link = answer.ok() && type == S_IFLNK;
    if (is_link && (!component_.is_last || wish_.follows || component_.has_slash)) {
        on_symlink(answer.value);
    } else if (component_.is_last) {
        answer.ok() ? on_file(answer.value) : fail(answer.error);
    } else if (answer.ok() && type == S_IFDIR) {
        cache.put(directory(), component_.name, answer.value.attributes.id, now);
        above_.push_back(answer.value.attributes.id);
    } else {
        cache.drop(directory(), component_.name);
        fail(answer.ok() ? ENOTDIR : answer.error);
    }
}

void PathWalk::on_file(const WalkAnswer& answer) noexcept {
    found_.answer = answer;
    if (wish_.target != nullptr) {
        wish_.target->assign(answer.target);
    }
    found_.answer.target = {};
    state_ = State::Ended;
    if (component_.has_slash && !S_ISDIR(answer.attributes.mode)) {
        fail(ENOTDIR);
    }
}

void PathWalk::on_symlink(const WalkAnswer& answer) noexcept {
    if (wish_.creates && wish_.exclusive && component_.is_last) {
        fail(EEXIST);
    } else if (++links_ > kMostLinks) {
        fail(ELOOP);
    } else if (answer.is_home) {
        expand(answer.target);
    } else {
        link_ = answer.attributes.id;
        state_ = State::HasLink;
    }
}

void PathWalk::on_link(const Outcome<TextAnswer>& answer) noexcept {
    CAIRN_ASSERT(state_ == State::HasLink);
    state_ = State::Walks;
    answer.ok() ? expand(answer.value.text) : fail(answer.error);
}

void PathWalk::expand(std::string_view target) noexcept {
    if (target.empty()) {
        fail(ENOENT);
        return;
    }
    if (target.front() == '/') {
        above_.resize(1);
        found_.last = Found::Last::Root;
    }
    rest_.expand(target, component_.has_slash);
}

bool PathWalk::may_be_stale(int error) const noexcept {
    return used_cache_ && (error == ENOENT || error == ENOTDIR || error == ESTALE);
}

void PathWalk::fail(int error) noexcept {
    error_ = error;
    state_ = State::Ended;
}

}  // namespace cairn::fs
