// The distribution's librdmacm, loaded beneath this library for its rsockets. Its calls to the kernel and to libibverbs
// come to this library.
#pragma once

#include <string>
#include <vector>

namespace cairn::rdmacm {

class Distribution {
public:
    // Returns the library of this process, which is loaded at the first call. If there is none, one line on stderr has
    // reported that, once.
    [[nodiscard]] static const Distribution& get() noexcept;
    // Returns nullptr before the first get(), and if there is no library.
    [[nodiscard]] static const Distribution* find() noexcept;

    // Returns the function of that name; nullptr, with errno ENOSYS, if there is none.
    [[nodiscard]] void* function(const char* name) const noexcept;

private:
    Distribution() noexcept;

    void* handle_ = nullptr;
};

// Returns the files that may be the library, in the order in which they are tried. If CAIRN_RDMACM is set (`named`), it
// is that file alone; else there is one in each of the folders. A set-uid program ignores the variable.
[[nodiscard]] std::vector<std::string> distribution_files(const char* named, const std::vector<std::string>& folders);

}  // namespace cairn::rdmacm
