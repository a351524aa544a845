// Faults that are injected on purpose: of a network, of a port and of a peer, as a text names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/net/address.hpp"

namespace cairn::port {

// A time in which something does not work, counted from when the port was opened.
struct Outage {
    Duration begin = kNever;
    Duration length = kNever;

    static constexpr Duration kNever{INT64_MAX / 4};
    [[nodiscard]] constexpr bool happens() const noexcept { return begin < kNever; }
    [[nodiscard]] constexpr bool covers(Duration since_open) const noexcept {
        return since_open >= begin && since_open - begin < length;
    }
};

struct Faults {
    std::uint64_t seed = 1;  // the same seed gives the same fates, in the order of arrivals
    // Chances of each received datagram, in a million.
    std::uint32_t loss_per_million = 0;
    std::uint32_t duplicates_per_million = 0;
    std::uint32_t reorder_per_million = 0;  // it is held back until others have overtaken it
    std::uint32_t damage_per_million = 0;   // one bit is flipped
    Duration delay{};                       // of each received datagram
    Outage port;                            // nothing comes and nothing leaves
    std::optional<net::IpAddress> peer;     // nothing comes from it and nothing leaves to it, while `peer_outage` lasts
    Outage peer_outage;
    Duration queue_pair = Outage::kNever;  // a queue pair fails; the owner of the queue pairs ends it

    // Returns true if the port has to inject something.
    [[nodiscard]] bool any_of_port() const noexcept;
    // Returns the faults in the form that parse_faults() reads; an empty text if there are none.
    [[nodiscard]] std::string text() const;
};

// Reads "loss=1%,reorder=0.1%,delay=1ms,seed=7,port=2s+500ms,peer=10.0.0.2@2s,qp=1s". Shares have a %, times an ns, us,
// ms or s; an outage without a length lasts for good. Errors: a fault that is not known, that comes twice, or whose
// value has another form; the error names it.
[[nodiscard]] Result<Faults> parse_faults(std::string_view text);

}  // namespace cairn::port
