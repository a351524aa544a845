// libcairnfs: the file system for C++ programs. See README.md.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/client/listing.hpp"
#include "fs/client/open_files.hpp"
#include "fs/client/operation.hpp"
#include "fs/client/outcome.hpp"
#include "fs/message/requests.hpp"
#include "lib/base/result.hpp"
#include "lib/base/time.hpp"

namespace cairn::fs {

class ClientThreads;
class LateSender;

struct ClientOptions {
    // The daemon's socket. Empty: $CAIRN_FS_SOCKET, or kDefaultSocket.
    std::string socket{};
    // How long an operation waits for a daemon that is gone (then EIO) or silent (then ETIMEDOUT).
    Duration timeout = seconds(10);
    // What is taken from the permissions of what is made. Nothing: the process's own.
    std::optional<std::uint32_t> umask{};
    // See set_relaxed(). Nothing: $CAIRN_FS_RELAXED is 1.
    std::optional<bool> relaxed{};
};

constexpr const char* kDefaultSocket = "/run/cairn-fs.sock";

// What utimens sets: kKeep leaves a time, kNow takes the present.
struct FileTimes {
    static constexpr std::int64_t kKeep = INT64_MIN;
    static constexpr std::int64_t kNow = INT64_MIN + 1;

    std::int64_t accessed_ns = kNow;  // since 1970
    std::int64_t modified_ns = kNow;
};

// Paths begin at the root of the file system, with or without a slash. Any thread may use a client. An operation is
// the calling thread's: see Operation. Errors are errno values.
class Client {
public:
    // Errors: no daemon is there, or it refuses.
    static Result<std::unique_ptr<Client>> connect(const ClientOptions& options = {});
    // No other thread uses the client. What is under way on this one ends with EIO. What is open is closed.
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // Ends operations of this thread whose answers have come, and calls their completions. Returns how many answers
    // that were. Never sleeps, unless the daemon was lost.
    std::uint32_t poll() noexcept;
    // The same, but sleeps for a moment if there is nothing yet.
    void wait() noexcept;

    // O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW. The file belongs to the
    // client until it is closed.
    Operation<File*> open(std::string_view path, int flags, std::uint32_t mode = 0666);
    Operation<> close(File& file);
    Operation<std::uint64_t> pread(File& file, std::span<std::uint8_t> to, std::int64_t offset);
    // With O_APPEND the offset is not looked at.
    Operation<std::uint64_t> pwrite(File& file, std::span<const std::uint8_t> from, std::int64_t offset);
    Operation<Attributes> stat(const File& file);
    Operation<Attributes> truncate(File& file, std::uint64_t size);
    Operation<> sync(const File& file);

    Operation<Attributes> stat(std::string_view path);
    Operation<Attributes> lstat(std::string_view path);
    Operation<Attributes> truncate(std::string_view path, std::uint64_t size);
    Operation<Attributes> chmod(std::string_view path, std::uint32_t mode);
    // -1 leaves it. `follows`: a symbolic link's target.
    Operation<Attributes> chown(std::string_view path, std::uint32_t uid, std::uint32_t gid, bool follows = true);
    Operation<Attributes> utimens(std::string_view path, const FileTimes& times, bool follows = true);

    Operation<> mkdir(std::string_view path, std::uint32_t mode = 0777);
    Operation<> rmdir(std::string_view path);
    Operation<> unlink(std::string_view path);
    Operation<> rename(std::string_view path, std::string_view new_path, bool no_replace = false);
    Operation<> link(std::string_view path, std::string_view new_path);
    Operation<> symlink(std::string_view target, std::string_view path);
    Operation<std::string> readlink(std::string_view path);

    Operation<std::unique_ptr<Directory>> opendir(std::string_view path);
    // Some more names; none at the end. They are valid until the next call.
    Operation<std::span<const DirectoryEntry>> readdir(Directory& directory);
    Operation<> closedir(std::unique_ptr<Directory> directory);

    // Of all shards, or of one.
    Operation<StatFsAnswer> statfs(std::optional<std::uint16_t> shard = std::nullopt);
    // What the daemon said when this thread met it last.
    [[nodiscard]] std::shared_ptr<const View> view();

private:
    friend class Buffer;
    friend void set_relaxed(Client& client, bool relaxed);
    friend Operation<std::vector<std::uint8_t>> ask(Client& client, std::uint16_t shard, const Request& request);

    explicit Client(std::shared_ptr<ClientThreads> threads) noexcept;

    std::shared_ptr<ClientThreads> threads_;
    std::once_flag late_once_;
    std::unique_ptr<LateSender> late_;
};

// Files that are opened from now on are relaxed, or strict. The home of a relaxed one hears of sizes and times of
// writes at close, sync or truncate, when this client looks at the file, or a second later: a client that is killed
// loses no bytes that others have seen, but up to a second of what has made files longer. Who cuts the file
// meanwhile does so before it gets longer. A thread of the client's own sees to the second.
void set_relaxed(Client& client, bool relaxed);

// Memory that the daemon shares with the client: what is read to there, or written from there, is copied by no client.
// A daemon that was lost and is back does not know it; then it is copied as any other. A read or write that ended with
// ETIMEDOUT may still go on there until the daemon answers or is gone. A buffer begins on a page.
class Buffer {
public:
    // Empty if the daemon shares no more with this client: see its --buffer-size.
    Buffer(Client& client, std::size_t bytes);
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&&) = delete;
    ~Buffer();

    [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return bytes_; }
    // The caller's from now on, who gives it back.
    [[nodiscard]] std::span<std::uint8_t> release() noexcept;
    static void give_back(Client& client, const std::uint8_t* buffer);

private:
    std::shared_ptr<ClientThreads> threads_;
    std::span<std::uint8_t> bytes_{};
};

// For tools that know the messages, and not in the shared library: one shard's answer as it came, without an error.
// What the request's texts lie in stays until the operation ends.
Operation<std::vector<std::uint8_t>> ask(Client& client, std::uint16_t shard, const Request& request);

// Likewise: a line for each of the daemon's counters that is not zero. It need not have room for one more client.
// Errors: no daemon is there.
Result<std::string> daemon_counters(const ClientOptions& options);

}  // namespace cairn::fs
