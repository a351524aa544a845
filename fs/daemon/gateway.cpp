#include "fs/daemon/gateway.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "fs/channel/segment.hpp"
#include "lib/base/assert.hpp"
#include "lib/base/copy.hpp"
#include "rpc/copyrpc/message.hpp"

namespace cairn::fs {

namespace {

// Room for a short answer; both of its texts have a length.
constexpr std::uint32_t kShortAnswer = 256;
constexpr std::uint32_t kLengths = 2 * sizeof(std::uint16_t);

constexpr std::uint32_t kLongAnswer = kLengths + kAnswerBytes;

template <class... Kinds>
bool is_one_of(const Request& request) noexcept {
    return (std::holds_alternative<Kinds>(request) || ...);
}

// Returns the usual size of a request's answer. The target of a symbolic link within a path is included.
std::uint32_t usual_answer_of(const Request& request, const NamedData& data) noexcept {
    if (is_one_of<ListRequest, ReadLinkRequest, CensusRequest, ScrubRequest>(request)) {
        return kLongAnswer;
    }
    return kLengths + kShortAnswer + (data.way == DataWay::Takes && data.is_inline() ? data.bytes : 0);
}

}  // namespace

Gateway::Gateway(copyrpc::Endpoint& endpoint, PeerLinks& links, PeerMail& mail, worker::Worker& worker,
                 ShardHost& clients, PeerCounters& counters)
    : endpoint_(endpoint),
      links_(links),
      mail_(mail),
      worker_(worker),
      clients_(clients),
      counters_(counters),
      peers_(links.cluster().shards()) {
    for (Peer& each : peers_) {
        each.lost_at = worker.now();
    }
}

void Gateway::take(const Call& call, ShardNumber to, Instant now) {
    Peer& peer = peers_[to];
    auto sent = std::make_unique<Sent>();
    sent->gateway = this;
    sent->call = call;
    sent->to = to;
    counters_.count(PeerCounter::Forwarded);
    if (!judge(*sent)) {
        fail(*sent, EINVAL);
        return;
    }
    sent->fails_at = std::max(peer.is_there ? now : peer.lost_at + kPatience, now + kLeastPatience);
    peer.waiting.push_back(std::move(sent));
    serve(to);
}

// Returns false if the client's request is invalid, or its data lie outside the client's memory.
bool Gateway::judge(Sent& sent) {
    const std::optional<ParsedRequest> parsed = parse_request(sent.call.request);
    if (!parsed) {
        return false;
    }
    sent.asked = *parsed;
    sent.data = data_of(parsed->request);
    move_data(sent.asked.request);
    sent.answer = usual_answer_of(parsed->request, sent.data);
    const auto memory = sent.call.memory(sent.data.at, sent.data.bytes);
    sent.memory = memory.value_or(std::span<std::uint8_t>{});
    return sent.data.bytes <= kMostForwardedData && memory.has_value();
}

void Gateway::forget(std::uint64_t client) {
    for (std::size_t number = 0; number != peers_.size(); ++number) {
        Peer& peer = peers_[number];
        if (peer.clients.erase(client) != 0) {
            peer.forgets.push_back(client);
            serve(static_cast<ShardNumber>(number));
        }
    }
}

void Gateway::on_found(ShardNumber number) {
    peers_[number].is_there = true;
    serve(number);
}

void Gateway::on_lost(ShardNumber number, Instant now) {
    Peer& peer = peers_[number];
    peer.is_there = false;
    peer.lost_at = now;
    peer.forgets.insert(peer.forgets.begin(), peer.told.begin(), peer.told.end());
    peer.told.clear();
    for (const auto& each : peer.waiting) {
        each->fails_at = now + kPatience;
    }
}

void Gateway::on_turn(Instant now) {
    for (std::size_t number = 0; number != peers_.size(); ++number) {
        Peer& peer = peers_[number];
        serve(static_cast<ShardNumber>(number));
        std::deque<std::unique_ptr<Sent>> waiting;
        if (!peer.is_there) {
            waiting.swap(peer.waiting);
        }
        for (std::unique_ptr<Sent>& each : waiting) {
            if (each->fails_at <= now) {
                fail(*each, EIO);
            } else {
                peer.waiting.push_back(std::move(each));
            }
        }
    }
}

Instant Gateway::next_deadline() const noexcept {
    Instant due = Instant::never();
    for (const Peer& peer : peers_) {
        if (peer.is_there && has_room(peer)) {
            return Instant{};
        }
        for (const auto& each : peer.waiting) {
            due = peer.is_there ? due : std::min(due, each->fails_at);
        }
    }
    return due;
}

// Forget messages go first: a client with the same number may have come back since. `told` holds only as many as the
// mail can have unanswered; earlier ones have arrived.
void Gateway::serve(ShardNumber number) {
    Peer& peer = peers_[number];
    while (peer.is_there && !peer.forgets.empty()) {
        mail_.send(number, PeerCall::Forget, peer_bytes_of(PeerForget{peer.forgets.front()}));
        if (peer.is_there) {
            peer.told.push_back(peer.forgets.front());
            peer.forgets.pop_front();
        }
        if (peer.told.size() > PeerMail::kMostCalls) {
            peer.told.pop_front();
        }
    }
    while (peer.is_there && has_room(peer)) {
        std::unique_ptr<Sent> sent = std::move(peer.waiting.front());
        peer.waiting.pop_front();
        if (!compose(*sent)) {
            fail(*sent, EIO);
        } else if (!send(peer, std::move(sent))) {
            return;
        }
    }
}

// True if there is a next call, and room for it.
bool Gateway::has_room(const Peer& peer) noexcept {
    return !peer.waiting.empty() && peer.under_way.size() < kMostUnderWay &&
           peer.promised + copyrpc::Message::charge_for(peer.waiting.front()->answer) <= kMostPromised;
}

// Writes the message. Returns false if the other shard cannot get access to the data.
bool Gateway::compose(Sent& sent) {
    const NamedData& data = sent.data;
    std::array<std::uint8_t, kRequestBytes> request;
    const std::uint32_t request_bytes = put_request(request, sent.asked.head, sent.asked.request);
    ForwardedCall call;
    call.client = sent.call.client;
    call.slot = sent.call.slot;
    call.who = who_of(sent.call.who);
    call.request = text_of(std::span<const std::uint8_t>(request).first(request_bytes));
    if (!data.is_inline()) {
        if (!open_data(sent)) {
            return false;
        }
        call.address = sent.place->address;
        call.key = sent.place->rkey.value;
    } else if (data.way == DataWay::Brings) {
        call.data = text_of(sent.memory);
    }
    const std::uint32_t bytes = put_forwarded(draft_, call);
    CAIRN_ASSERT(bytes != 0);
    sent.bytes.assign(draft_.begin(), draft_.begin() + bytes);
    sent.room.resize(sent.answer);
    sent.response = {sent.room.data(), 0, sent.answer, {}};
    return true;
}

// Opens the client's own memory. The other shard reads and writes it directly, without a copy here.
bool Gateway::open_data(Sent& sent) {
    const std::optional<SessionId> session = links_.session_of(sent.to);
    if (!session) {
        return false;
    }
    const verbs::Right right = sent.data.way == DataWay::Brings ? verbs::Right::RemoteRead : verbs::Right::RemoteWrite;
    auto place = endpoint_.one_sided().open(*session, sent.memory, right);
    if (place.ok()) {
        sent.place = place.value();
    }
    return place.ok();
}

// Sends a call. Returns false if the call waits.
bool Gateway::send(Peer& peer, std::unique_ptr<Sent> sent) {
    const std::optional<SessionId> session = links_.session_of(sent->to);
    copyrpc::Call call;
    call.type = static_cast<std::uint8_t>(PeerCall::Forward);
    call.request = sent->bytes;
    call.response = &sent->response;
    call.completion = on_done;
    call.context = sent.get();
    if (!session || endpoint_.post(*session, call, worker_.now()).verdict != rpc::PostVerdict::Posted) {
        if (session && sent->place) {
            (void)endpoint_.one_sided().close(*session, *sent->place);
        }
        sent->place.reset();
        peer.waiting.push_front(std::move(sent));
        return false;
    }
    sent->session = *session;
    if (peer.clients.insert(sent->call.client).second) {
        std::erase(peer.told, sent->call.client);  // the client has come back
    }
    peer.promised += copyrpc::Message::charge_for(sent->answer);
    peer.under_way.push_back(std::move(sent));
    return true;
}

void Gateway::on_done(void* context, const rpc::CallResult& result) {
    Sent& done = *static_cast<Sent*>(context);
    Gateway& self = *done.gateway;
    const ShardNumber number = done.to;
    Peer& peer = self.peers_[done.to];
    const auto at = std::ranges::find(peer.under_way, &done, &std::unique_ptr<Sent>::get);
    CAIRN_ASSERT(at != peer.under_way.end());
    std::unique_ptr<Sent> sent = std::move(*at);
    peer.under_way.erase(at);
    peer.promised -= copyrpc::Message::charge_for(sent->answer);
    if (sent->place) {
        (void)self.endpoint_.one_sided().close(sent->session, *sent->place);
        sent->place.reset();
    }
    if (result.status == rpc::CallStatus::Disconnected || result.status == rpc::CallStatus::PeerLost) {
        sent->fails_at = self.worker_.now() + kPatience;
        peer.waiting.push_front(std::move(sent));  // for a later turn: the link may be gone, unnoticed yet
        return;
    }
    if (result.status == rpc::CallStatus::ResponseTooLong && sent->answer < kLongAnswer) {
        sent->answer = kLongAnswer;  // the call goes again with the same numbers, so it is not executed twice
        peer.waiting.push_front(std::move(sent));
    } else {
        self.finish(*sent, result);
    }
    self.serve(number);
}

void Gateway::finish(Sent& sent, const rpc::CallResult& result) {
    const auto answer =
        result.status == rpc::CallStatus::Ok ? parse_forwarded_answer(result.response, sent.data) : std::nullopt;
    if (!answer || answer->answer.empty()) {
        fail(sent, EIO);
        return;
    }
    if (!answer->data.empty()) {
        copy_bytes(sent.memory.data(), bytes_of(answer->data).data(), answer->data.size());
    }
    clients_.answer(sent.call.token, bytes_of(answer->answer));
}

void Gateway::fail(const Sent& sent, std::int32_t error) {
    std::array<std::uint8_t, kAnswerBytes> answer{};
    counters_.count(PeerCounter::Unreachable, error == EIO ? 1 : 0);
    clients_.answer(sent.call.token, std::span<const std::uint8_t>(answer).first(put_error(answer, {error, 0})));
}

}  // namespace cairn::fs
