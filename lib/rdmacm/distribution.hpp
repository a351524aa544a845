// The distribution's librdmacm, loaded beneath this library for its rsockets. What it asks of the kernel is answered
// here, and what it asks of libibverbs by this library.
#pragma once

#include <string>
#include <vector>

namespace cairn::rdmacm {

class Distribution {
public:
    // Returns that of this process, which is loaded at the first call. Where there is none, one line on stderr has said
    // so, once.
    [[nodiscard]] static const Distribution& get() noexcept;
    // Returns nullptr before the first get(), and where there is none.
    [[nodiscard]] static const Distribution* find() noexcept;

    // Returns the function of that name; nullptr, with errno ENOSYS, if there is none.
    [[nodiscard]] void* function(const char* name) const noexcept;

private:
    Distribution() noexcept;

    void* handle_ = nullptr;
};

// Returns the files that may be the library, in the order in which they are tried: CAIRN_RDMACM, if it is set
// (`named`), alone; else a file in each of the folders. A set-uid program does not believe the variable.
[[nodiscard]] std::vector<std::string> distribution_files(const char* named, const std::vector<std::string>& folders);

}  // namespace cairn::rdmacm
