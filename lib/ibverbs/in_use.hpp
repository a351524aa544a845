// What of this process is in use, for those who come to it from outside: who asks for statistics, fork(), exit().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/base/time.hpp"

namespace cairn::ibverbs {

class Adapter;

// Any thread. A fork() waits until no thread is in the midst of a turn, but not for ever. In the child the adapters are
// orphans that nobody has locked, and the descriptors lead nowhere; their numbers stay taken. An exit() sends what
// peers are owed.
class InUse {
public:
    static constexpr Duration kExits = milliseconds(500);  // the longest that a handler of exit() waits for all locks

    using Visit = std::function<void(const std::string& device, Adapter& adapter)>;

    // They throw bad_alloc.
    static void add(Adapter& adapter, const std::string& device, std::vector<int> fds);
    static void add(int event_fd);
    // It ends now: waits until nobody visits. They do nothing to what was not added.
    static void remove(const Adapter& adapter) noexcept;
    static void remove(int event_fd) noexcept;
    // Not so of what a child of fork() inherited.
    [[nodiscard]] static bool has(const Adapter& adapter) noexcept;
    // An adapter does not end while it is visited, nor is it ended by who visits. Nothing may be added or removed
    // meanwhile by the visitor.
    static void visit(const Visit& each);
};

}  // namespace cairn::ibverbs
