// The users of connections connect and part. The order of their events is checked.
#pragma once

#include <span>

#include "lib/sim/verbs/verbs_plan.hpp"
#include "lib/sim/verbs/verbs_stranger.hpp"
#include "lib/sim/verbs/verbs_traffic.hpp"

namespace cairn::sim {

class VerbsConnections {
public:
    // Keeps all arguments, which outlive the object.
    VerbsConnections(World& world, const VerbsPlan& plan, VerbsTraffic& traffic, VerbsTraffic::Hosts& hosts,
                     VerbsEnds& ends, VerbsStranger& stranger, VerbsCounters& counters)
        : world_(world),
          random_(world.random()),
          plan_(plan),
          traffic_(traffic),
          hosts_(hosts),
          ends_(ends),
          stranger_(stranger),
          counters_(counters) {}

    // Connects to a user that listens on the host at this place.
    void connect(VerbsHost& host, std::size_t place);
    void answer(VerbsHost& host, const VerbsAsked& asked);
    void leave(VerbsHost& host, VerbsEnd& end);
    void give_up(VerbsHost& host, VerbsEnd& end);
    // Takes in the events of the host's connector.
    void hear(VerbsHost& host);

private:
    [[nodiscard]] std::size_t place_of(const VerbsEnd& end) const { return hosts_[end.host]->node.host(); }
    VerbsEnd& add_end(VerbsHost& host, std::size_t peer_place);
    [[nodiscard]] verbs::ConnectionChoice choose(std::span<const std::uint8_t> hello);
    void destroy(VerbsHost& host, VerbsEnd& end);
    void on_event(VerbsHost& host, const cm::Requested& event);
    void on_established(VerbsHost& host, VerbsEnd& end, const cm::Established& event);
    void on_event_of(VerbsHost& host, const cm::Event& event, cm::ConnectionId id);

    World& world_;
    Random& random_;
    const VerbsPlan& plan_;
    VerbsTraffic& traffic_;
    VerbsTraffic::Hosts& hosts_;
    VerbsEnds& ends_;
    VerbsStranger& stranger_;
    VerbsCounters& counters_;
};

}  // namespace cairn::sim
