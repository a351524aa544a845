#include "lib/rdmacm/distribution.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>

#include "lib/ibverbs/complaints.hpp"
#include "lib/ibverbs/objects.hpp"
#include "lib/rdmacm/object_slots.hpp"
#include "lib/rdmacm/ucma.hpp"

namespace cairn::rdmacm {

namespace {

constexpr const char* kFile = "/dev/infiniband/rdma_cm";
constexpr const char* kOurs = "cairn_rdma_create_id";  // the symbol that only this library's own librdmacm.so.1 imports

std::atomic<const Distribution*> loaded{nullptr};

// Returns nullptr if the descriptor is none of ours.
[[nodiscard]] std::shared_ptr<ucma::File> file_of(int fd) noexcept {
    try {
        return ucma::table().find(fd);
    } catch (const std::exception&) {
        return nullptr;
    }
}

// The calls of the distribution's library to the kernel. Each does what the function of the same name does, except for
// the files of rdma_cm.
extern "C" {

int open_for_distribution(const char* path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : mode_t{0};
    va_end(arguments);
    if (std::strcmp(path, kFile) != 0) {
        return ::open(path, flags, mode);
    }
    try {
        return ucma::table().open();
    } catch (const std::exception&) {
        errno = ENOMEM;
        return -1;
    }
}

// Is a cancellation point, as write() is.
ssize_t write_for_distribution(int fd, const void* bytes, std::size_t count) {
    const std::shared_ptr<ucma::File> file = file_of(fd);
    if (file == nullptr) {
        return ::write(fd, bytes, count);
    }
    const int refused = ucma::perform(file, {static_cast<const std::uint8_t*>(bytes), count});
    if (refused != 0) {
        errno = refused;
        return -1;
    }
    return static_cast<ssize_t>(count);
}

int close_for_distribution(int fd) {
    const NoCancellation whole;
    return file_of(fd) != nullptr && ucma::table().close(fd) ? 0 : ::close(fd);
}

int fstat_for_distribution(int fd, struct stat* out) {
    constexpr mode_t kMode = S_IFCHR | S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
    constexpr unsigned kMisc = 10;  // the devices of this class
    const int failed = ::fstat(fd, out);
    if (failed == 0 && file_of(fd) != nullptr) {
        out->st_mode = kMode;
        out->st_rdev = makedev(kMisc, 0U);
    }
    return failed;
}

int fxstat_for_distribution(int, int fd, struct stat* out) {
    return fstat_for_distribution(fd, out);
}

// An rsocket of datagrams has a path to itself, and names it by a LID, as on InfiniBand.
ibv_ah* create_ah_for_distribution(ibv_pd* pd, ibv_ah_attr* wanted) {
    if (wanted->is_global != 0) {
        return ibv_create_ah(pd, wanted);
    }
    const net::IpAddress& own = ibverbs::Context::of(pd->context).of_device->config.address;
    ibv_ah_attr way = way_between(own, own);
    return ibv_create_ah(pd, &way);
}

// Fails, since the kernel's answers by netlink are about other devices.
int nl_connect_for_distribution(void*, int) {
    constexpr int kFailure = 1;  // NLE_FAILURE
    return -kFailure;
}
}

template <class Function>
[[nodiscard]] void* address_of(Function* function) noexcept {
    return reinterpret_cast<void*>(function);
}

const std::array kRedirects{
    Redirect{"open", address_of(open_for_distribution)},
    Redirect{"open64", address_of(open_for_distribution)},
    Redirect{"write", address_of(write_for_distribution)},
    Redirect{"close", address_of(close_for_distribution)},
    Redirect{"fstat", address_of(fstat_for_distribution)},
    Redirect{"fstat64", address_of(fstat_for_distribution)},
    Redirect{"__fxstat", address_of(fxstat_for_distribution)},
    Redirect{"__fxstat64", address_of(fxstat_for_distribution)},
    Redirect{"ibv_create_ah", address_of(create_ah_for_distribution)},
    Redirect{"nl_connect", address_of(nl_connect_for_distribution)},
};

// Returns the folders where the loader looks for libraries of the program. Libraries that stand in its cache alone are
// not among them.
[[nodiscard]] std::vector<std::string> loader_folders() {
    void* const program = dlopen(nullptr, RTLD_LAZY);
    Dl_serinfo size{};
    if (program == nullptr || dlinfo(program, RTLD_DI_SERINFOSIZE, &size) != 0) {
        return {};
    }
    const std::unique_ptr<Dl_serinfo, void (*)(void*)> all(static_cast<Dl_serinfo*>(std::calloc(1, size.dls_size)),
                                                           std::free);
    if (all == nullptr) {
        return {};
    }
    all->dls_size = size.dls_size;
    all->dls_cnt = size.dls_cnt;
    if (dlinfo(program, RTLD_DI_SERINFO, all.get()) != 0) {
        return {};
    }
    std::vector<std::string> folders;
    for (unsigned i = 0; i < all->dls_cnt; ++i) {
        folders.emplace_back(all->dls_serpath[i].dls_name);
    }
    return folders;
}

// Loads the file. Returns nullptr if it is no library, or one of ours; `why` has the reason, if the loader gave one.
[[nodiscard]] void* load(const std::string& file, std::string& why) {
    if (access(file.c_str(), R_OK) != 0) {
        return nullptr;
    }
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    link_map* object = nullptr;
    if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&object)) != 0) {
        const char* const said = dlerror();
        why = said == nullptr ? file : said;
        return nullptr;
    }
    if (imports(*object, kOurs)) {
        dlclose(handle);
        return nullptr;
    }
    if (!bind_own(*object, kRedirects)) {
        why = "its calls cannot be led here: " + std::string(std::strerror(errno));
        return nullptr;
    }
    return handle;
}

}  // namespace

std::vector<std::string> distribution_files(const char* named, const std::vector<std::string>& folders) {
    if (named != nullptr) {
        return {named};
    }
    std::vector<std::string> files;
    for (const std::string& folder : folders) {
        files.push_back(folder + "/librdmacm.so.1");
    }
    return files;
}

Distribution::Distribution() noexcept {
    std::string why = "no other librdmacm.so.1 is installed";
    try {
        for (const std::string& file : distribution_files(secure_getenv("CAIRN_RDMACM"), loader_folders())) {
            handle_ = load(file, why);
            if (handle_ != nullptr) {
                return;
            }
        }
        complain(ibverbs::Speaker::Cm, Error{"rsockets are the distribution's, above this library: " + why,
                                             "install it (Debian: librdmacm1), or name its file by CAIRN_RDMACM"});
    } catch (const std::exception&) {
        ibverbs::complain_of_memory();
    }
}

const Distribution& Distribution::get() noexcept {
    static const Distribution once;
    loaded.store(once.handle_ == nullptr ? nullptr : &once, std::memory_order_release);
    return once;
}

const Distribution* Distribution::find() noexcept {
    return loaded.load(std::memory_order_acquire);
}

void* Distribution::function(const char* name) const noexcept {
    void* const found = handle_ == nullptr ? nullptr : dlsym(handle_, name);
    if (found == nullptr) {
        errno = ENOSYS;
    }
    return found;
}

}  // namespace cairn::rdmacm
