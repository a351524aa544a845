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

// The capacity is fixed and allocated at construction. A full table recycles paths that are not pinned. If all are
// pinned there is no room: a received packet is dropped and counted, a local open fails. So unknown peers cannot make
// the table grow. A path between addresses of two families is refused, too. Unknown peers cannot fill the table. The
// address of each may have a few paths. It may have more while all unknown peers' paths beyond these few take less than
// five eighths of the table. An eighth is for local opens alone.
class PathTable {
public:
    // Makes the table. `own_source_port` is the port that all paths send from; 0: each path sends from the port that it
    // receives from. `secret` decides which keys share a bucket. It is drawn at random where unknown peers choose keys.
    explicit PathTable(std::uint32_t capacity = 65536, std::uint16_t own_source_port = 0, const SipKey& secret = {});
    // Sets the traffic class of paths whose key has none. It holds for paths made from now on.
    void set_traffic_class(std::uint8_t traffic_class) noexcept { traffic_class_ = traffic_class; }

    // Returns the path that this host wants to use; nullptr if there is no room. A traffic class in `key` replaces the
    // traffic class of a known path.
    [[nodiscard]] Path* intern(const PathKey& key) noexcept;
    // Returns the path of a received datagram; nullptr if unknown peers have no room.
    [[nodiscard]] Path* admit(const PathKey& key) noexcept {
        Path* const known = find(key);
        return known != nullptr ? known : make(key, Whose::Stranger);
    }
    // Begins a received burst. A path that was given to keep() is not recycled until the next burst. So later packets
    // of the burst may admit paths, and the reader of the burst may open some.
    void begin_burst() noexcept { burst_ = burst_ + 1 != 0 ? burst_ + 1 : 1; }
    void keep(Path& path) const noexcept { path.note_burst(burst_); }
    [[nodiscard]] Path* find(const PathKey& key) noexcept;

    // The far end of paths, by its IP address.
    struct Station {
        net::IpAddress address{};
        net::MacAddress mac{};                     // where all paths to the station go, once it is named
        bool named = false;                        // the station announced its Ethernet address itself
        Instant named_at{};                        // when it announced another MAC than before
        std::optional<net::MacAddress> seen_at{};  // source of its first datagram, while it is not named
        std::uint32_t paths = 0;
        std::uint32_t strangers = 0;  // the number of these paths that an unknown peer opened
        std::uint32_t first = HashChains::kEnd;
    };
    // Returns the station; nullptr if no path leads there.
    [[nodiscard]] Station* station(const net::IpAddress& remote) noexcept;
    // Calls f(Path&) for every path to the station.
    template <class F>
    void for_each_to(const Station& station, F&& f) {
        for (std::uint32_t at = station.first; at != HashChains::kEnd; at = links_[at].next) {
            f(paths_[at]);
        }
    }
    // Calls f(Station&) for every station that a path leads to.
    template <class F>
    void for_each_station(F&& f) {
        for (Station& each : stations_) {
            if (each.paths != 0) {
                f(each);
            }
        }
    }
    [[nodiscard]] std::uint32_t size() const noexcept { return used_; }
    // Returns the number of paths in the fullest bucket. Walks the whole table.
    [[nodiscard]] std::uint32_t longest_chain() const noexcept { return by_key_.longest(); }

private:
    enum class Whose : std::uint8_t { Stranger, Own };
    struct Link {
        std::uint32_t station = 0;
        std::uint32_t next = HashChains::kEnd;  // the next path to the same station
        std::uint32_t previous = HashChains::kEnd;
        Whose whose = Whose::Own;
    };
    static constexpr std::size_t kWords = 5;  // of a hashed key: four of the address, and the port

    [[nodiscard]] std::uint32_t hash_of(const net::IpAddress& remote, std::uint16_t port) const noexcept;
    [[nodiscard]] Path* make(const PathKey& key, Whose whose) noexcept;
    [[nodiscard]] std::uint32_t place_for(const Station* station, Whose whose) noexcept;
    template <class May>
    [[nodiscard]] std::uint32_t idle_place(May&& may) noexcept;
    void enter(std::uint32_t index, Whose whose) noexcept;
    void leave(std::uint32_t index) noexcept;

    std::uint32_t capacity_;
    std::uint32_t few_;           // paths that each unknown peer's address may have
    std::uint32_t surplus_most_;  // limit of unknown peers' paths beyond these few
    std::uint32_t strangers_most_;
    std::uint16_t own_source_port_;
    std::uint8_t traffic_class_ = 0;
    std::uint32_t used_ = 0;
    std::uint32_t surplus_ = 0;
    std::uint32_t strangers_ = 0;
    std::uint32_t hand_ = 0;   // hand of the clock that recycles paths
    std::uint32_t burst_ = 1;  // number of the newest burst
    std::array<std::uint64_t, kWords + 1> factors_{};
    std::unique_ptr<Path[]> paths_;         // [capacity]
    std::unique_ptr<std::uint8_t[]> idle_;  // by path: 1 while it is not pinned; bytes, for a fast search
    std::vector<Link> links_;               // by path
    HashChains by_key_;
    std::vector<Station> stations_;  // [capacity]
    std::vector<std::uint32_t> spare_stations_;
    HashChains by_address_;
};

}  // namespace cairn::port
