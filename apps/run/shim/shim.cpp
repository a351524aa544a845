// libcairn-shim.so: cairn-run preloads it if private namespaces are refused. Paths beneath /sys/class/infiniband* and
// /dev/infiniband lead to the folder that CAIRN_SHIM_ROOT names. All other paths pass through unchanged.
//
// No header of glibc's declares the functions defined here: these have attributes, and other names for some. Functions
// have the names of their symbols by asm labels. The library needs glibc alone: no C++ runtime, no allocation, no lock.
#include <dlfcn.h>
#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t kMostPathBytes = 4096;

// The fixed beginnings of paths. The end, a slash, or the rest of a name may follow.
constexpr const char* kSysClass = "/sys/class/infiniband";
constexpr const char* kDevices = "/dev/infiniband";

bool begins_with(const char* path, const char* what, const char* behind) noexcept {
    const std::size_t bytes = std::strlen(what);
    return std::strncmp(path, what, bytes) == 0 && std::strchr(behind, path[bytes]) != nullptr;  // '\0' is in each text
}

bool is_ours(const char* path) noexcept {
    return path != nullptr && path[0] == '/' &&
           (begins_with(path, kSysClass, "/_") || begins_with(path, kDevices, "/")) &&
           std::strstr(path, "/..") == nullptr;
}

// The path to use in the place of the program's.
class At {
public:
    explicit At(const char* path) noexcept : path_(path) {
        const char* const root = is_ours(path) ? secure_getenv("CAIRN_SHIM_ROOT") : nullptr;
        if (root == nullptr) {
            return;
        }
        const std::size_t root_bytes = std::strlen(root);
        const std::size_t path_bytes = std::strlen(path);
        if (root_bytes + path_bytes < kMostPathBytes) {
            std::memcpy(text_, root, root_bytes);
            std::memcpy(text_ + root_bytes, path, path_bytes + 1);
            path_ = text_;
        }
    }
    At(const At&) = delete;
    At& operator=(const At&) = delete;

    [[nodiscard]] const char* path() const noexcept { return path_; }
    // Returns the flags without AT_SYMLINK_NOFOLLOW for devices: they are links in the folder, and programs are not to
    // see that.
    [[nodiscard]] int followed(int flags) const noexcept {
        return path_ == text_ ? flags & ~AT_SYMLINK_NOFOLLOW : flags;
    }
    [[nodiscard]] bool led() const noexcept { return path_ == text_; }

private:
    const char* path_;
    char text_[kMostPathBytes];
};

// Returns the next function of that name, which this library's one hides. Looked up once.
void* behind(std::atomic<void*>& known, const char* name) noexcept {
    void* found = known.load(std::memory_order_acquire);
    if (found == nullptr) {
        found = dlsym(RTLD_NEXT, name);
        known.store(found, std::memory_order_release);
    }
    return found;
}

int no_function() noexcept {
    errno = ENOSYS;
    return -1;
}

template <class Result>
Result missing() noexcept {
    no_function();
    if constexpr (static_cast<Result>(-1) < Result{}) {
        return static_cast<Result>(-1);
    } else {
        return Result{};
    }
}
template <>
void* missing<void*>() noexcept {
    no_function();
    return nullptr;
}

}  // namespace

