#include "fs/client/cairnfs.hpp"

#include <cstdlib>
#include <ctime>
#include <fstream>

#include "fs/client/late_sender.hpp"
#include "fs/client/operations.hpp"

namespace cairn::fs {

namespace {

// Returns the umask from /proc: umask() would change it under other threads.
std::uint32_t umask_of_process() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("Umask:")) {
            return static_cast<std::uint32_t>(std::strtoul(line.c_str() + 6, nullptr, 8)) & 0777;
        }
    }
    return 022;
}

std::string socket_of(const ClientOptions& options) {
    const char* const named = secure_getenv("CAIRN_FS_SOCKET");
    return !options.socket.empty() ? options.socket : named != nullptr && *named != 0 ? named : kDefaultSocket;
}

bool is_relaxed(const ClientOptions& options) {
    const char* const said = secure_getenv("CAIRN_FS_RELAXED");
    return options.relaxed ? *options.relaxed : said != nullptr && std::string_view(said) == "1";
}

std::int64_t wall_ns() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

SetAttributesRequest request_of(const FileTimes& times) noexcept {
    SetAttributesRequest what;
    if (times.accessed_ns == FileTimes::kNow && times.modified_ns == FileTimes::kNow) {
        what.what = kSetTimesNow;
        return what;
    }
    what.what = (times.accessed_ns != FileTimes::kKeep ? kSetAccessed : 0) |
                (times.modified_ns != FileTimes::kKeep ? kSetModified : 0);
    what.accessed_ns = times.accessed_ns == FileTimes::kNow ? wall_ns() : times.accessed_ns;
    what.modified_ns = times.modified_ns == FileTimes::kNow ? wall_ns() : times.modified_ns;
    return what;
}

}  // namespace

Result<std::unique_ptr<Client>> Client::connect(const ClientOptions& options) {
    Result<std::shared_ptr<ClientThreads>> threads = ClientThreads::connect(socket_of(options), options.timeout);
    if (!threads.ok()) {
        return threads.error();
    }
    threads.value()->common().umask = options.umask ? *options.umask : umask_of_process();
    std::unique_ptr<Client> client(new Client(std::move(threads).value()));
    set_relaxed(*client, is_relaxed(options));
    return client;
}

Client::Client(std::shared_ptr<ClientThreads> threads) noexcept : threads_(std::move(threads)) {}

Client::~Client() {
    late_.reset();
    ClientThread& thread = threads_->mine();
    if (thread.late().any() && may_wait(thread)) {
        tell_all_late(thread, thread.late().all());
    }
}

void set_relaxed(Client& client, bool relaxed) {
    if (relaxed) {
        std::call_once(client.late_once_, [&] { client.late_ = std::make_unique<LateSender>(client.threads_); });
    }
    client.threads_->common().is_relaxed = relaxed;
}

Result<std::string> daemon_counters(const ClientOptions& options) {
    Result<DaemonSocket> socket = DaemonSocket::connect(socket_of(options));
    return socket.ok() ? socket.value().ask_counters() : socket.error();
}

std::uint32_t Client::poll() noexcept {
    return threads_->mine().road().poll();
}

void Client::wait() noexcept {
    threads_->mine().road().wait();
}

Operation<File*> Client::open(std::string_view path, int flags, std::uint32_t mode) {
    ClientThread& thread = threads_->mine();
    return {thread, open_file(thread, path, flags, mode)};
}

Operation<> Client::close(File& file) {
    ClientThread& thread = threads_->mine();
    return {thread, close_file(thread, file)};
}

Operation<std::uint64_t> Client::pread(File& file, std::span<std::uint8_t> to, std::int64_t offset) {
    ClientThread& thread = threads_->mine();
    return {thread, read_file(thread, file, to, offset)};
}

Operation<std::uint64_t> Client::pwrite(File& file, std::span<const std::uint8_t> from, std::int64_t offset) {
    ClientThread& thread = threads_->mine();
    return {thread, write_file(thread, file, from, offset)};
}

Operation<Attributes> Client::stat(const File& file) {
    ClientThread& thread = threads_->mine();
    return {thread, stat_open_file(thread, file)};
}

