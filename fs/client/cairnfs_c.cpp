#include "fs/client/cairnfs.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "fs/client/cairnfs.hpp"
#include "fs/client/stat_of.hpp"
#include "fs/rules/names.hpp"

struct cairnfs {
    std::unique_ptr<cairn::fs::Client> client;
    std::uint32_t chunk_bytes = 0;
};

struct cairnfs_dir {
    std::unique_ptr<cairn::fs::Directory> directory;
    std::span<const cairn::fs::DirectoryEntry> left{};
};

namespace cairn::fs {

namespace {

File& file_of(cairnfs_file* file) noexcept {
    return *reinterpret_cast<File*>(file);
}

std::span<std::uint8_t> room_of(void* to, std::size_t bytes) noexcept {
    return {static_cast<std::uint8_t*>(to), bytes};
}
std::span<const std::uint8_t> bytes_at(const void* from, std::size_t bytes) noexcept {
    return {static_cast<const std::uint8_t*>(from), bytes};
}

template <class T>
int c_result(const Outcome<T>& outcome) noexcept {
    return -outcome.error;
}
ssize_t c_count(const Outcome<std::uint64_t>& outcome) noexcept {
    return outcome.ok() ? static_cast<ssize_t>(outcome.value) : -outcome.error;
}

int put_stat(const cairnfs& fs, const Outcome<Attributes>& outcome, struct stat* facts) noexcept {
    if (outcome.ok()) {
        *facts = stat_of(outcome.value, fs.chunk_bytes);
    }
    return -outcome.error;
}

std::int64_t time_of(const timespec& time) noexcept {
    return time.tv_nsec == UTIME_NOW    ? FileTimes::kNow
           : time.tv_nsec == UTIME_OMIT ? FileTimes::kKeep
                                        : time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// Asynchronous calls. Each returns the value that the C completion gets.
Task<std::int64_t> c_open(Client& client, const char* path, int flags, std::uint32_t mode, cairnfs_file** file) {
    const Outcome<File*> opened = co_await client.open(path, flags, mode);
    *file = reinterpret_cast<cairnfs_file*>(opened.value);
    co_return -opened.error;
}
Task<std::int64_t> c_close(Client& client, File& file) {
    const Outcome<> closed = co_await client.close(file);
    co_return -closed.error;
}
Task<std::int64_t> c_pread(Client& client, File& file, std::span<std::uint8_t> to, off_t offset) {
    const Outcome<std::uint64_t> bytes = co_await client.pread(file, to, offset);
    co_return c_count(bytes);
}
Task<std::int64_t> c_pwrite(Client& client, File& file, std::span<const std::uint8_t> from, off_t offset) {
    const Outcome<std::uint64_t> bytes = co_await client.pwrite(file, from, offset);
    co_return c_count(bytes);
}
Task<std::int64_t> c_stat(cairnfs& fs, const char* path, struct stat* facts) {
    const Outcome<Attributes> attributes = co_await fs.client->stat(path);
    co_return put_stat(fs, attributes, facts);
}
Task<std::int64_t> c_unlink(Client& client, const char* path) {
    const Outcome<> removed = co_await client.unlink(path);
    co_return -removed.error;
}

}  // namespace

}  // namespace cairn::fs

using namespace cairn::fs;

int cairnfs_connect(const char* socket, int timeout_ms, cairnfs** fs, char* why, size_t why_bytes) {
    ClientOptions options;
    options.socket = socket == nullptr ? "" : socket;
    options.timeout = timeout_ms > 0 ? cairn::milliseconds(timeout_ms) : options.timeout;
    cairn::Result<std::unique_ptr<Client>> client = Client::connect(options);
    if (!client.ok()) {
        if (why != nullptr) {
            std::snprintf(why, why_bytes, "%s", client.error().text().c_str());
        }
        return -ECONNREFUSED;
    }
    *fs = new cairnfs{std::move(client).value()};
    (*fs)->chunk_bytes = (*fs)->client->view()->chunk_bytes();
    return 0;
}

void cairnfs_disconnect(cairnfs* fs) {
    delete fs;
}

void cairnfs_set_relaxed(cairnfs* fs, int relaxed) {
    set_relaxed(*fs->client, relaxed != 0);
}

int cairnfs_open(cairnfs* fs, const char* path, int flags, mode_t mode, cairnfs_file** file) {
    const Outcome<File*> opened = fs->client->open(path, flags, mode).wait();
    *file = reinterpret_cast<cairnfs_file*>(opened.value);
    return c_result(opened);
}

int cairnfs_close(cairnfs* fs, cairnfs_file* file) {
    return c_result(fs->client->close(file_of(file)).wait());
}

ssize_t cairnfs_pread(cairnfs* fs, cairnfs_file* file, void* to, size_t bytes, off_t offset) {
    return c_count(fs->client->pread(file_of(file), room_of(to, bytes), offset).wait());
}

ssize_t cairnfs_pwrite(cairnfs* fs, cairnfs_file* file, const void* from, size_t bytes, off_t offset) {
    return c_count(fs->client->pwrite(file_of(file), bytes_at(from, bytes), offset).wait());
}

void* cairnfs_buffer_alloc(cairnfs* fs, size_t bytes) {
    return Buffer(*fs->client, bytes).release().data();
}

void cairnfs_buffer_free(cairnfs* fs, void* buffer) {
    if (buffer != nullptr) {
        Buffer::give_back(*fs->client, static_cast<const std::uint8_t*>(buffer));
    }
}

int cairnfs_fstat(cairnfs* fs, cairnfs_file* file, struct stat* facts) {
    return put_stat(*fs, fs->client->stat(file_of(file)).wait(), facts);
}

int cairnfs_ftruncate(cairnfs* fs, cairnfs_file* file, off_t size) {
    return size < 0 ? -EINVAL : c_result(fs->client->truncate(file_of(file), static_cast<std::uint64_t>(size)).wait());
}

int cairnfs_fsync(cairnfs* fs, cairnfs_file* file) {
    return c_result(fs->client->sync(file_of(file)).wait());
}

int cairnfs_stat(cairnfs* fs, const char* path, struct stat* facts) {
    return put_stat(*fs, fs->client->stat(path).wait(), facts);
}

int cairnfs_lstat(cairnfs* fs, const char* path, struct stat* facts) {
    return put_stat(*fs, fs->client->lstat(path).wait(), facts);
}

int cairnfs_truncate(cairnfs* fs, const char* path, off_t size) {
    return size < 0 ? -EINVAL : c_result(fs->client->truncate(path, static_cast<std::uint64_t>(size)).wait());
}

int cairnfs_chmod(cairnfs* fs, const char* path, mode_t mode) {
    return c_result(fs->client->chmod(path, mode).wait());
}

int cairnfs_chown(cairnfs* fs, const char* path, uid_t uid, gid_t gid) {
    return c_result(fs->client->chown(path, uid, gid).wait());
}

int cairnfs_lchown(cairnfs* fs, const char* path, uid_t uid, gid_t gid) {
    return c_result(fs->client->chown(path, uid, gid, false).wait());
}

int cairnfs_utimens(cairnfs* fs, const char* path, const struct timespec times[2], int flags) {
    const bool follows = (flags & AT_SYMLINK_NOFOLLOW) == 0;
    const FileTimes set = times == nullptr ? FileTimes{} : FileTimes{time_of(times[0]), time_of(times[1])};
    return c_result(fs->client->utimens(path, set, follows).wait());
}

int cairnfs_statfs(cairnfs* fs, struct statvfs* facts) {
    constexpr std::uint64_t kBlockBytes = 4096;
    const Outcome<StatFsAnswer> answer = fs->client->statfs().wait();
    if (answer.ok()) {
        *facts = {};
        facts->f_bsize = kBlockBytes;
        facts->f_frsize = kBlockBytes;
        facts->f_blocks = answer.value.bytes / kBlockBytes;
        facts->f_bfree = answer.value.free_bytes / kBlockBytes;
        facts->f_bavail = facts->f_bfree;
        facts->f_files = answer.value.files;
        facts->f_namemax = kLongestName;
    }
    return c_result(answer);
}

int cairnfs_mkdir(cairnfs* fs, const char* path, mode_t mode) {
    return c_result(fs->client->mkdir(path, mode).wait());
}

int cairnfs_rmdir(cairnfs* fs, const char* path) {
    return c_result(fs->client->rmdir(path).wait());
}

int cairnfs_unlink(cairnfs* fs, const char* path) {
    return c_result(fs->client->unlink(path).wait());
}

int cairnfs_rename(cairnfs* fs, const char* path, const char* new_path, unsigned flags) {
    return (flags & ~static_cast<unsigned>(RENAME_NOREPLACE)) != 0
               ? -EINVAL
               : c_result(fs->client->rename(path, new_path, flags == RENAME_NOREPLACE).wait());
}

int cairnfs_link(cairnfs* fs, const char* path, const char* new_path) {
    return c_result(fs->client->link(path, new_path).wait());
}

int cairnfs_symlink(cairnfs* fs, const char* target, const char* path) {
    return c_result(fs->client->symlink(target, path).wait());
}

ssize_t cairnfs_readlink(cairnfs* fs, const char* path, char* to, size_t bytes) {
    const Outcome<std::string> target = fs->client->readlink(path).wait();
    const std::size_t copied = std::min(bytes, target.value.size());
    std::memcpy(to, target.value.data(), copied);
    return target.ok() ? static_cast<ssize_t>(copied) : -target.error;
}

int cairnfs_opendir(cairnfs* fs, const char* path, cairnfs_dir** directory) {
    Outcome<std::unique_ptr<Directory>> opened = fs->client->opendir(path).wait();
    *directory = opened.ok() ? new cairnfs_dir{std::move(opened.value)} : nullptr;
    return c_result(opened);
}

int cairnfs_readdir(cairnfs* fs, cairnfs_dir* directory, struct cairnfs_entry* entry) {
    if (directory->left.empty()) {
        const auto names = fs->client->readdir(*directory->directory).wait();
        if (!names.ok() || names.value.empty()) {
            return c_result(names);
        }
        directory->left = names.value;
    }
    const DirectoryEntry& first = directory->left.front();
    *entry = {first.name.data(), first.id.place, first.cursor, first.mode};
    directory->left = directory->left.subspan(1);
    return 1;
}

void cairnfs_seekdir(cairnfs_dir* directory, uint64_t cursor) {
    directory->left = {};
    directory->directory->seek(cursor);
}

int cairnfs_closedir(cairnfs* fs, cairnfs_dir* directory) {
    const Outcome<> closed = fs->client->closedir(std::move(directory->directory)).wait();
    delete directory;
    return c_result(closed);
}

void cairnfs_open_async(cairnfs* fs, const char* path, int flags, mode_t mode, cairnfs_file** file, cairnfs_done done,
                        void* context) {
    c_open(*fs->client, path, flags, mode, file).start(done, context);
}

void cairnfs_close_async(cairnfs* fs, cairnfs_file* file, cairnfs_done done, void* context) {
    c_close(*fs->client, file_of(file)).start(done, context);
}

void cairnfs_pread_async(cairnfs* fs, cairnfs_file* file, void* to, size_t bytes, off_t offset, cairnfs_done done,
                         void* context) {
    c_pread(*fs->client, file_of(file), room_of(to, bytes), offset).start(done, context);
}

void cairnfs_pwrite_async(cairnfs* fs, cairnfs_file* file, const void* from, size_t bytes, off_t offset,
                          cairnfs_done done, void* context) {
    c_pwrite(*fs->client, file_of(file), bytes_at(from, bytes), offset).start(done, context);
}

void cairnfs_stat_async(cairnfs* fs, const char* path, struct stat* facts, cairnfs_done done, void* context) {
    c_stat(*fs, path, facts).start(done, context);
}

void cairnfs_unlink_async(cairnfs* fs, const char* path, cairnfs_done done, void* context) {
    c_unlink(*fs->client, path).start(done, context);
}

unsigned cairnfs_poll(cairnfs* fs) {
    return fs->client->poll();
}

void cairnfs_wait(cairnfs* fs) {
    fs->client->wait();
}
