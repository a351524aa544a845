#include "fs/client/operations.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "fs/client/asking.hpp"
#include "fs/rules/access.hpp"
#include "fs/rules/ranges.hpp"

namespace cairn::fs {

namespace {

constexpr std::uint32_t kModeBits = 07777;

std::uint32_t rights_of(int flags) noexcept {
    const int access = flags & O_ACCMODE;
    return (access != O_WRONLY ? kMayRead : 0) | (access != O_RDONLY ? kMayWrite : 0);
}

// A name that existed a moment ago leads nowhere now.
int error_of_path(int error) noexcept {
    return error == ESTALE ? ENOENT : error;
}

// Opens the file at its home, or gets its attributes there. Does nothing if the name's shard was the home.
Task<int> complete_at_home(ClientThread& thread, Found& found, std::uint32_t rights) {
    WalkAnswer& answer = found.answer;
    const FileId file = answer.attributes.id;
    if (rights != 0 && !answer.is_opened && !S_ISLNK(answer.attributes.mode)) {
        const Outcome<OpenAnswer> opened =
            co_await Asking<OpenAnswer>(thread.road(), Target::home(file), OpenRequest{.file = file, .rights = rights});
        if (opened.ok()) {
            answer.attributes = opened.value.attributes;
            answer.proof = opened.value.proof;
            answer.is_opened = true;
        }
        co_return opened.error;
    }
    if (!answer.is_home) {
        const Outcome<Attributes> attributes = co_await stat_file(thread, file);
        answer.attributes = attributes.ok() ? attributes.value : answer.attributes;
        co_return attributes.error;
    }
    co_return 0;
}

// Judges what open() has found. Returns 0 or an errno.
int judge_opened(const Found& found, int flags) noexcept {
    const std::uint32_t mode = found.answer.attributes.mode;
    if (S_ISLNK(mode)) {
        return ELOOP;
    }
    if (S_ISDIR(mode)) {
        return (rights_of(flags) & kMayWrite) != 0 || (flags & (O_TRUNC | O_CREAT)) != 0 ? EISDIR : 0;
    }
    return (flags & O_DIRECTORY) != 0 ? ENOTDIR : 0;
}

}  // namespace

Task<int> follow(ClientThread& thread, PathWalk& walk, std::string_view path, WalkWish wish, bool fresh) {
    walk.begin(path, thread.view().welcome().root, wish, fresh);
    const Instant now = coarse_now();
    for (;;) {
        const PathWalk::Step step = walk.next(thread.directories(), now);
        if (step == PathWalk::Step::Ended) {
            co_return walk.error();
        }
        if (step == PathWalk::Step::AskName) {
            const Target target = Target::slot(thread.view().slot_of(walk.directory(), walk.name()));
            const Outcome<WalkAnswer> answer = co_await Asking<WalkAnswer>(thread.road(), target, walk.request());
            walk.on_name(answer, thread.directories(), now);
        } else {
            const Outcome<TextAnswer> answer =
                co_await Asking<TextAnswer>(thread.road(), Target::home(walk.link()), ReadLinkRequest{walk.link()});
            walk.on_link(answer);
        }
    }
}

Task<Outcome<Found>> find(ClientThread& thread, std::string_view path, WalkWish wish) {
    const WalkLease walk(thread);
    for (bool fresh = false;; fresh = true) {
        int error = co_await follow(thread, *walk, path, wish, fresh);
        Found found = walk->found();
        if (error == 0) {
            error = co_await complete_at_home(thread, found, wish.rights);
        }
        if (error == 0) {
            co_return found;
        }
        if (fresh || !walk->may_be_stale(error)) {
            co_return Failure{error_of_path(error)};
        }
    }
}

Task<Outcome<File*>> open_file(ClientThread& thread, std::string_view path, int flags, std::uint32_t mode) {
    if ((flags & O_ACCMODE) == O_ACCMODE) {
        co_return Failure{EINVAL};
    }
    WalkWish wish;
    wish.creates = (flags & O_CREAT) != 0;
    wish.exclusive = (flags & O_EXCL) != 0;
    wish.follows = (flags & O_NOFOLLOW) == 0 && !(wish.creates && wish.exclusive);
    wish.rights = rights_of(flags) | ((flags & O_TRUNC) != 0 ? kMayWrite : 0);
    wish.mode = mode & ~thread.umask() & kModeBits;
    const Outcome<Found> found = co_await find(thread, path, wish);
    if (!found.ok()) {
        co_return Failure{found.error};
    }
    const WalkAnswer& answer = found.value.answer;
    int error = judge_opened(found.value, flags);
    if (!answer.is_opened) {
        co_return Failure{error != 0 ? error : EIO};
    }
    const FileWays ways{rights_of(flags), (flags & O_APPEND) != 0, thread.is_relaxed()};
    File& file = thread.files().add(answer.attributes, {wish.rights, answer.proof}, ways);
    if (error == 0 && (flags & O_TRUNC) != 0 && !answer.was_made && answer.attributes.size != 0) {
        error = (co_await set_granted_size(thread, file, 0)).error;
    }
    if (error != 0) {
        (void)co_await close_file(thread, file);
        co_return Failure{error};
    }
    co_return &file;
}

// If a restarted daemon does not know that the file is open, the file counts as closed.
Task<Outcome<>> close_file(ClientThread& thread, File& file) {
    const FileId id = file.id;
    thread.files().remove(file);
    int told = 0;
    if (thread.late().any()) {
        told = co_await tell_late(thread, id);
    }
    const Outcome<EmptyAnswer> answer = co_await Asking<EmptyAnswer>(thread.road(), Target::home(id), CloseRequest{id});
    if (!answer.ok() && answer.error != EBADF) {
        co_return Failure{answer.error};
    }
    co_return Outcome<>(Failure{told});
}

Task<Outcome<Attributes>> stat_path(ClientThread& thread, std::string_view path, bool follows) {
    WalkWish wish;
    wish.follows = follows;
    const Outcome<Found> found = co_await find(thread, path, wish);
    if (!found.ok()) {
        co_return Failure{found.error};
    }
    const Attributes attributes = found.value.answer.attributes;
    if (!thread.late().has(attributes.id)) {
        co_return attributes;
    }
    if (const int error = co_await tell_late(thread, attributes.id); error != 0) {
        co_return Failure{error};
    }
    co_return co_await stat_file(thread, attributes.id);
}

Task<Outcome<Attributes>> stat_file(ClientThread& thread, const FileId& file) {
    const FileId id = file;
    const Outcome<AttributesAnswer> answer =
        co_await Asking<AttributesAnswer>(thread.road(), Target::home(id), StatRequest{id});
    if (!answer.ok()) {
        co_return Failure{answer.error};
    }
    co_return answer.value.attributes;
}

Task<Outcome<Attributes>> set_attributes(ClientThread& thread, std::string_view path, SetAttributesRequest what,
                                         bool follows) {
    WalkWish wish;
    wish.follows = follows;
    const Outcome<Found> found = co_await find(thread, path, wish);
    if (!found.ok()) {
        co_return Failure{found.error};
    }
    what.file = found.value.answer.attributes.id;
    if (const int error = co_await tell_late(thread, what.file); error != 0) {
        co_return Failure{error};
    }
    const Outcome<AttributesAnswer> answer =
        co_await Asking<AttributesAnswer>(thread.road(), Target::home(what.file), what);
    if (!answer.ok()) {
        co_return Failure{error_of_path(answer.error)};
    }
    co_return answer.value.attributes;
}

Task<Outcome<Attributes>> set_size(ClientThread& thread, File& file, std::uint64_t size) {
    if ((file.rights & kMayWrite) == 0) {
        co_return Failure{EINVAL};
    }
    co_return co_await set_granted_size(thread, file, size);
}

Task<Outcome<Attributes>> set_granted_size(ClientThread& thread, File& file, std::uint64_t size) {
    SetAttributesRequest what;
    what.file = file.id;
    what.grant = file.grant();
    what.what = kSetSize;
    what.size = size;
    if (const int error = co_await tell_late(thread, file.id); error != 0) {
        co_return Failure{error};
    }
    const Outcome<AttributesAnswer> answer =
        co_await Asking<AttributesAnswer>(thread.road(), Target::home(file.id), what);
    if (!answer.ok()) {
        co_return Failure{answer.error};
    }
    const Attributes& attributes = answer.value.attributes;
    file.size.store(attributes.size, std::memory_order_relaxed);
    file.generation.store(attributes.generation, std::memory_order_relaxed);
    co_return attributes;
}

Task<Outcome<StatFsAnswer>> stat_fs(ClientThread& thread) {
    AskingAll<StatFsAnswer> all(thread.road(), StatFsRequest{});
    if (const int error = co_await all; error != 0) {
        co_return Failure{error};
    }
    StatFsAnswer sum;
    for (std::size_t shard = 0; shard != all.size(); ++shard) {
        const StatFsAnswer& one = all[shard];
        sum.bytes += one.bytes;
        sum.free_bytes += one.free_bytes;
        sum.files += one.files;
        sum.chunks += one.chunks;
        sum.log_bytes += one.log_bytes;
        sum.index_bytes += one.index_bytes;
    }
    co_return sum;
}

Task<Outcome<StatFsAnswer>> stat_shard(ClientThread& thread, std::uint16_t shard) {
    const Outcome<StatFsAnswer> answer =
        co_await Asking<StatFsAnswer>(thread.road(), Target::shard(shard), StatFsRequest{});
    co_return answer;
}

Task<Outcome<std::vector<std::uint8_t>>> ask_shard(ClientThread& thread, std::uint16_t shard, Request request) {
    if (shard >= thread.view().table().shards()) {
        co_return Failure{EINVAL};
    }
    const Outcome<RawAnswer> answer = co_await Asking<RawAnswer>(thread.road(), Target::shard(shard), request);
    if (!answer.ok()) {
        co_return Failure{answer.error};
    }
    co_return std::vector<std::uint8_t>(answer.value.bytes.begin(), answer.value.bytes.end());
}

Task<Outcome<>> sync_all(ClientThread& thread) {
    AskingAll<EmptyAnswer> all(thread.road(), SyncRequest{});
    if (const int error = co_await all; error != 0) {
        co_return Failure{error};
    }
    co_return Nothing{};
}

// A shard makes all that it has answered durable at once, so there is nothing to ask about one file alone.
Task<Outcome<>> sync_file(ClientThread& thread, const File& file) {
    if (const int error = co_await tell_late(thread, file.id); error != 0) {
        co_return Failure{error};
    }
    co_return co_await sync_all(thread);
}

}  // namespace cairn::fs