Operation<Attributes> Client::truncate(File& file, std::uint64_t size) {
    ClientThread& thread = threads_->mine();
    return {thread, set_size(thread, file, size)};
}

Operation<> Client::sync(const File& file) {
    ClientThread& thread = threads_->mine();
    return {thread, sync_file(thread, file)};
}

Operation<Attributes> Client::stat(std::string_view path) {
    ClientThread& thread = threads_->mine();
    return {thread, stat_path(thread, path, true)};
}

Operation<Attributes> Client::lstat(std::string_view path) {
    ClientThread& thread = threads_->mine();
    return {thread, stat_path(thread, path, false)};
}

Operation<Attributes> Client::truncate(std::string_view path, std::uint64_t size) {
    ClientThread& thread = threads_->mine();
    SetAttributesRequest what;
    what.what = kSetSize;
    what.size = size;
    return {thread, set_attributes(thread, path, what, true)};
}

Operation<Attributes> Client::chmod(std::string_view path, std::uint32_t mode) {
    ClientThread& thread = threads_->mine();
    SetAttributesRequest what;
    what.what = kSetMode;
    what.mode = mode & 07777;
    return {thread, set_attributes(thread, path, what, true)};
}

Operation<Attributes> Client::chown(std::string_view path, std::uint32_t uid, std::uint32_t gid, bool follows) {
    constexpr std::uint32_t kKeep = ~0U;
    ClientThread& thread = threads_->mine();
    SetAttributesRequest what;
    what.what = (uid != kKeep ? kSetUid : 0) | (gid != kKeep ? kSetGid : 0);
    what.uid = uid;
    what.gid = gid;
    return {thread, set_attributes(thread, path, what, follows)};
}

Operation<Attributes> Client::utimens(std::string_view path, const FileTimes& times, bool follows) {
    ClientThread& thread = threads_->mine();
    return {thread, set_attributes(thread, path, request_of(times), follows)};
}

Operation<> Client::mkdir(std::string_view path, std::uint32_t mode) {
    ClientThread& thread = threads_->mine();
    return {thread, make_directory(thread, path, mode)};
}

Operation<> Client::rmdir(std::string_view path) {
    ClientThread& thread = threads_->mine();
    return {thread, remove_name(thread, path, true)};
}

Operation<> Client::unlink(std::string_view path) {
    ClientThread& thread = threads_->mine();
    return {thread, remove_name(thread, path, false)};
}

Operation<> Client::rename(std::string_view path, std::string_view new_path, bool no_replace) {
    ClientThread& thread = threads_->mine();
    return {thread, rename_path(thread, path, new_path, no_replace)};
}

Operation<> Client::link(std::string_view path, std::string_view new_path) {
    ClientThread& thread = threads_->mine();
    return {thread, make_link(thread, path, new_path)};
}

Operation<> Client::symlink(std::string_view target, std::string_view path) {
    ClientThread& thread = threads_->mine();
    return {thread, make_symlink(thread, target, path)};
}

Operation<std::string> Client::readlink(std::string_view path) {
    ClientThread& thread = threads_->mine();
    return {thread, read_symlink(thread, path)};
}

Operation<std::unique_ptr<Directory>> Client::opendir(std::string_view path) {
    ClientThread& thread = threads_->mine();
    return {thread, open_directory(thread, path)};
}

Operation<std::span<const DirectoryEntry>> Client::readdir(Directory& directory) {
    ClientThread& thread = threads_->mine();
    return {thread, read_directory(thread, directory)};
}

Operation<> Client::closedir(std::unique_ptr<Directory> directory) {
    ClientThread& thread = threads_->mine();
    return {thread, close_file(thread, directory->file())};
}

Operation<StatFsAnswer> Client::statfs(std::optional<std::uint16_t> shard) {
    ClientThread& thread = threads_->mine();
    return {thread, shard ? stat_shard(thread, *shard) : stat_fs(thread)};
}

Operation<std::vector<std::uint8_t>> ask(Client& client, std::uint16_t shard, const Request& request) {
    ClientThread& thread = client.threads_->mine();
    return {thread, ask_shard(thread, shard, request)};
}

std::shared_ptr<const View> Client::view() {
    return threads_->mine().road().shared_view();
}

}  // namespace cairn::fs
