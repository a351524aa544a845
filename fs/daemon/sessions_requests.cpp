// Requests of a client after its Hello: channels, and memory for buffers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "fs/daemon/session.hpp"

namespace cairn::fs {

void Sessions::on_request(Session& session, std::span<const std::uint8_t> bytes) {
    if (const std::optional<ChannelRequest> request = parse_channel_request(bytes)) {
        on_channel_request(session, *request);
    } else if (parse_buffers_request(bytes)) {
        on_buffers_request(session);
    } else {
        refuse(session, SessionCounter::Nonsense, {"this is no request for a channel or for buffers", kOneVersion});
    }
}

// Hands the memory to the shards before the client gets it.
void Sessions::on_buffers_request(Session& session) {
    if (session.buffers->is_made()) {
        refuse(session, SessionCounter::TooMany, {"a client has memory for its buffers once", kOneVersion});
        return;
    }
    if (config_.buffer_bytes == 0) {
        (void)send_packet(session.socket.get(), bytes_of(BuffersRequest{0}));
        return;
    }
    if (const Status made = session.buffers->make(config_.buffer_bytes); !made.ok()) {
        refuse(session, SessionCounter::Memory, made.error());
        return;
    }
    const std::array<int, 1> fds{session.buffers->fd()};
    if (!send_packet(session.socket.get(), bytes_of(BuffersRequest{config_.buffer_bytes}), fds)) {
        hang_up(session);
        return;
    }
    counters_.count(SessionCounter::Buffers);
}

void Sessions::on_channel_request(Session& session, const ChannelRequest& request) {
    const std::size_t place = place_of(request.shard);
    if (place == doors_.size()) {
        refuse(session, SessionCounter::OtherShard,
               {fmt::format("shard {} is none of this daemon's", request.shard), "ask for one of Welcome's"});
        return;
    }
    std::uint8_t& channels = session.channels[place];
    if (channels == SessionConfig::kChannels) {
        refuse(session, SessionCounter::TooMany,
               {fmt::format("a client has at most {} channels to a shard", SessionConfig::kChannels),
                "share them among more threads"});
        return;
    }
    Result<Segment> segment = Segment::create(config_.welcome.shape);
    if (!segment.ok()) {
        refuse(session, SessionCounter::Memory, segment.error());
        return;
    }
    session.awaits_channel = true;
    doors_[place]->open_channel(
        {session.client, channels++, session.person, std::move(segment).value(), session.buffers});
}

void Sessions::on_channel(ShardNews& news) {
    Session* const session = session_of(news.client);
    if (session == nullptr) {
        return;  // the client has gone
    }
    if (news.what == ShardNews::What::ChannelFailed) {
        refuse(*session, SessionCounter::Descriptors,
               {"the daemon has no descriptor left", "raise its limit of open files (ulimit -n)"});
        return;
    }
    session->awaits_channel = false;
    const std::array<int, 2> fds{news.segment.get(), news.doorbell.get()};
    if (!send_packet(session->socket.get(), bytes_of(ChannelRequest{news.shard}), fds)) {
        counters_.count(SessionCounter::Deaf);
        hang_up(*session);
        return;
    }
    counters_.count(SessionCounter::Channels);
}

}  // namespace cairn::fs
