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
    // The path of the daemon's socket. If empty: $CAIRN_FS_SOCKET, or kDefaultSocket.
    std::string socket{};
    // How long an operation waits. It fails with EIO if the daemon is gone, and with ETIMEDOUT if the daemon is silent.
    Duration timeout = seconds(10);
    // Permissions that new files and directories do not get. If nothing: the process's umask.
    std::optional<std::uint32_t> umask{};
    // See set_relaxed(). If nothing: relaxed if $CAIRN_FS_RELAXED is 1.
    std::optional<bool> relaxed{};
};

constexpr const char* kDefaultSocket = "/run/cairn-fs.sock";

// The times that utimens() sets. kKeep leaves a time as it is, kNow takes the present.
struct FileTimes {
    static constexpr std::int64_t kKeep = INT64_MIN;
    static constexpr std::int64_t kNow = INT64_MIN + 1;

    std::int64_t accessed_ns = kNow;  // since 1970
    std::int64_t modified_ns = kNow;
};

// A client of the file system. Paths begin at its root, with or without a slash. Any thread may use a client. An
// operation belongs to the thread that called the function: see Operation. Errors are errno values.
class Client {
public:
    // Connects to the daemon. Errors: no daemon is there, or it refuses.
    static Result<std::unique_ptr<Client>> connect(const ClientOptions& options = {});
    // Closes all open files. Operations that are under way on this thread end with EIO. No other thread uses the
    // client.
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // Ends operations of this thread whose answers have come, and calls their completions. Returns the number of these
    // answers. Never sleeps, unless the daemon was lost.
    std::uint32_t poll() noexcept;
    // Does as poll(), but sleeps for a moment if no answer has come.
    void wait() noexcept;

    // Opens a file. Flags: O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW. The
    // file belongs to the client until it is closed.
    Operation<File*> open(std::string_view path, int flags, std::uint32_t mode = 0666);
    Operation<> close(File& file);
    Operation<std::uint64_t> pread(File& file, std::span<std::uint8_t> to, std::int64_t offset);
    // Writes at the offset. With O_APPEND the offset is ignored.
    Operation<std::uint64_t> pwrite(File& file, std::span<const std::uint8_t> from, std::int64_t offset);
    Operation<Attributes> stat(const File& file);
    Operation<Attributes> truncate(File& file, std::uint64_t size);
    Operation<> sync(const File& file);

    Operation<Attributes> stat(std::string_view path);
    Operation<Attributes> lstat(std::string_view path);
    Operation<Attributes> truncate(std::string_view path, std::uint64_t size);
    Operation<Attributes> chmod(std::string_view path, std::uint32_t mode);
    // Sets the owner and the group. -1 leaves one of them as it is. If `follows`, a symbolic link stands for its
    // target.
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
    // Yields some more names, or none at the end. They are valid until the next call.
    Operation<std::span<const DirectoryEntry>> readdir(Directory& directory);
    Operation<> closedir(std::unique_ptr<Directory> directory);

    // Yields the figures of all shards together, or of one shard.
    Operation<StatFsAnswer> statfs(std::optional<std::uint16_t> shard = std::nullopt);
    // Returns what the daemon said at its last meeting with this thread.
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

// Makes files that are opened from now on relaxed or strict. The home of a relaxed file learns late of sizes and times
// of writes. It learns them at close, sync or truncate, when this client looks at the file, or a second later. A thread
// of the client's own sends them after the second. If a client is killed, bytes that others have seen are not lost. Up
// to a second of growth of its files is lost. If another client truncates the file meanwhile, the file becomes longer
// after that.
void set_relaxed(Client& client, bool relaxed);

// Memory that the daemon shares with the client. The client does not copy what is read to it or written from it. After
// the daemon was lost, a new daemon does not know the memory; its bytes are then copied as any others. A read or write
// that ended with ETIMEDOUT may still go on there until the daemon answers or is gone. A buffer begins on a page.
class Buffer {
public:
    // Takes a buffer. It is empty if the daemon shares no more memory with this client: see its option --buffer-size.
    Buffer(Client& client, std::size_t bytes);
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&&) = delete;
    ~Buffer();

    [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return bytes_; }
    // Gives the memory to the caller. The caller later gives it back.
    [[nodiscard]] std::span<std::uint8_t> release() noexcept;
    static void give_back(Client& client, const std::uint8_t* buffer);

private:
    std::shared_ptr<ClientThreads> threads_;
    std::span<std::uint8_t> bytes_{};
};

// Yields one shard's answer as it came, without an error. For tools that know the messages; not in the shared library.
// The texts of the request stay where they are until the operation ends.
Operation<std::vector<std::uint8_t>> ask(Client& client, std::uint16_t shard, const Request& request);

// Returns a line for each of the daemon's counters that is not zero. The daemon needs no room for another client. Not
// in the shared library. Errors: no daemon is there.
Result<std::string> daemon_counters(const ClientOptions& options);

}  // namespace cairn::fs
