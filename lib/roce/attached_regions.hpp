// AttachedRegions: the memory of regions that is attached to the port.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "lib/base/result.hpp"
#include "lib/base/types.hpp"
#include "lib/port/port.hpp"

namespace cairn::roce {

// Keeps the memory that is attached to the port, by region, so that it is detached when its region ends. A region that
// a peer invalidated is in no other table any more when its owner destroys it. The port outlives it.
class AttachedRegions {
public:
    using Memory = std::span<const std::uint8_t>;

    explicit AttachedRegions(port::Port& port) noexcept : port_(port) {}
    AttachedRegions(const AttachedRegions&) = delete;
    AttachedRegions& operator=(const AttachedRegions&) = delete;
    ~AttachedRegions() {
        while (!regions_.empty()) {
            end(regions_.begin()->first);
        }
    }

    // Attaches the memory of a region that is about to be made. Returns true if the port sends from `memory`. The
    // caller then calls conclude() with the result.
    [[nodiscard]] bool begin(Memory memory) { return !memory.empty() && port_.attach(memory); }
    void conclude(const Result<Rkey>& made, Memory memory) {
        if (!made.ok()) {
            port_.detach(memory);
            return;
        }
        end(made.value());  // keys are used again in the end: an old region of that key has ended
        regions_.emplace(made.value(), memory);
    }
    // Detaches the region's memory, after the packets sent from it are settled. Ignores other keys.
    void end(Rkey key) noexcept {
        const auto found = regions_.find(key);
        if (found != regions_.end()) {
            port_.detach(found->second);
            regions_.erase(found);
        }
    }

private:
    port::Port& port_;
    std::map<Rkey, Memory> regions_;
};

}  // namespace cairn::roce
