// The server's part that is of datagrams: clients come and go by SIDR.
#include <algorithm>

#include "apps/perf/server.hpp"

namespace cairn::perf {

void Server::on_asked(const cm::DatagramRequested& asked, Instant now) {
    const std::optional<RawLeave> leave = read_message<RawLeave>(asked.private_data.view(), kLeaveMagic);
    if (leave) {
        part_from_datagrams(asked, Qpn{leave->qpn.get()}, now);
        return;
    }
    auto guest = std::make_unique<Guest>();
    std::string refusal = prepare_guest(*guest, Transport::Ud, asked.private_data.view(), now);
    auto way = device().create_ah(asked.route.remote, verbs::ConnectorConfig{}.udp_source_port, now);
    if (refusal.empty() && !way.ok()) {
        refusal = way.error().text();
    }
    if (!refusal.empty()) {
        (void)connector().refuse(asked.id, bytes_of_text(refusal), now);
        return;
    }
    guest->channel->set_peer(std::move(way).value(), guest->hello.qpn);
    guest->remote = asked.route.remote;
    const RawAnswer answer = answer_of(*guest);
    (void)connector().answer(asked.id, {guest->channel->qpn(), verbs::kRdmaCmQkey, bytes_of(answer)}, now);
    add_guest(std::move(guest));
}

// Only who came from there may end it.
void Server::part_from_datagrams(const cm::DatagramRequested& asked, Qpn qpn, Instant now) {
    const auto found = std::find_if(guests_.begin(), guests_.end(), [&](const std::unique_ptr<Guest>& each) {
        return each != nullptr && each->transport == Transport::Ud && each->channel->qpn() == qpn &&
               each->remote == asked.route.remote;
    });
    if (found == guests_.end()) {
        (void)connector().refuse(asked.id, bytes_of_text("there is no such test"), now);
        return;
    }
    const RawFarewell farewell = end_of(**found);
    (void)connector().answer(asked.id, {qpn, verbs::kRdmaCmQkey, bytes_of(farewell)}, now);
    remove((*found)->index, now);
}

}  // namespace cairn::perf
