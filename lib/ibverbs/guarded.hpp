// The frame of each exported function: no exception leaves it, and errno has the reason of a failure.
#pragma once

#include <cerrno>
#include <new>
#include <utility>

#include "lib/ibverbs/complaints.hpp"

namespace cairn::ibverbs {

// Runs `make`, which returns a pointer. Returns nullptr, with errno ENOMEM, if there is no memory.
template <class Make>
auto make_or_null(Make&& make) noexcept -> decltype(make()) {
    try {
        return make();
    } catch (...) {  // bad_alloc, or an exception that the standard library made of it
        complain_of_memory();
        errno = ENOMEM;
        return nullptr;
    }
}

// Runs `work`, which returns 0 or an errno value. Returns ENOMEM if there is no memory.
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
