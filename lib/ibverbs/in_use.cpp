#include "lib/ibverbs/in_use.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/monotonic_clock.hpp"
#include "lib/base/nowhere.hpp"
#include "lib/ibverbs/adapter.hpp"
#include "lib/ibverbs/memory_faults.hpp"

namespace cairn::ibverbs {

namespace {

struct Entry {
    Adapter* adapter;
    std::string device;
    std::vector<int> fds;
    bool locked = false;  // by a fork() that is under way
};

struct All {
    Lock lock;  // taken before those of adapters
    std::vector<Entry> adapters;
    std::set<int> event_fds;
};

// Never ended: threads and objects of programs may outlive static objects. nullptr: a child had no memory for it.
All* all_of_process = nullptr;

// The thread that forks has the lock. A fork() in a handler that interrupted the holder of a lock would wait for ever.
// So it has this long for all locks, and forks without the locks that it did not get.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool has_all = false;
constexpr Duration kPatience = seconds(5);

void lock_all() noexcept {
    const Instant deadline = read_monotonic() + kPatience;
    has_all = all_of_process != nullptr && all_of_process->lock.lock_until(deadline);
    if (has_all) {
        for (Entry& each : all_of_process->adapters) {
            each.locked = each.adapter->lock().lock_until(deadline);
        }
    }
}

void unlock_all() noexcept {
    if (!std::exchange(has_all, false)) {
        return;
    }
    for (Entry& each : all_of_process->adapters) {
        if (std::exchange(each.locked, false)) {
            each.adapter->lock().unlock();
        }
    }
    all_of_process->lock.unlock();
}

// Descriptors that the child inherits keep their numbers, so that the child may end the objects that it knows. Adapters
// are orphaned also if fork() did not get all locks. The child would take its parent's packets otherwise, or wait for
// threads that it does not have.
void orphan_all() noexcept {
    All* const inherited = std::exchange(all_of_process, new (std::nothrow) All);
    has_all = false;
    orphan_memory_faults();
    if (inherited == nullptr) {
        return;
    }
    Nowhere nowhere;
    for (const int each : inherited->event_fds) {
        nowhere.replace(each);
    }
    for (const Entry& each : inherited->adapters) {
        for (const int fd : each.fds) {
            nowhere.replace(fd);
        }
        each.adapter->orphan();
        each.adapter->lock().free_in_child();
    }
    inherited->lock.free_in_child();
}

// Sends what peers are owed, as the program exits. It gives up if a thread is in the midst of a turn that does not end:
// a handler that interrupted it may have called exit(). The helper goes on until the process has gone.
void settle_all() noexcept {
    const Instant deadline = read_monotonic() + InUse::kExits;
    if (all_of_process == nullptr || !all_of_process->lock.lock_until(deadline)) {
        return;
    }
    for (const Entry& each : all_of_process->adapters) {
        if (each.adapter->lock().lock_until(deadline)) {
            each.adapter->settle();
            each.adapter->lock().unlock();
        }
    }
    all_of_process->lock.unlock();
}

All& all() {
    static const bool made = [] {
        all_of_process = new All;
        pthread_atfork(lock_all, unlock_all, orphan_all);
        std::atexit(settle_all);
        return true;
    }();
    if (!made || all_of_process == nullptr) {
        throw std::bad_alloc();
    }
    return *all_of_process;
}

}  // namespace

void InUse::add(Adapter& adapter, const std::string& device, std::vector<int> fds) {
    const std::lock_guard hold(all().lock);
    all().adapters.push_back({&adapter, device, std::move(fds)});
}

void InUse::add(int event_fd) {
    const std::lock_guard hold(all().lock);
    all().event_fds.insert(event_fd);
}

void InUse::remove(const Adapter& adapter) noexcept {
    if (all_of_process != nullptr) {
        const std::lock_guard hold(all_of_process->lock);
        std::erase_if(all_of_process->adapters, [&adapter](const Entry& each) { return each.adapter == &adapter; });
    }
}

void InUse::remove(int event_fd) noexcept {
    if (all_of_process != nullptr) {
        const std::lock_guard hold(all_of_process->lock);
        all_of_process->event_fds.erase(event_fd);
    }
}

bool InUse::has(const Adapter& adapter) noexcept {
    if (all_of_process == nullptr) {
        return false;
    }
    const std::lock_guard hold(all_of_process->lock);
    return std::any_of(all_of_process->adapters.begin(), all_of_process->adapters.end(),
                       [&adapter](const Entry& each) { return each.adapter == &adapter; });
}

void InUse::visit(const Visit& each) {
    const std::lock_guard hold(all().lock);
    for (const Entry& one : all().adapters) {
        each(one.device, *one.adapter);
    }
}

}  // namespace cairn::ibverbs
