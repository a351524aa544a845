#include "fs/daemon/peer_mail.hpp"

namespace cairn::fs {

PeerMail::PeerMail(copyrpc::Endpoint& endpoint, PeerLinks& links, worker::Worker& worker, PeerCounters& counters)
    : endpoint_(endpoint), links_(links), worker_(worker), counters_(counters), unanswered_(links.cluster().shards()) {}

void PeerMail::send(ShardNumber to, PeerCall what, std::span<const std::uint8_t> bytes) {
    const std::optional<SessionId> session = links_.session_of(to);
    if (!session) {
        return;
    }
    if (free_.empty()) {
        letters_.push_back(std::make_unique<Letter>());
        free_.push_back(letters_.back().get());
    }
    Letter& letter = *free_.back();
    letter.mail = this;
    letter.to = to;
    letter.session = *session;
    letter.bytes.assign(bytes.begin(), bytes.end());
    letter.response = {letter.none.data(), 0, static_cast<std::uint32_t>(letter.none.size()), {}};
    copyrpc::Call call;
    call.type = static_cast<std::uint8_t>(what);
    call.request = letter.bytes;
    call.response = &letter.response;
    call.completion = on_done;
    call.context = &letter;
    const bool has_room = letters_.size() - free_.size() < kMostCalls && unanswered_[to] + bytes.size() <= kMostBytes;
    if (!has_room || endpoint_.post(*session, call, worker_.now()).verdict != rpc::PostVerdict::Posted) {
        counters_.count(PeerCounter::Overflows);
        links_.lose(to);
        return;
    }
    free_.pop_back();
    unanswered_[to] += bytes.size();
    counters_.count(PeerCounter::Told);
}

// A peer that does not take a message counts as lost.
void PeerMail::on_done(void* context, const rpc::CallResult& result) {
    Letter& letter = *static_cast<Letter*>(context);
    PeerMail& mail = *letter.mail;
    mail.unanswered_[letter.to] -= letter.bytes.size();
    mail.free_.push_back(&letter);
    if (result.status != rpc::CallStatus::Ok && mail.links_.session_of(letter.to) == letter.session) {
        mail.links_.lose(letter.to);
    }
}

}  // namespace cairn::fs
