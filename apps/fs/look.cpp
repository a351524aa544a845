// Commands that look: ls, stat, df, status.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "apps/fs/session.hpp"
#include "fs/client/view.hpp"

namespace cairn::fstool {

namespace {

struct Line {
    std::string name{};
    std::string path{};
    std::string target{};  // of a symbolic link
    fs::Attributes attributes{};
    int error = 0;
    bool ended = false;
};

char type_letter(std::uint32_t mode) noexcept {
    return S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : S_ISREG(mode) ? '-' : '?';
}

std::string permissions(std::uint32_t mode) {
    std::string text = "rwxrwxrwx";
    for (std::size_t i = 0; i != text.size(); ++i) {
        text[i] = (mode >> (8 - i) & 1U) != 0 ? text[i] : '-';
    }
    const auto mark = [&](std::uint32_t bit, std::size_t at, char both, char alone) {
        if ((mode & bit) != 0) {
            text[at] = text[at] == 'x' ? both : alone;
        }
    };
    mark(S_ISUID, 2, 's', 'S');
    mark(S_ISGID, 5, 's', 'S');
    mark(S_ISVTX, 8, 't', 'T');
    return type_letter(mode) + text;
}

std::string user_name(std::uint32_t uid) {
    const passwd* const user = getpwuid(uid);
    return user != nullptr ? user->pw_name : std::to_string(uid);
}

std::string group_name(std::uint32_t gid) {
    const group* const found = getgrgid(gid);
    return found != nullptr ? found->gr_name : std::to_string(gid);
}

std::string time_text(std::int64_t ns, const char* format) {
    const std::time_t seconds = ns / 1'000'000'000;
    std::tm local{};
    ::localtime_r(&seconds, &local);
    return fmt::format(fmt::runtime(format), local);
}

void print_long(const Line& line) {
    const fs::Attributes& attributes = line.attributes;
    fmt::print("{} {:>3} {:<8} {:<8} {:>12} {} {}{}{}\n", permissions(attributes.mode), attributes.links,
               user_name(attributes.uid), group_name(attributes.gid), attributes.size,
               time_text(attributes.modified_ns, "{:%Y-%m-%d %H:%M}"), line.name, line.target.empty() ? "" : " -> ",
               line.target);
}

// Fills in the lines. It asks for all attributes at once.
void fill_lines(Session& session, std::vector<Line>& lines) {
    for (Line& line : lines) {
        session.fs.lstat(line.path).start(
            [](void* context, fs::Outcome<fs::Attributes> outcome) {
                auto& filled = *static_cast<Line*>(context);
                filled.attributes = outcome.value;
                filled.error = outcome.error;
                filled.ended = true;
            },
            &line);
    }
    for (Line& line : lines) {
        while (!line.ended) {
            session.fs.wait();
        }
        if (line.error == 0 && S_ISLNK(line.attributes.mode)) {
            line.target = session.fs.readlink(line.path).wait().value;
        }
    }
}

void print_lines(Session& session, std::vector<Line> lines) {
    std::ranges::sort(lines, {}, &Line::name);
    if (session.options.is_long) {
        fill_lines(session, lines);
    }
    for (const Line& line : lines) {
        if (!session.options.is_long) {
            fmt::print("{}\n", line.name);
        } else if (session.check("access", line.path, line.error)) {
            print_long(line);
        }
    }
}

void list_directory(Session& session, const std::string& path) {
    std::vector<Line> lines;
    const int error = for_each_name(session.fs, path, [&](const fs::DirectoryEntry& entry) {
        lines.push_back({std::string(entry.name), joined(path, entry.name)});
    });
    print_lines(session, std::move(lines));
    (void)session.check("read directory", path, error);
}

std::uint64_t kib(std::uint64_t bytes) noexcept {
    return bytes / 1024;
}

std::string room_text(const fs::StatFsAnswer& room) {
    const std::uint64_t used = room.bytes - std::min(room.free_bytes, room.bytes);
    const std::uint64_t percent = room.bytes == 0 ? 0 : (used * 100 + room.bytes - 1) / room.bytes;
    return fmt::format("{:>14} {:>14} {:>14} {:>4}% {:>12}", kib(room.bytes), kib(used), kib(room.free_bytes), percent,
                       room.files);
}

constexpr const char* kRoomHead = "   1K-blocks           Used      Available  Use%        Files";

}  // namespace

void list(Session& session) {
    const std::vector<std::string> paths =
        session.options.paths.empty() ? std::vector<std::string>{"/"} : session.options.paths;
    std::vector<Line> files;
    std::vector<std::string> directories;
    for (const std::string& path : paths) {
        const std::string inner = inner_path(path);
        fs::Outcome<fs::Attributes> found = session.fs.stat(inner).wait();
        found = found.ok() ? found : session.fs.lstat(inner).wait();  // a link without a target is listed
        if (!session.check("access", path, found.error)) {
            continue;
        }
        if (S_ISDIR(found.value.mode)) {
            directories.push_back(inner);
        } else {
            files.push_back({inner, inner});
        }
    }
    print_lines(session, std::move(files));
    for (const std::string& directory : directories) {
        if (paths.size() > 1) {
            fmt::print("\n{}:\n", directory);
        }
        list_directory(session, directory);
    }
}

void show_attributes(Session& session) {
    for (const std::string& path : session.options.paths) {
        const fs::Outcome<fs::Attributes> found = session.fs.lstat(inner_path(path)).wait();
        if (!session.check("stat", path, found.error)) {
            continue;
        }
        const fs::Attributes& file = found.value;
        const char* const format = "{:%Y-%m-%d %H:%M:%S %z}";
        fmt::print("  File: {}\n  Size: {}  Links: {}  Generation: {}\n", path, file.size, file.links, file.generation);
        fmt::print("    Id: {:016x}-{:016x}  Home: slot {}, shard {}\n", file.id.place, file.id.random,
                   file.id.home_slot(), session.fs.view()->owner(file.id.home_slot()));
        fmt::print("  Mode: {:04o} {}  Uid: {} {}  Gid: {} {}\n", file.mode & 07777U, permissions(file.mode), file.uid,
                   user_name(file.uid), file.gid, group_name(file.gid));
        fmt::print("Access: {}\nModify: {}\nChange: {}\n Birth: {}\n", time_text(file.accessed_ns, format),
                   time_text(file.modified_ns, format), time_text(file.changed_ns, format),
                   time_text(file.born_ns, format));
    }
}

void show_room(Session& session) {
    const fs::Outcome<fs::StatFsAnswer> room = session.fs.statfs().wait();
    if (session.check("ask for the room of", "/", room.error)) {
        fmt::print("{}\n{}\n", kRoomHead, room_text(room.value));
    }
}

void show_status(Session& session) {
    const std::shared_ptr<const fs::View> view = session.fs.view();
    const fs::Welcome& welcome = view->welcome();
    fmt::print("chunks of {} KiB, placement {}, slot table of epoch {} with {} shards\n", kib(welcome.chunk_bytes),
               welcome.spread == fs::Spread::Even ? "even" : "koyama", view->table().epoch(), view->table().shards());
    fmt::print("channels of {} slots with {} KiB each; shards here: {}\n", welcome.shape.slots,
               kib(welcome.shape.data_bytes), fmt::join(welcome.local, " "));
    fmt::print("shard {}       Chunks      Log KiB    Index KiB\n", kRoomHead);
    for (std::uint32_t shard = 0; shard != view->table().shards(); ++shard) {
        const fs::Outcome<fs::StatFsAnswer> room = session.fs.statfs(static_cast<fs::ShardNumber>(shard)).wait();
        if (session.check("ask shard", std::to_string(shard), room.error)) {
            fmt::print("{:>5} {} {:>12} {:>12} {:>12}\n", shard, room_text(room.value), room.value.chunks,
                       kib(room.value.log_bytes), kib(room.value.index_bytes));
        }
    }
    const Result<std::string> counters = fs::daemon_counters({session.options.socket});
    if (!counters.ok()) {
        session.fail(counters.error());
        return;
    }
    fmt::print("counters of the daemon:\n{}", counters.value());
}

}  // namespace cairn::fstool
