// The adapters of this process, for those who come to them from outside: who asks for statistics.
#pragma once

#include <functional>
#include <string>

namespace cairn::ibverbs {

class Adapter;

// Any thread. An adapter does not end while it is visited, nor is it ended by who visits.
class AdaptersInUse {
public:
    using Visit = std::function<void(const std::string& device, Adapter& adapter)>;

    // Throws bad_alloc.
    static void add(Adapter& adapter, const std::string& device);
    // It ends now: waits until nobody visits. Does nothing to one that was not added.
    static void remove(const Adapter& adapter) noexcept;
    // Nothing may be added or removed meanwhile by the visitor.
    static void visit(const Visit& each);
};

}  // namespace cairn::ibverbs
