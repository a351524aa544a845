/* libcairnfs: the file system for C programs. See README.md. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cairnfs cairnfs;
typedef struct cairnfs_file cairnfs_file;
typedef struct cairnfs_dir cairnfs_dir;

/* Functions return 0, or as many bytes, or a negative errno. Any thread may use a cairnfs and its files. */

/* `socket`: NULL for $CAIRN_FS_SOCKET or the default. `timeout_ms`: how long a call waits for a daemon that is gone or
   silent; 0 for 10,000. What is wrong is written to `why`, unless that is NULL. */
int cairnfs_connect(const char* socket, int timeout_ms, cairnfs** fs, char* why, size_t why_bytes);
/* No call is under way on another thread. */
void cairnfs_disconnect(cairnfs* fs);

/* Files that are opened from now on are relaxed, or, with 0, strict. The home of a relaxed one hears of sizes and times
   of writes at close, fsync or ftruncate, when this client looks at the file, or a second later: see README.md. Without
   a call, $CAIRN_FS_RELAXED=1 makes it so. */
void cairnfs_set_relaxed(cairnfs* fs, int relaxed);

int cairnfs_open(cairnfs* fs, const char* path, int flags, mode_t mode, cairnfs_file** file);
int cairnfs_close(cairnfs* fs, cairnfs_file* file);
ssize_t cairnfs_pread(cairnfs* fs, cairnfs_file* file, void* to, size_t bytes, off_t offset);
ssize_t cairnfs_pwrite(cairnfs* fs, cairnfs_file* file, const void* from, size_t bytes, off_t offset);
/* Memory that the daemon shares with this client: what is read to there, or written from there, is not copied on the
   way. Begins on a page. NULL: the daemon shares no more. A read or write that ended with -ETIMEDOUT may still go on
   there until the daemon answers or is gone. */
void* cairnfs_buffer_alloc(cairnfs* fs, size_t bytes);
void cairnfs_buffer_free(cairnfs* fs, void* buffer); /* NULL: nothing happens */
int cairnfs_fstat(cairnfs* fs, cairnfs_file* file, struct stat* facts);
int cairnfs_ftruncate(cairnfs* fs, cairnfs_file* file, off_t size);
int cairnfs_fsync(cairnfs* fs, cairnfs_file* file);

int cairnfs_stat(cairnfs* fs, const char* path, struct stat* facts);
int cairnfs_lstat(cairnfs* fs, const char* path, struct stat* facts);
int cairnfs_truncate(cairnfs* fs, const char* path, off_t size);
int cairnfs_chmod(cairnfs* fs, const char* path, mode_t mode);
int cairnfs_chown(cairnfs* fs, const char* path, uid_t uid, gid_t gid);
int cairnfs_lchown(cairnfs* fs, const char* path, uid_t uid, gid_t gid);
/* `times`: as utimensat() has them; NULL for now. `flags`: 0, or AT_SYMLINK_NOFOLLOW. */
int cairnfs_utimens(cairnfs* fs, const char* path, const struct timespec times[2], int flags);
int cairnfs_statfs(cairnfs* fs, struct statvfs* facts);

int cairnfs_mkdir(cairnfs* fs, const char* path, mode_t mode);
int cairnfs_rmdir(cairnfs* fs, const char* path);
int cairnfs_unlink(cairnfs* fs, const char* path);
/* `flags`: 0, or RENAME_NOREPLACE. */
int cairnfs_rename(cairnfs* fs, const char* path, const char* new_path, unsigned flags);
int cairnfs_link(cairnfs* fs, const char* path, const char* new_path);
int cairnfs_symlink(cairnfs* fs, const char* target, const char* path);
/* Writes no 0 behind the target. */
ssize_t cairnfs_readlink(cairnfs* fs, const char* path, char* to, size_t bytes);

struct cairnfs_entry {
    const char* name; /* until the next call */
    uint64_t inode;
    uint64_t cursor; /* to go on behind this name */
    mode_t mode;     /* type */
};
int cairnfs_opendir(cairnfs* fs, const char* path, cairnfs_dir** directory);
/* Returns 1, or 0 at the end. "." and ".." are not among the names. */
int cairnfs_readdir(cairnfs* fs, cairnfs_dir* directory, struct cairnfs_entry* entry);
/* Goes on behind a name; 0: from the beginning. */
void cairnfs_seekdir(cairnfs_dir* directory, uint64_t cursor);
int cairnfs_closedir(cairnfs* fs, cairnfs_dir* directory);

/* The following return at once. `done` is told what the function without _async returns: from cairnfs_poll(),
   cairnfs_wait() or a blocking call of the same thread, or at once if there is nothing to wait for. What pointers
   point to stays until then. */
typedef void (*cairnfs_done)(void* context, int64_t result);
void cairnfs_open_async(cairnfs* fs, const char* path, int flags, mode_t mode, cairnfs_file** file, cairnfs_done done,
                        void* context);
void cairnfs_close_async(cairnfs* fs, cairnfs_file* file, cairnfs_done done, void* context);
void cairnfs_pread_async(cairnfs* fs, cairnfs_file* file, void* to, size_t bytes, off_t offset, cairnfs_done done,
                         void* context);
void cairnfs_pwrite_async(cairnfs* fs, cairnfs_file* file, const void* from, size_t bytes, off_t offset,
                          cairnfs_done done, void* context);
void cairnfs_stat_async(cairnfs* fs, const char* path, struct stat* facts, cairnfs_done done, void* context);
void cairnfs_unlink_async(cairnfs* fs, const char* path, cairnfs_done done, void* context);
/* Returns how many answers have come. The second sleeps for a moment if there is none. */
unsigned cairnfs_poll(cairnfs* fs);
void cairnfs_wait(cairnfs* fs);

#ifdef __cplusplus
}
#endif
