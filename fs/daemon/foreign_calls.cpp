#include "fs/daemon/foreign_calls.hpp"

#include <algorithm>
#include <utility>

#include "fs/channel/segment.hpp"
#include "lib/base/assert.hpp"

namespace cairn::fs {

ForeignCalls::ForeignCalls(copyrpc::Endpoint& endpoint, PeerLinks& links, worker::Worker& worker,
                           PeerCounters& counters)
    : endpoint_(endpoint), links_(links), worker_(worker), counters_(counters), gates_(links.cluster().shards()) {
    endpoint_.set_handler(
        static_cast<std::uint8_t>(PeerCall::Forward),
        [](void* self, const copyrpc::Request& request) { static_cast<ForeignCalls*>(self)->on_call(request); }, this);
    endpoint_.set_handler(
        static_cast<std::uint8_t>(PeerCall::Forget),
        [](void* self, const copyrpc::Request& request) { static_cast<ForeignCalls*>(self)->on_forget(request); },
        this);
}

void ForeignCalls::on_found(ShardNumber peer, std::uint64_t life, Instant now) {
    const bool is_new = std::exchange(gates_[peer].life, life) != life;
    for (auto& [number, client] : clients_) {
        if (client.from == peer) {
            client.leaves_at = is_new ? std::min(client.leaves_at, now + kGrace) : Instant::never();
        }
    }
}

void ForeignCalls::on_lost(ShardNumber peer, Instant now) {
    for (const auto& [number, call] : calls_) {
        call->is_orphan = call->is_orphan || call->from == peer;
    }
    for (auto& [number, client] : clients_) {
        if (client.from == peer) {
            client.leaves_at = std::min(client.leaves_at, now + kGrace);
        }
    }
}

std::optional<ShardNumber> ForeignCalls::proven(const copyrpc::Request& request) {
    const std::optional<ShardNumber> from = links_.peer_of(request.handle.session);
    if (!from) {
        links_.on_breach(request.handle.session);
    }
    return from;
}

// A gateway may send calls of its own machine's clients only.
void ForeignCalls::on_call(const copyrpc::Request& request) {
    const std::optional<ShardNumber> from = proven(request);
    if (!from) {
        return;
    }
    auto call = std::make_unique<Foreign>();
    call->message.assign(request.payload.begin(), request.payload.end());
    const auto parsed = parse_forwarded(call->message);
    const Cluster& cluster = links_.cluster();
    if (!parsed || gates_[*from].calls == kMostCalls ||
        node_of_client(parsed->call.client, cluster.node_count()) != cluster.node_of(*from)) {
        links_.on_breach(request.handle.session);
        return;
    }
    counters_.count(PeerCounter::Foreign);
    call->calls = this;
    call->parsed = *parsed;
    call->from = *from;
    call->kept = request.keep();
    do {
        call->number = ++last_;
    } while (calls_.contains(call->number));
    ++gates_[*from].calls;
    clients_[parsed->call.client] = {*from, Instant::never()};
    const bool is_behind = std::ranges::any_of(calls_, [&](const auto& each) {
        const ForwardedCall& other = each.second->parsed.call;
        return other.client == parsed->call.client && other.slot == parsed->call.slot;
    });
    Foreign& added = *calls_.emplace(call->number, std::move(call)).first->second;
    if (is_behind) {
        added.step = Step::Behind;
    } else {
        start(added);
    }
}

void ForeignCalls::on_forget(const copyrpc::Request& request) {
    const std::optional<ShardNumber> from = proven(request);
    if (!from) {
        return;
    }
    const auto said = parse_peer<PeerForget>(request.payload);
    if (!said) {
        links_.on_breach(request.handle.session);
        return;
    }
    (void)endpoint_.answer(request.handle, {}, request.now);
    const auto found = clients_.find(said->client);
    if (found != clients_.end() && found->second.from == *from) {
        clients_.erase(found);
        leaving_.push_back(said->client);
    }
}

void ForeignCalls::start(Foreign& call) {
    if (call.is_orphan) {
        end(call);
        return;
    }
    const NamedData& data = call.parsed.data;
    call.data = buffers_.take(data.bytes);
    if (data.way == DataWay::Brings && !data.is_inline()) {
        fetch(call);
        return;
    }
    if (data.way == DataWay::Brings) {
        std::ranges::copy(bytes_of(call.parsed.call.data), call.data.bytes().begin());
    }
    call.step = Step::Ready;
    ready_.push_back(call.number);
}

void ForeignCalls::fetch(Foreign& call) {
    const ForwardedCall& said = call.parsed.call;
    copyrpc::OneSidedWork work;
    work.place = {said.address, Rkey{said.key}, call.parsed.data.bytes};
    work.memory = call.data.bytes();
    work.completion = on_fetched;
    work.context = &call;
    call.step = Step::Fetching;
    if (endpoint_.one_sided().read(call.kept.handle().session, work, worker_.now()) != rpc::PostVerdict::Posted) {
        end(call);
    }
}

void ForeignCalls::on_fetched(void* context, const rpc::CallResult& result) {
    Foreign& call = *static_cast<Foreign*>(context);
    if (result.status != rpc::CallStatus::Ok) {
        call.calls->end(call);
        return;
    }
    call.step = Step::Ready;
    call.calls->ready_.push_back(call.number);
}

Call ForeignCalls::begin(std::uint32_t number, CallToken token) {
    Foreign& call = *calls_.at(number);
    call.step = Step::WithShard;
    ++with_shard_;
    const ForwardedCall& said = call.parsed.call;
    return {token,
            said.client,
            said.slot,
            credentials_of(said.who, call.groups),
            bytes_of(said.request),
            call.data.bytes()};
}

void ForeignCalls::answer(std::uint32_t number, std::span<const std::uint8_t> bytes) {
    Foreign& call = *calls_.at(number);
    CAIRN_ASSERT(call.step == Step::WithShard);
    --with_shard_;
    call.answer.assign(bytes.begin(), bytes.end());
    std::uint32_t read = 0;
    if (call.parsed.data.way == DataWay::Takes) {
        DataAnswer answer;
        const std::optional<AnswerHead> head = parse_answer(bytes, answer);
        read = head && head->error == 0 ? answer.bytes : 0;
    }
    CAIRN_ASSERT(read <= call.data.bytes().size());
    if (call.is_orphan) {
        end(call);
    } else if (read != 0 && !call.parsed.data.is_inline()) {
        deliver(call, read);
    } else {
        respond(call, read);
    }
}

void ForeignCalls::deliver(Foreign& call, std::uint32_t bytes) {
    const ForwardedCall& said = call.parsed.call;
    copyrpc::OneSidedWork work;
    work.place = {said.address, Rkey{said.key}, call.parsed.data.bytes};
    work.memory = call.data.bytes().first(bytes);
    work.completion = on_delivered;
    work.context = &call;
    call.step = Step::Delivering;
    if (endpoint_.one_sided().write(call.kept.handle().session, work, worker_.now()) != rpc::PostVerdict::Posted) {
        end(call);
    }
}

void ForeignCalls::on_delivered(void* context, const rpc::CallResult& result) {
    Foreign& call = *static_cast<Foreign*>(context);
    if (result.status == rpc::CallStatus::Ok && !call.is_orphan) {
        call.calls->respond(call, 0);
    } else {
        call.calls->end(call);
    }
}

// Sends the answer, with the first `read` bytes of the data.
void ForeignCalls::respond(Foreign& call, std::uint32_t read) {
    std::vector<std::uint8_t> message(call.answer.size() + read + 2 * sizeof(std::uint16_t));
    const std::uint32_t bytes =
        put_forwarded_answer(message, {text_of(call.answer), text_of(call.data.bytes().first(read))});
    CAIRN_ASSERT(bytes == message.size());
    (void)endpoint_.answer(call.kept, message, worker_.now());
    end(call);
}

// Ends a call. The next call of the same slot, if one waits, begins.
void ForeignCalls::end(Foreign& call) {
    const std::uint64_t client = call.parsed.call.client;
    const std::uint32_t slot = call.parsed.call.slot;
    --gates_[call.from].calls;
    buffers_.give_back(std::move(call.data));
    calls_.erase(call.number);
    const auto next = std::ranges::find_if(calls_, [&](const auto& each) {
        const Foreign& other = *each.second;
        return other.step == Step::Behind && other.parsed.call.client == client && other.parsed.call.slot == slot;
    });
    if (next != calls_.end()) {
        start(*next->second);
    }
}

bool ForeignCalls::has_calls(std::uint64_t client) const noexcept {
    return std::ranges::any_of(calls_,
                               [client](const auto& each) { return each.second->parsed.call.client == client; });
}

// Returns the clients that leave now. A client leaves later while it still has calls here.
std::vector<std::uint64_t> ForeignCalls::take_leavers(Instant now) {
    std::erase_if(clients_, [&](const auto& each) {
        const bool leaves = each.second.leaves_at <= now;
        if (leaves) {
            leaving_.push_back(each.first);
        }
        return leaves;
    });
    std::vector<std::uint64_t> gone;
    std::erase_if(leaving_, [&](std::uint64_t client) {
        const bool has_gone = !has_calls(client);
        if (has_gone) {
            gone.push_back(client);
        }
        return has_gone;
    });
    return gone;
}

Instant ForeignCalls::next_deadline() const noexcept {
    if (!ready_.empty() || std::ranges::any_of(leaving_, [this](std::uint64_t each) { return !has_calls(each); })) {
        return Instant{};
    }
    Instant due = Instant::never();
    for (const auto& [number, client] : clients_) {
        due = std::min(due, client.leaves_at);
    }
    return due;
}

}  // namespace cairn::fs
