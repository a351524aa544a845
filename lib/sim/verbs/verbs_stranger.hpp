// A hostile peer that knows which hosts are connected, but no secret. It does not know the packet numbers that a
// connection expects, the names that the managers of both ends drew, or the Q_Keys. It guesses these and sends in the
// name of a peer. It also copies packets with their secrets, and sends the copies from its own address. Neither
// forgeries nor copies may end or alter a connection of others.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "lib/sim/network.hpp"
#include "lib/sim/random.hpp"
#include "lib/wire/cm_message.hpp"

namespace cairn::sim {

// Counters of the hostile peer's packets, and of the requests that users got from it.
struct VerbsForgeries {
    std::uint64_t packets = 0;   // packets of connections in a peer's name
    std::uint64_t copies = 0;    // copies of packets and messages from its own address
    std::uint64_t messages = 0;  // messages of connection managers in a peer's name
    std::uint64_t datagrams = 0;
    std::uint64_t told = 0;  // requests for connections that came to users, to be answered

    friend bool operator==(const VerbsForgeries&, const VerbsForgeries&) = default;
};

class VerbsStranger {
public:
    // The serial in the private data of its requests. The requests of an end carry the end's own serial there.
    static constexpr std::uint64_t kSerial = ~std::uint64_t{0};

    // Makes the hostile peer. `node` is its own place in the network. It does not read frames to that place.
    VerbsStranger(Network& network, std::size_t node, std::uint64_t seed) noexcept
        : network_(network), node_(node), random_(seed) {}

    // Sees a frame on its way. `forges`: it may send a frame like this one, or like one that it saw before.
    void on_frame(const Frame& frame, bool forges, Instant now);
    void on_told() noexcept { ++forgeries_.told; }
    [[nodiscard]] const VerbsForgeries& forgeries() const noexcept { return forgeries_; }

private:
    using Bytes = std::vector<std::uint8_t>;
    struct Heard {
        Frame frame;
        wire::CmMad mad;
    };

    void overhear(const Frame& frame);
    void forge_packet(const Frame& seen, Instant now);
    void forge_datagram(const Frame& seen, Instant now);
    void forge_message(wire::CmMad mad, const Frame& seen, Instant now);
    void guess(wire::Req& request);
    [[nodiscard]] std::optional<wire::CmMessage> choose_end(const wire::CommIds& ids);
    [[nodiscard]] std::uint32_t any() { return static_cast<std::uint32_t>(random_.next()); }
    void send(const Bytes& datagram, const net::IpAddress& from, const Frame& seen, Instant now);

    Network& network_;
    std::size_t node_;
    Random random_;
    std::deque<Heard> heard_;           // the latest messages of connection managers
    std::map<wire::CommId, Qpn> qpns_;  // queue pairs of the ends of connections, by the ends' names
    VerbsForgeries forgeries_;
};

}  // namespace cairn::sim
