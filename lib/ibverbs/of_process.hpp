// What there is once in a process.
#pragma once

#include <pthread.h>

#include <map>
#include <memory>
#include <mutex>
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

    // Returns nullptr if it was not made, or a child had no memory for it.
    [[nodiscard]] static Object* find() noexcept { return current_; }

private:
    static void renew() noexcept { current_ = new (std::nothrow) Object; }

    static inline Object* current_ = nullptr;
};

class Adapter;

// What there is once for each adapter, as long as somebody has it.
template <class Object>
class OfAdapters {
public:
    // Returns that of the adapter. `make` makes it, if there is none. Throws bad_alloc.
    template <class Make>
    [[nodiscard]] std::shared_ptr<Object> of(const Adapter& adapter, Make&& make) {
        const std::lock_guard hold(mutex_);
        std::erase_if(known_, [](const auto& each) { return each.second.expired(); });
        std::weak_ptr<Object>& known = known_[&adapter];
        std::shared_ptr<Object> object = known.lock();
        if (object == nullptr) {
            object = make();
            known = object;
        }
        return object;
    }

private:
    std::mutex mutex_;
    std::map<const Adapter*, std::weak_ptr<Object>> known_;
};

}  // namespace cairn::ibverbs
