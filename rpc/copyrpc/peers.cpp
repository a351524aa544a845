#include "rpc/copyrpc/peers.hpp"

#include <algorithm>
#include <utility>

#include "rpc/copyrpc/ring_choice.hpp"

namespace cairn::copyrpc {

namespace {

std::optional<Hello> hello_in(const cm::PrivateBytes& data) noexcept {
    return Hello::parse(std::span(data.octets).first(data.size));
}

// Returns how many requests a session's peer may have under way. Each takes two blocks of the promise, or one promised
// answer.
std::uint32_t requests_most(const Session& session) noexcept {
    const std::uint32_t promise = session.rings->send().ring().promise_max();
    return session.rings->send().flow() == Flow::Credit ? promise / 2 : promise;
}

}  // namespace

verbs::QpCapacity qp_capacity(const EndpointConfig& config) noexcept {
    verbs::QpCapacity capacity;
    capacity.send_slots = 2U * config.receives;
    capacity.receive_slots = 1;
    capacity.max_sges = 1;
    capacity.inline_bytes = 0;
    return capacity;
}

std::size_t bytes_of_session(const EndpointConfig& config) noexcept {
    return 2 * std::size_t{config.ring_bytes} + sizeof(Session) + verbs::idle_qp_bytes(qp_capacity(config));
}

Status Peers::give_memory(verbs::Pd& pd, rpc::MsgBuffer& memory, std::unique_ptr<verbs::Mr>& region,
                          std::uint32_t bytes, verbs::Rights rights) {
    memory = pool_.allocate(bytes);
    if (!memory.valid()) {
        return Error{"there is no memory for a session's ring", "give the pool more, or sessions smaller rings"};
    }
    // Clears memory of earlier users. Otherwise stale batches in the own ring could be read, or padding in the mirror
    // could be sent.
    std::fill(memory.span().begin(), memory.span().end(), std::uint8_t{0});
    auto made = device_.register_memory(pd, memory.span(), rights, 0);  // its peer learns no address of ours
    if (!made.ok()) {
        return made.error();
    }
    region = std::move(made).value();
    return Nothing{};
}

// Makes a session with its own ring. Its mirror of the peer's ring is made once the peer has shown that it is there.
Result<rpc::LinkedSession*> Peers::make(bool /*ours*/) {
    Session* const session = sessions_.add();
    if (session == nullptr) {
        return Error{"all sessions are in use", "raise sessions_max"};
    }
    session->pd = device_.create_pd();  // of its own, so its key opens nothing to other sessions
    auto qp = device_.create_qp(*session->pd, qp_capacity(config_),
                                {*queues_.sends, *queues_.receives, queues_.requests.get()});
    if (!qp.ok()) {
        remove(*session);
        return qp.error();
    }
    session->qp = std::move(qp).value();  // the protection domain ends after the queue pair, also if there is no memory
    Status made = give_memory(*session->pd, session->own_memory, session->own, config_.ring_bytes,
                              verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::LocalWrite);
    if (made.ok() && config_.flow == Flow::Read) {
        made = give_word(*session);
    }
    if (!made.ok()) {
        remove(*session);
        return made.error();
    }
    return session;
}

// Makes our consumer word, and room for the peer's.
Status Peers::give_word(Session& session) {
    constexpr std::uint32_t kBytes = sizeof(RawConsumerWord);
    session.word_memory = pool_.allocate(kWordBytes);
    if (!session.word_memory.valid()) {
        return Error{"there is no memory for a session's words", "give the pool more"};
    }
    const std::span<std::uint8_t> words = session.word_memory.span();
    std::fill(words.begin(), words.end(), std::uint8_t{0});
    auto word = device_.register_memory(*session.pd, words.first(kBytes), verbs::Right::RemoteRead, 0);
    auto read = device_.register_memory(*session.pd, words.subspan(kBytes), verbs::Right::LocalWrite, 0);
    if (!word.ok() || !read.ok()) {
        return word.ok() ? read.error() : word.error();
    }
    session.late = std::make_unique<SessionLateAnswers>();
    session.word = std::move(word).value();
    session.read_word = std::move(read).value();
    return Nothing{};
}

std::span<const std::uint8_t> Peers::hello_of(const rpc::LinkedSession& linked) {
    const auto& session = static_cast<const Session&>(linked);
    const Hello hello{config_.ring_bytes,
                      config_.receives,
                      session.own->address(),
                      session.own->rkey(),
                      config_.message_bytes_max,
                      config_.flow,
                      session.word ? session.word->rkey() : Rkey{},
                      longest_mirror_of(config_)};
    hello.emit(hello_);
    return {reinterpret_cast<const std::uint8_t*>(&hello_), sizeof(hello_)};
}

bool Peers::welcomes(const cm::PrivateBytes& said) {
    const std::optional<Hello> peer = hello_in(said);
    return peer && peer->flow == config_.flow;
}

bool Peers::greet(rpc::LinkedSession& linked, const cm::PrivateBytes& said) {
    const std::optional<Hello> peer = hello_in(said);
    of(linked).peer = peer.value_or(Hello{});
    return peer && peer->flow == config_.flow;
}

// Each end uses as much of the other's ring as it is willing to write to, and says so.
Status Peers::open_rings(Session& session) {
    const Hello& peer = session.peer;
    const std::uint32_t own_bytes = std::min(config_.ring_bytes, peer.mirror_bytes);
    const std::uint32_t mirror_bytes = std::min(peer.ring_bytes, longest_mirror_of(config_));
    Status made = give_memory(*session.pd, session.mirror_memory, session.mirror, mirror_bytes, verbs::Rights{});
    if (!made.ok()) {
        return made;
    }
    session.rings.emplace(session.own_memory.span().first(own_bytes), session.mirror_memory.span(), config_.receives,
                          peer.receives, config_.flow);
    server_.expect(requests_most(session));
    return Nothing{};
}

bool Peers::open(rpc::LinkedSession& linked, Instant /*now*/) {
    Session& session = of(linked);
    return session.rings || open_rings(session).ok();
}

// A connector with many connections reports some of them a turn later.
bool Peers::meet(Session& session) {
    return session.rings || (!session.ours && open_rings(session).ok());
}

// A peer that has not heard of the end may still use lent memory. It gets no answer, so that it does not take the end
// for a breach.
void Peers::stop(rpc::LinkedSession& linked, CallStatus status, Instant now) {
    Session& session = of(linked);
    server_.forget(session);
    const bool opened = one_sided_.fail(session, status, now);
    const bool lent = client_.fail_calls(session, status, now);
    if ((opened || lent) && session.qp != nullptr) {
        (void)session.qp->modify(verbs::QpState::Err);
    }
}

void Peers::remove(rpc::LinkedSession& linked) {
    Session& session = of(linked);
    if (session.rings) {
        client_.end_tickets(session);
        server_.forget(session);  // if its connection was met and given up, or its endpoint ends
        server_.expect(-std::int64_t{requests_most(session)});
    }
    session.rings.reset();
    session.qp.reset();
    session.one_sided.reset();
    session.own.reset();
    session.mirror.reset();
    session.word.reset();
    session.read_word.reset();
    session.pd.reset();
    pool_.release(session.own_memory);
    pool_.release(session.mirror_memory);
    pool_.release(session.word_memory);
    sessions_.remove(session);
}

}  // namespace cairn::copyrpc
