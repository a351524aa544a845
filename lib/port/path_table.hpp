// Interns paths: equal keys give one Path, at a stable address, found in constant time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/sip_hash.hpp"
#include "lib/base/time.hpp"
#include "lib/port/hash_chains.hpp"
#include "lib/port/path.hpp"

namespace cairn::port {

// Fixed capacity, allocated at construction. When it is full, paths that nobody pins make room; where all are pinned
// there is none (a counted drop for a received packet, an error for a local open). So strangers can not make it grow.
// There is none either between addresses of two families. Nor can they have all of it: of what came from strangers each
// address may have a few paths, and more as long as these do not fill five eighths of the table; an eighth is for local
// opens alone.
class PathTable {
public:
    // `own_source_port`: what all its paths send from; 0: each from the port it receives from.
    // `secret`: says which keys share a bucket; to be drawn at random where strangers choose keys.
    explicit PathTable(std::uint32_t capacity = 65536, std::uint16_t own_source_port = 0, const SipKey& secret = {});
    // What paths get whose key says none, from now on.
    void set_traffic_class(std::uint8_t traffic_class) noexcept { traffic_class_ = traffic_class; }

    // The path that this host wants. A key that says a traffic class changes that of the path known already.
    [[nodiscard]] Path* intern(const PathKey& key) noexcept;
    // The path of a datagram that somebody sent.
    [[nodiscard]] Path* admit(const PathKey& key) noexcept {
        Path* const known = find(key);
        return known != nullptr ? known : make(key, Whose::Stranger);
    }
    // A burst of packets is received. The path of each, which keep() is told, stays what it is until the next burst:
    // packets behind it may admit paths, and whoever looks at the burst may open some.
    void begin_burst() noexcept { burst_ = burst_ + 1 != 0 ? burst_ + 1 : 1; }
    // mutants: port-path-table-keep
    void keep(Path& path) const noexcept { path.note_burst(burst_); }
    [[nodiscard]] Path* find(const PathKey& key) noexcept;

    // The far end of paths, by its IP address.
    struct Station {
        net::IpAddress address{};
        net::MacAddress mac{};                     // to which all paths to it go, once it is named
        bool named = false;                        // it said its Ethernet address itself
        Instant named_at{};                        // with another one than before
        std::optional<net::MacAddress> seen_at{};  // where its first datagram came from, while it is not named
        std::uint32_t paths = 0;
        std::uint32_t strangers = 0;  // of these
        std::uint32_t first = HashChains::kEnd;
    };
    // nullptr: no path leads there.
    [[nodiscard]] Station* station(const net::IpAddress& remote) noexcept;
    // Calls f(Path&) for every path to it.
    template <class F>
    void for_each_to(const Station& station, F&& f) {
        for (std::uint32_t at = station.first; at != HashChains::kEnd; at = links_[at].next) {
            f(paths_[at]);
        }
    }
    // Calls f(Station&) for every one that a path leads to.
    template <class F>
    void for_each_station(F&& f) {
        for (Station& each : stations_) {
            if (each.paths != 0) {
                f(each);
            }
        }
    }
    [[nodiscard]] std::uint32_t size() const noexcept { return used_; }
    // How many paths share a bucket at most. Walks the whole table.
    [[nodiscard]] std::uint32_t longest_chain() const noexcept { return by_key_.longest(); }

private:
    enum class Whose : std::uint8_t { Stranger, Own };
    struct Link {
        std::uint32_t station = 0;
        std::uint32_t next = HashChains::kEnd;  // path to the same station
        std::uint32_t previous = HashChains::kEnd;
        Whose whose = Whose::Own;
    };
    static constexpr std::size_t kWords = 5;  // of a key: four of the address, and the port

    [[nodiscard]] std::uint32_t hash_of(const net::IpAddress& remote, std::uint16_t port) const noexcept;
    [[nodiscard]] Path* make(const PathKey& key, Whose whose) noexcept;
    [[nodiscard]] std::uint32_t place_for(const Station* station, Whose whose) noexcept;
    template <class May>
    [[nodiscard]] std::uint32_t idle_place(May&& may) noexcept;
    void enter(std::uint32_t index, Whose whose) noexcept;
    void leave(std::uint32_t index) noexcept;

    std::uint32_t capacity_;
    std::uint32_t few_;           // paths that any stranger's address may have
    std::uint32_t surplus_most_;  // strangers' paths beyond those few
    std::uint32_t strangers_most_;
    std::uint16_t own_source_port_;
    std::uint8_t traffic_class_ = 0;
    std::uint32_t used_ = 0;
    std::uint32_t surplus_ = 0;
    std::uint32_t strangers_ = 0;
    std::uint32_t hand_ = 0;   // of the clock, for recycling
    std::uint32_t burst_ = 1;  // the number of the newest
    std::array<std::uint64_t, kWords + 1> factors_{};
    std::unique_ptr<Path[]> paths_;         // [capacity]
    std::unique_ptr<std::uint8_t[]> idle_;  // by path: 1 while nobody pins it, close together to be searched
    std::vector<Link> links_;               // by path
    HashChains by_key_;
    std::vector<Station> stations_;  // [capacity]
    std::vector<std::uint32_t> spare_stations_;
    HashChains by_address_;
};

}  // namespace cairn::port
