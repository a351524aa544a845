// What there is once in a process.
#pragma once

#include <pthread.h>

#include <new>

namespace cairn::ibverbs {

// Made at the first use and never ended: programs close devices while the process exits. A child of fork(), which has
// nothing of its parent's adapters, gets one of its own: its parent's may have been in use by another thread.
template <class Object>
class OfProcess {
public:
    // Throws bad_alloc.
    static Object& get() {
        static const bool made = [] {
            current_ = new Object;
            pthread_atfork(nullptr, nullptr, renew);
            return true;
        }();
        if (!made || current_ == nullptr) {
            throw std::bad_alloc();
        }
        return *current_;
    }

private:
    static void renew() noexcept { current_ = new (std::nothrow) Object; }

    static inline Object* current_ = nullptr;
};

}  // namespace cairn::ibverbs
