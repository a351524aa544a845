// The adapters and descriptors of this process that are in use. Statistics, fork() and exit() find them here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/base/time.hpp"

namespace cairn::ibverbs {

class Adapter;

// Any thread. A fork() waits, for a bounded time, until no thread is in the midst of a turn. In the child the adapters
// are orphans with free locks, and the descriptors lead to /dev/null; their numbers stay taken. An exit() sends what
// peers are owed.
class InUse {
public:
    static constexpr Duration kExits = milliseconds(500);  // the longest that a handler of exit() waits for all locks

    using Visit = std::function<void(const std::string& device, Adapter& adapter)>;

    // Add an object. They throw bad_alloc.
    static void add(Adapter& adapter, const std::string& device, std::vector<int> fds);
    static void add(int event_fd);
    // Remove an object that ends now, and wait until no visit is under way. They do nothing if it was not added.
    static void remove(const Adapter& adapter) noexcept;
    static void remove(int event_fd) noexcept;
    // Returns whether the adapter was added here. One that a child of fork() inherited was not.
    [[nodiscard]] static bool has(const Adapter& adapter) noexcept;
    // Calls `each` with all adapters. An adapter does not end while it is visited; the visitor does not end it either.
    // The visitor may not add or remove anything.
    static void visit(const Visit& each);
};

}  // namespace cairn::ibverbs
