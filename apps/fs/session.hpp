// The common parts of the commands of cairn-fs.
#pragma once

#include <string>
#include <string_view>

#include "apps/fs/options.hpp"
#include "fs/client/cairnfs.hpp"

namespace cairn::fstool {

// A command's client, and whether an operation has failed.
class Session {
public:
    Session(fs::Client& client, const Options& given) noexcept : fs(client), options(given) {}

    // Prints "cairn-fs: cannot WHAT 'PATH': ERROR". The exit status is 1 from now on.
    void complain(std::string_view what, std::string_view path, int error);
    // As complain(), if there is an error. Returns true if there is none.
    bool check(std::string_view what, std::string_view path, int error);
    void fail(const Error& error);
    // Sets the exit status of a command without errors that has a result of its own.
    void set_status(int status) noexcept { status_ = status; }
    [[nodiscard]] int status() const noexcept { return status_; }

    [[nodiscard]] bool is_directory(std::string_view path);
    // Returns the path that a source gets: it is in the target, if that is a directory.
    [[nodiscard]] std::string target_of(std::string_view source, std::string_view target, bool is_into);

    fs::Client& fs;
    const Options& options;

private:
    int status_ = 0;
};

constexpr std::string_view kPrefix = "cairn:";

// Returns the path without "cairn:".
[[nodiscard]] std::string inner_path(std::string_view path);
[[nodiscard]] std::string joined(std::string_view directory, std::string_view name);
[[nodiscard]] std::string_view last_name(std::string_view path) noexcept;
// Calls `each` with every entry of a directory. Returns an errno. The names are those at the beginning: `each` may
// remove them.
template <class Each>
int for_each_name(fs::Client& client, std::string_view path, const Each& each);

// The commands. Each returns when it is done, and has printed its errors.
void list(Session& session);
void show_attributes(Session& session);
void show_room(Session& session);
void show_status(Session& session);
void write_out(Session& session);
void copy(Session& session);
void make_directories(Session& session);
void remove(Session& session);
void move(Session& session);
void make_link(Session& session);
void change_mode(Session& session);
void touch(Session& session);
void truncate(Session& session);
void check_all(Session& session);
void scrub_all(Session& session);

template <class Each>
int for_each_name(fs::Client& client, std::string_view path, const Each& each) {
    fs::Outcome<std::unique_ptr<fs::Directory>> directory = client.opendir(path).wait();
    if (!directory.ok()) {
        return directory.error;
    }
    int error = 0;
    for (;;) {
        const auto names = client.readdir(*directory.value).wait();
        error = names.error;
        if (error != 0 || names.value.empty()) {
            break;
        }
        for (const fs::DirectoryEntry& entry : names.value) {
            each(entry);
        }
    }
    const fs::Outcome<> closed = client.closedir(std::move(directory.value)).wait();
    return error != 0 ? error : closed.error;
}

}  // namespace cairn::fstool
