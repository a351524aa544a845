// Objects of which a process, or an adapter, has one.
#pragma once

#include <pthread.h>

#include <map>
#include <memory>
#include <mutex>
#include <new>

namespace cairn::ibverbs {

// An object of the process, made at the first use and never ended: programs close devices while the process exits. A
// child of fork() has nothing of its parent's adapters, and gets an object of its own. The parent's may have been in
// use by another thread.
template <class Object>
class OfProcess {
public:
    // Returns the object. Throws bad_alloc.
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

    // Returns the object; nullptr if it was not made, or a child had no memory for it.
    [[nodiscard]] static Object* find() noexcept { return current_; }

private:
    static void renew() noexcept { current_ = new (std::nothrow) Object; }

    static inline Object* current_ = nullptr;
};

class Adapter;

// Objects of adapters, one each. One lives as long as it has a user.
template <class Object>
class OfAdapters {
public:
    // Returns the object of the adapter. `make` makes it if there is none. Throws bad_alloc.
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
