// What each exported function does around its work: no exception leaves it, and errno says why it failed.
#pragma once

#include <cerrno>
#include <new>
#include <utility>

#include "lib/ibverbs/complaints.hpp"

namespace cairn::ibverbs {

// Runs `make`, which returns a pointer; nullptr, with errno ENOMEM, if there is no memory.
template <class Make>
auto make_or_null(Make&& make) noexcept -> decltype(make()) {
    try {
        return make();
    } catch (...) {  // bad_alloc, or what the standard library makes of it
        complain_of_memory();
        errno = ENOMEM;
        return nullptr;
    }
}

// Runs `work`, which returns 0 or an errno value; ENOMEM if there is no memory.
template <class Work>
int result_of(Work&& work) noexcept {
    try {
        return work();
    } catch (...) {
        complain_of_memory();
        return ENOMEM;
    }
}

// Sets errno and returns nullptr.
inline std::nullptr_t fail(int reason) noexcept {
    errno = reason;
    return nullptr;
}

}  // namespace cairn::ibverbs