// Defines a function that calls the next one of its name, with `at` made of `path`.
#define CAIRN_SHIM(Type, name, parameters, arguments)                                             \
    extern "C" __attribute__((visibility("default"))) Type shim_##name parameters __asm__(#name); \
    extern "C" Type shim_##name parameters {                                                      \
        static std::atomic<void*> known{nullptr};                                                 \
        const auto next = reinterpret_cast<Type(*) parameters>(behind(known, #name));             \
        const At at(path);                                                                        \
        return next == nullptr ? missing<Type>() : next arguments;                                \
    }
// As CAIRN_SHIM, for functions that take a mode if they make a file.
#define CAIRN_SHIM_OPEN(name, parameters, declared, arguments)                                   \
    extern "C" __attribute__((visibility("default"))) int shim_##name parameters __asm__(#name); \
    extern "C" int shim_##name parameters {                                                      \
        static std::atomic<void*> known{nullptr};                                                \
        const auto next = reinterpret_cast<int(*) declared>(behind(known, #name));               \
        unsigned mode = 0;                                                                       \
        if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {                        \
            va_list more;                                                                        \
            va_start(more, flags);                                                               \
            mode = va_arg(more, unsigned);                                                       \
            va_end(more);                                                                        \
        }                                                                                        \
        const At at(path);                                                                       \
        return next == nullptr ? missing<int>() : next arguments;                                \
    }

CAIRN_SHIM_OPEN(open, (const char* path, int flags, ...), (const char*, int, unsigned), (at.path(), flags, mode))
CAIRN_SHIM_OPEN(open64, (const char* path, int flags, ...), (const char*, int, unsigned), (at.path(), flags, mode))
CAIRN_SHIM_OPEN(openat, (int folder, const char* path, int flags, ...), (int, const char*, int, unsigned),
                (folder, at.path(), flags, mode))
CAIRN_SHIM_OPEN(openat64, (int folder, const char* path, int flags, ...), (int, const char*, int, unsigned),
                (folder, at.path(), flags, mode))
CAIRN_SHIM(int, __open_2, (const char* path, int flags), (at.path(), flags))
CAIRN_SHIM(int, __open64_2, (const char* path, int flags), (at.path(), flags))
CAIRN_SHIM(int, __openat_2, (int folder, const char* path, int flags), (folder, at.path(), flags))
CAIRN_SHIM(int, __openat64_2, (int folder, const char* path, int flags), (folder, at.path(), flags))
CAIRN_SHIM(void*, fopen, (const char* path, const char* mode), (at.path(), mode))
CAIRN_SHIM(void*, fopen64, (const char* path, const char* mode), (at.path(), mode))
CAIRN_SHIM(void*, opendir, (const char* path), (at.path()))
CAIRN_SHIM(int, scandir, (const char* path, void* out, void* filter, void* order), (at.path(), out, filter, order))
CAIRN_SHIM(int, scandir64, (const char* path, void* out, void* filter, void* order), (at.path(), out, filter, order))
CAIRN_SHIM(int, access, (const char* path, int mode), (at.path(), mode))
CAIRN_SHIM(int, eaccess, (const char* path, int mode), (at.path(), mode))
CAIRN_SHIM(int, euidaccess, (const char* path, int mode), (at.path(), mode))
CAIRN_SHIM(int, faccessat, (int folder, const char* path, int mode, int flags),
           (folder, at.path(), mode, at.followed(flags)))
CAIRN_SHIM(int, stat, (const char* path, void* out), (at.path(), out))
CAIRN_SHIM(int, stat64, (const char* path, void* out), (at.path(), out))
CAIRN_SHIM(int, fstatat, (int folder, const char* path, void* out, int flags),
           (folder, at.path(), out, at.followed(flags)))
CAIRN_SHIM(int, fstatat64, (int folder, const char* path, void* out, int flags),
           (folder, at.path(), out, at.followed(flags)))
CAIRN_SHIM(int, statx, (int folder, const char* path, int flags, unsigned mask, void* out),
           (folder, at.path(), at.followed(flags), mask, out))
CAIRN_SHIM(int, __xstat, (int version, const char* path, void* out), (version, at.path(), out))
CAIRN_SHIM(int, __xstat64, (int version, const char* path, void* out), (version, at.path(), out))
CAIRN_SHIM(int, __fxstatat, (int version, int folder, const char* path, void* out, int flags),
           (version, folder, at.path(), out, at.followed(flags)))
CAIRN_SHIM(int, __fxstatat64, (int version, int folder, const char* path, void* out, int flags),
           (version, folder, at.path(), out, at.followed(flags)))
CAIRN_SHIM(std::ptrdiff_t, readlink, (const char* path, char* out, std::size_t room), (at.path(), out, room))
CAIRN_SHIM(std::ptrdiff_t, readlinkat, (int folder, const char* path, char* out, std::size_t room),
           (folder, at.path(), out, room))
CAIRN_SHIM(void*, realpath, (const char* path, char* out), (at.path(), out))
CAIRN_SHIM(void*, __realpath_chk, (const char* path, char* out, std::size_t room), (at.path(), out, room))
CAIRN_SHIM(void*, canonicalize_file_name, (const char* path), (at.path()))

// Defines lstat() functions. For a device they return the facts of the link's target.
#define CAIRN_SHIM_LSTAT(name, followed, parameters, arguments)                                  \
    extern "C" __attribute__((visibility("default"))) int shim_##name parameters __asm__(#name); \
    extern "C" int shim_##name parameters {                                                      \
        static std::atomic<void*> known{nullptr};                                                \
        static std::atomic<void*> known_followed{nullptr};                                       \
        const At at(path);                                                                       \
        void* const found = at.led() ? behind(known_followed, #followed) : behind(known, #name); \
        const auto next = reinterpret_cast<int(*) parameters>(found);                            \
        return next == nullptr ? missing<int>() : next arguments;                                \
    }

CAIRN_SHIM_LSTAT(lstat, stat, (const char* path, void* out), (at.path(), out))
CAIRN_SHIM_LSTAT(lstat64, stat64, (const char* path, void* out), (at.path(), out))
CAIRN_SHIM_LSTAT(__lxstat, __xstat, (int version, const char* path, void* out), (version, at.path(), out))
CAIRN_SHIM_LSTAT(__lxstat64, __xstat64, (int version, const char* path, void* out), (version, at.path(), out))
