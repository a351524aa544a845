// Interns paths: equal keys give one Path, at a stable address, found in constant time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/port/path.hpp"

namespace cairn::port {

// Fixed capacity, allocated at construction. When it is full, the unpinned path that was interned
// longest ago is recycled; when every path is pinned, intern() returns nullptr (a counted drop for a
// received packet, an error for a local open). Strangers can therefore never make it grow.
class PathTable {
public:
    // `own_source_port`: what all its paths send from; 0: each from the port it receives from.
    explicit PathTable(std::uint32_t capacity = 65536, std::uint16_t own_source_port = 0);
    // What paths get whose key says none, from now on.
    void set_traffic_class(std::uint8_t traffic_class) noexcept { traffic_class_ = traffic_class; }

    // A key that says a traffic class changes that of the path known already.
    [[nodiscard]] Path* intern(const PathKey& key) noexcept;
    [[nodiscard]] Path* find(const PathKey& key) noexcept;
    // Calls f(Path&) for every path (to resolve or unresolve those of a next hop).
    template <class F>
    void for_each(F&& f) {
        for (std::uint32_t i = 0; i < used_; ++i) {
            f(paths_[i]);
        }
    }
    [[nodiscard]] std::uint32_t size() const noexcept { return used_; }

private:
    [[nodiscard]] std::uint32_t home(const PathKey& key) const noexcept;
    void unlink(std::uint32_t index) noexcept;

    std::uint32_t capacity_;
    std::uint16_t own_source_port_;
    std::uint8_t traffic_class_ = 0;
    std::uint32_t used_ = 0;
    std::uint32_t victim_ = 0;          // clock hand for recycling
    std::unique_ptr<Path[]> paths_;     // [capacity]
    std::vector<std::uint32_t> next_;   // chain links, index + 1
    std::vector<std::uint32_t> heads_;  // hash buckets, index + 1
};

}  // namespace cairn::port
