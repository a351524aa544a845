// AttachedRegions: the memory of regions that the port was told of.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "lib/base/result.hpp"
#include "lib/base/types.hpp"
#include "lib/port/port.hpp"

namespace cairn::roce {

// Keeps the memory that is attached to the port, by region, so that the port is told when a region ends. A region that
// a peer invalidated is in no other table any more when its owner destroys it. The port outlives it.
class AttachedRegions {
public:
    using Memory = std::span<const std::uint8_t>;

    explicit AttachedRegions(port::Port& port) noexcept : port_(port) {}
    AttachedRegions(const AttachedRegions&) = delete;
    AttachedRegions& operator=(const AttachedRegions&) = delete;
    // mutants: roce-attached-regions-destruct
    ~AttachedRegions() {
        while (!regions_.empty()) {
            end(regions_.begin()->first);
        }
    }

    // True: the port sends from `memory`; to be followed by conclude() when it is known what became of the region.
    // mutants: roce-attached-regions-begin
    [[nodiscard]] bool begin(Memory memory) { return !memory.empty() && port_.attach(memory); }
    // mutants: roce-attached-regions-conclude
    void conclude(const Result<Rkey>& made, Memory memory) {
        if (!made.ok()) {
            port_.detach(memory);
            return;
        }
        end(made.value());  // keys come again in the end: an old region of that key has ended
        regions_.emplace(made.value(), memory);
    }
    // After what was sent from the region's memory is settled. Nothing is done for other keys.
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
