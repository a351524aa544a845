// The client with datagrams: it asks for the server's queue pair by SIDR, and leaves it by SIDR.
#include <fmt/format.h>

#include "apps/perf/client.hpp"

namespace cairn::perf {

Status Client::ask(Lane& lane, std::span<const std::uint8_t> said, Instant now) {
    const Result<verbs::DatagramId> asked = connector().resolve(peer_, options().service_port, said, now);
    if (!asked.ok()) {
        return asked.error();
    }
    lane.asked = asked.value();
    asked_lanes_[lane.asked.value] = index_of(lane);
    return Nothing{};
}

Status Client::leave_datagrams(Lane& lane, Instant now) {
    const RawLeave leave{Be32{kLeaveMagic}, Be32{lane.peer.value}, Be32{lane.remote.rkey.value}};
    return ask(lane, bytes_of(leave), now);
}

void Client::ask_for_pass(Instant now) {
    if (pass_asked_ || now < start_at_) {
        return;
    }
    const RawPass question{Be32{kPassMagic}, {}, {}};
    const Result<verbs::DatagramId> asked = connector().resolve(peer_, options().service_port, bytes_of(question), now);
    if (asked.ok()) {
        pass_asked_ = asked.value();
    } else {
        fail(asked.error().text());
    }
}

void Client::on_pass(const cm::Resolved& resolved) {
    if (was_refused(resolved)) {
        return;
    }
    const std::optional<RawPass> raw = read_message<RawPass>(resolved.private_data.view(), kPassMagic);
    if (raw) {
        pass_ = raw->pass.get();
    } else {
        fail("the server is no cairn-perf, or of another version");
    }
}

// Reports a refusal, or begins again with a smaller path MTU.
bool Client::was_refused(const cm::Resolved& resolved) {
    if (!resolved.status) {
        fail(fmt::format("{} does not answer; is the server running?", peer_.text()));
    } else if (*resolved.status == wire::SidrStatus::UnsupportedService) {
        fail(nobody_listens());
    } else if (const auto offer = read_message<RawPathMtu>(resolved.private_data.view(), kPathMtuMagic)) {
        on_smaller_path_mtu(offer->path_mtu_bytes.get());
    } else if (*resolved.status != wire::SidrStatus::Valid) {
        fail(fmt::format("the server refused: {}", text_of(resolved.private_data)));
    }
    return failed() || phase_ == Phase::Agreeing;
}

void Client::on_resolved(const cm::Resolved& resolved, Instant now) {
    if (resolved.id == pass_asked_ && !failed()) {
        on_pass(resolved);
        return;
    }
    const auto found = asked_lanes_.find(resolved.id.value);
    if (found == asked_lanes_.end() || failed()) {
        return;
    }
    Lane& lane = lanes_[found->second];
    asked_lanes_.erase(found);
    if (was_refused(resolved)) {
        return;
    }
    if (lane.stage == Stage::Asked) {
        lane.peer = resolved.qpn;
        auto way = device().create_ah(peer_, port::kFirstUdpSourcePort, now);
        if (!way.ok()) {
            fail(way.error().text());
            return;
        }
        lane.channel->set_peer(std::move(way).value(), resolved.qpn);
        on_up(lane, resolved.private_data, now);
    } else {
        on_gone(lane, resolved.private_data);
    }
}

}  // namespace cairn::perf
