// The greeting and the proofs that two shards exchange before anything else.
#include "fs/daemon/peer_links.hpp"

#include <utility>

#include "lib/base/secret.hpp"

namespace cairn::fs {

namespace {

std::uint8_t type_of(PeerCall call) noexcept {
    return static_cast<std::uint8_t>(call);
}

}  // namespace

template <void (PeerLinks::*kHandle)(PeerLinks::Link&, const copyrpc::Request&)>
void PeerLinks::handle(void* context, const copyrpc::Request& request) {
    auto& self = *static_cast<PeerLinks*>(context);
    if (Link* const link = self.find(request.handle.session); link != nullptr && !link->ours) {
        (self.*kHandle)(*link, request);
    }
}

void PeerLinks::set_handlers() {
    endpoint_.set_handler(type_of(PeerCall::Greet), handle<&PeerLinks::on_greeting>, this);
    endpoint_.set_handler(type_of(PeerCall::Prove), handle<&PeerLinks::on_proof>, this);
    endpoint_.set_handler(type_of(PeerCall::Ready), handle<&PeerLinks::on_ready>, this);
}

// Begins the exchange. The shard that has connected does so.
void PeerLinks::greet(Link& link) {
    link.step = Step::Greeting;
    link.by = worker_.now() + config_.patience;
    link.nonces.connecting = draw_secret();
    const PeerGreeting own{.from = config_.facts.from, .to = link.peer, .nonce = link.nonces.connecting};
    ask(link, PeerCall::Greet, peer_bytes_of(own));
}

void PeerLinks::ask(Link& link, PeerCall what, std::vector<std::uint8_t> bytes) {
    link.said = std::move(bytes);
    copyrpc::Call call;
    call.type = type_of(what);
    call.request = link.said;
    call.context = this;
    call.tag = link.session.value;
    call.completion = [](void* context, const rpc::CallResult& result) {
        auto& self = *static_cast<PeerLinks*>(context);
        Link* const asked = self.find(SessionId{static_cast<std::uint32_t>(result.tag)});
        if (asked != nullptr && asked->step != Step::Proven) {
            self.on_answer(*asked, result);
        }
    };
    if (endpoint_.post(link.session, call, worker_.now()).verdict != rpc::PostVerdict::Posted) {
        end(link);
    }
}

// A peer that refuses hangs up without an answer: it does not know who asks.
void PeerLinks::on_answer(Link& link, const rpc::CallResult& result) {
    const bool hung_up = result.status == rpc::CallStatus::AnswerLost || result.status == rpc::CallStatus::Disconnected;
    if (hung_up && link.step == Step::Proving) {
        differs(link, "it refuses our proof; start all daemons with the same --key-file");
    }
    if (result.status != rpc::CallStatus::Ok) {
        end(link);
    } else if (link.step == Step::Greeting) {
        on_their_greeting(link, result.response);
    } else if (link.step == Step::Proving) {
        on_their_proof(link, result.response);
    }
}

void PeerLinks::on_their_greeting(Link& link, std::span<const std::uint8_t> bytes) {
    const auto greeting = parse_peer<PeerGreeting>(bytes);
    if (!greeting || greeting->magic != kPeerMagic || greeting->version != kPeerHelloVersion) {
        refuse(link, "it is of another version");
        return;
    }
    link.nonces.accepting = greeting->nonce;
    link.step = Step::Proving;
    const PeerFacts facts = facts_to(link.peer);
    ask(link, PeerCall::Prove,
        peer_bytes_of(PeerProof{facts, prover_.prove(PeerSide::Connecting, link.nonces, facts)}));
}

void PeerLinks::on_their_proof(Link& link, std::span<const std::uint8_t> bytes) {
    const auto proof = parse_peer<PeerProof>(bytes);
    if (!proof || !prover_.is_proof(PeerSide::Accepting, link.nonces, *proof)) {
        refuse(link, "it has another key; start all daemons with the same --key-file");
        return;
    }
    if (const auto difference = difference_of(facts_to(link.peer), proof->facts)) {
        counters_.count(PeerCounter::Different);
        differs(link, *difference);
        end(link);
        return;
    }
    link.life = proof->facts.life;
    ask(link, PeerCall::Ready, {0});
    if (link.step == Step::Proving) {
        become_proven(link);
    }
}

void PeerLinks::on_greeting(Link& link, const copyrpc::Request& request) {
    const auto greeting = parse_peer<PeerGreeting>(request.payload);
    if (link.step != Step::Greeting || !greeting || greeting->magic != kPeerMagic ||
        greeting->version != kPeerHelloVersion || greeting->to != config_.facts.from ||
        greeting->from >= config_.facts.from || peer(greeting->from) == nullptr) {
        refuse(link, "it said no greeting of this version");
        return;
    }
    link.peer = greeting->from;
    link.step = Step::Proving;
    link.nonces = {greeting->nonce, draw_secret()};
    const PeerGreeting own{.from = config_.facts.from, .to = link.peer, .nonce = link.nonces.accepting};
    (void)endpoint_.answer(request.handle, peer_bytes_of(own), request.now);
}

// Answers with our facts, so that the other shard can log the difference, too.
void PeerLinks::on_proof(Link& link, const copyrpc::Request& request) {
    const auto proof = parse_peer<PeerProof>(request.payload);
    if (link.step != Step::Proving || !proof || !prover_.is_proof(PeerSide::Connecting, link.nonces, *proof)) {
        (void)endpoint_.refuse(request.handle, request.now);
        refuse(link, "it did not prove the cluster's key");
        return;
    }
    const PeerFacts facts = facts_to(link.peer);
    (void)endpoint_.answer(request.handle,
                           peer_bytes_of(PeerProof{facts, prover_.prove(PeerSide::Accepting, link.nonces, facts)}),
                           request.now);
    if (const auto difference = difference_of(facts, proof->facts)) {
        counters_.count(PeerCounter::Different);
        differs(link, *difference);
    } else {
        link.life = proof->facts.life;
        link.step = Step::Awaiting;
    }
}

void PeerLinks::on_ready(Link& link, const copyrpc::Request& request) {
    if (link.step != Step::Awaiting) {
        refuse(link, "it did not prove the cluster's key");
        return;
    }
    (void)endpoint_.answer(request.handle, {}, request.now);
    become_proven(link);
}

PeerFacts PeerLinks::facts_to(ShardNumber to) const noexcept {
    PeerFacts facts = config_.facts;
    facts.to = to;
    return facts;
}

}  // namespace cairn::fs
