// The server with datagrams: clients come and go by SIDR.
#include "apps/perf/server.hpp"

namespace cairn::perf {

void Server::on_asked(const cm::DatagramRequested& asked, Instant now) {
    if (read_message<RawPass>(asked.private_data.view(), kPassMagic)) {
        tell_pass(asked, now);
        return;
    }
    const std::optional<RawLeave> leave = read_message<RawLeave>(asked.private_data.view(), kLeaveMagic);
    if (leave) {
        part_from_datagrams(asked, *leave, now);
        return;
    }
    const std::optional<Hello> hello = parse_hello(asked.private_data.view());
    if (hello && hello->message_bytes > own_path_mtu()) {
        (void)connector().refuse(asked.id, bytes_of(path_mtu_offer()), now);
        return;
    }
    auto guest = std::make_unique<Guest>();
    guest->transport = Transport::Ud;
    guest->remote = asked.route.remote;
    const std::string refusal = prepare_guest(*guest, asked.private_data.view(), now);
    if (!refusal.empty()) {
        (void)connector().refuse(asked.id, bytes_of_text(refusal), now);
        return;
    }
    auto way = device().create_ah(asked.route.remote, port::kFirstUdpSourcePort, now);
    if (!way.ok()) {
        (void)connector().refuse(asked.id, bytes_of_text(way.error().text()), now);
        return;
    }
    guest->channel->set_peer(std::move(way).value(), guest->hello.qpn);
    const Qpn qpn = guest->channel->qpn();
    const RawAnswer answer = answer_of(*guest);
    (void)connector().answer(asked.id, {qpn, verbs::kRdmaCmQkey, bytes_of(answer)}, now);
    guest_at_[qpn.value] = add_guest(std::move(guest));
}

void Server::tell_pass(const cm::DatagramRequested& asked, Instant now) {
    const RawPass pass{Be32{kPassMagic}, {}, Be64{passes_->pass_of(asked.route.remote, now)}};
    (void)connector().answer(asked.id, {{}, verbs::kRdmaCmQkey, bytes_of(pass)}, now);
}

// Removes a client of datagrams. Only the host that it came from may do so, with the key that it got.
void Server::part_from_datagrams(const cm::DatagramRequested& asked, const RawLeave& leave, Instant now) {
    const auto found = guest_at_.find(leave.qpn.get());
    Guest* const guest = found == guest_at_.end() ? nullptr : guests_[found->second].get();
    if (guest == nullptr || guest->remote != asked.route.remote || guest->mr->rkey().value != leave.rkey.get()) {
        (void)connector().refuse(asked.id, bytes_of_text("there is no such test"), now);
        return;
    }
    const RawFarewell farewell = end_of(*guest, now);
    (void)connector().answer(asked.id, {Qpn{leave.qpn.get()}, verbs::kRdmaCmQkey, bytes_of(farewell)}, now);
    remove(guest->index, now);
}

}  // namespace cairn::perf
