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

/* Functions return 0 or a number of bytes, or a negative errno. Any thread may use a cairnfs and its files. */

/* Connects to the daemon. `socket`: NULL for $CAIRN_FS_SOCKET or the default. `timeout_ms`: how long a call waits for a
   daemon that is gone or silent; 0 for 10,000. If it fails, writes the reason to `why`, unless that is NULL. */
int cairnfs_connect(const char* socket, int timeout_ms, cairnfs** fs, char* why, size_t why_bytes);
/* Closes all open files. No call is under way on another thread. */
void cairnfs_disconnect(cairnfs* fs);

/* Makes files that are opened from now on relaxed, or strict with 0. The home of a relaxed file learns late of sizes
   and times of writes. It learns them at close, fsync or ftruncate, when this client looks at the file, or a second
   later: see README.md. Without a call, files are relaxed if $CAIRN_FS_RELAXED is 1. */
void cairnfs_set_relaxed(cairnfs* fs, int relaxed);

int cairnfs_open(cairnfs* fs, const char* path, int flags, mode_t mode, cairnfs_file** file);
int cairnfs_close(cairnfs* fs, cairnfs_file* file);
ssize_t cairnfs_pread(cairnfs* fs, cairnfs_file* file, void* to, size_t bytes, off_t offset);
ssize_t cairnfs_pwrite(cairnfs* fs, cairnfs_file* file, const void* from, size_t bytes, off_t offset);
/* Returns memory that the daemon shares with this client, or NULL if the daemon shares no more. The client does not
   copy what is read to it or written from it. It begins on a page. A read or write that ended with -ETIMEDOUT may still
   go on there until the daemon answers or is gone. */
void* cairnfs_buffer_alloc(cairnfs* fs, size_t bytes);
void cairnfs_buffer_free(cairnfs* fs, void* buffer); /* NULL is allowed */
int cairnfs_fstat(cairnfs* fs, cairnfs_file* file, struct stat* facts);
int cairnfs_ftruncate(cairnfs* fs, cairnfs_file* file, off_t size);
int cairnfs_fsync(cairnfs* fs, cairnfs_file* file);

int cairnfs_stat(cairnfs* fs, const char* path, struct stat* facts);
int cairnfs_lstat(cairnfs* fs, const char* path, struct stat* facts);
int cairnfs_truncate(cairnfs* fs, const char* path, off_t size);
int cairnfs_chmod(cairnfs* fs, const char* path, mode_t mode);
int cairnfs_chown(cairnfs* fs, const char* path, uid_t uid, gid_t gid);
int cairnfs_lchown(cairnfs* fs, const char* path, uid_t uid, gid_t gid);
/* Sets times. `times`: as for utimensat(); NULL for now. `flags`: 0, or AT_SYMLINK_NOFOLLOW. */
int cairnfs_utimens(cairnfs* fs, const char* path, const struct timespec times[2], int flags);
int cairnfs_statfs(cairnfs* fs, struct statvfs* facts);

int cairnfs_mkdir(cairnfs* fs, const char* path, mode_t mode);
int cairnfs_rmdir(cairnfs* fs, const char* path);
int cairnfs_unlink(cairnfs* fs, const char* path);
/* Renames a file. `flags`: 0, or RENAME_NOREPLACE. */
int cairnfs_rename(cairnfs* fs, const char* path, const char* new_path, unsigned flags);
int cairnfs_link(cairnfs* fs, const char* path, const char* new_path);
int cairnfs_symlink(cairnfs* fs, const char* target, const char* path);
/* Copies at most `bytes` of the target, without a 0 after it. Returns how many. */
ssize_t cairnfs_readlink(cairnfs* fs, const char* path, char* to, size_t bytes);

struct cairnfs_entry {
    const char* name; /* valid until the next call */
    uint64_t inode;
    uint64_t cursor; /* to go on after this name */
    mode_t mode;     /* the type's bits */
};
int cairnfs_opendir(cairnfs* fs, const char* path, cairnfs_dir** directory);
/* Reads the next name. Returns 1, or 0 at the end. "." and ".." are not among the names. */
int cairnfs_readdir(cairnfs* fs, cairnfs_dir* directory, struct cairnfs_entry* entry);
/* Goes on after the name with this cursor; 0: from the beginning. */
void cairnfs_seekdir(cairnfs_dir* directory, uint64_t cursor);
int cairnfs_closedir(cairnfs* fs, cairnfs_dir* directory);

/* The functions below return at once. `done` gets the result of the function without _async. It is called from
   cairnfs_poll(), cairnfs_wait() or a blocking call of the same thread, or at once if there is nothing to wait for.
   Memory that the arguments point to stays until then. */
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
/* Calls `done` for operations whose answers have come. cairnfs_poll() returns the number of these answers;
   cairnfs_wait() sleeps for a moment if there is none. */
unsigned cairnfs_poll(cairnfs* fs);
void cairnfs_wait(cairnfs* fs);

#ifdef __cplusplus
}
#endif
