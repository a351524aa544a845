#include "rpc/scalerpc/peers.hpp"

#include <algorithm>
#include <utility>

namespace cairn::scalerpc {

namespace {

constexpr std::uint32_t kColours = 64;  // offsets within a page at which sessions' blocks begin
constexpr std::uint32_t kLeastSends = 16;
static_assert(sizeof(RawControl) == sizeof(RawEntry));  // both are sent inline

}  // namespace

// Sizes the queues. Small neighbours share one WRITE or READ, and a message without a slot waits for a turn.
verbs::QpCapacity qp_capacity(const EndpointConfig& config) noexcept {
    verbs::QpCapacity capacity;
    capacity.send_slots = std::max(config.shape.blocks, kLeastSends);
    capacity.receive_slots = 1;
    capacity.max_sges = 1;
    capacity.inline_bytes = sizeof(RawControl);
    capacity.reuses_slots = true;
    return capacity;
}

namespace {

// Returns the memory of either end's session: its queue pair, and in the worst case its completions.
std::size_t bytes_of_link(const EndpointConfig& config) noexcept {
    const verbs::QpCapacity capacity = qp_capacity(config);
    return sizeof(Session) + verbs::idle_qp_bytes(capacity) + (capacity.send_slots + 1) * sizeof(verbs::Completion);
}

}  // namespace

std::size_t bytes_of_guest(const EndpointConfig& config) noexcept {
    return bytes_of_link(config) + Guest::bytes_for(config.shape);
}

std::size_t bytes_of_caller(const EndpointConfig& config) noexcept {
    return bytes_of_link(config) + config.shape.blocks * sizeof(Caller::Slot) + 2 * sizeof(verbs::Mr) +
           sizeof(verbs::Pd);
}

std::uint32_t memory_of_caller(const EndpointConfig& config) noexcept {
    return Caller::memory_for(config.shape) + (config.features.colouring ? (kColours - 1) * kLineBytes : 0);
}

Peers::Peers(const EndpointConfig& config, verbs::Device& device, rpc::MsgPool& pool, Sessions& sessions,
             Client& client, Server& server, Slices& slices)
    : config_(config),
      device_(device),
      pool_(pool),
      sessions_(sessions),
      client_(client),
      server_(server),
      slices_(slices),
      guests_pd_(device.create_pd()) {}

Status Peers::open() {
    auto sends = device_.create_cq(config_.sessions_max * qp_capacity(config_).send_slots + 1);
    if (!sends.ok()) {
        return sends.error();
    }
    sends_ = std::move(sends).value();
    auto receives = device_.create_cq(config_.sessions_max + 1U);
    if (!receives.ok()) {
        return receives.error();
    }
    receives_ = std::move(receives).value();
    return Nothing{};
}

Result<rpc::LinkedSession*> Peers::make(bool ours) {
    Session* const session = sessions_.add();
    if (session == nullptr) {
        return Error{"all sessions are in use", "raise sessions_max"};
    }
    Status made = Nothing{};
    if (ours) {
        session->pd = device_.create_pd();  // of its own, so its keys open nothing to other servers
        made = give_caller_memory(*session);
    } else {
        session->guest.emplace(config_.shape, server_.answers().rooms_of(session->id), ++guests_);
    }
    if (made.ok()) {
        verbs::Pd& pd = ours ? *session->pd : *guests_pd_;
        auto qp = device_.create_qp(pd, qp_capacity(config_),
                                    {*sends_, *receives_, nullptr, sessions_.watch_writes(*session)});
        made = qp.ok() ? Status(Nothing{}) : Status(qp.error());
        session->qp = qp.ok() ? std::move(qp).value() : nullptr;
    }
    if (!made.ok()) {
        remove(*session);
        return made.error();
    }
    return session;
}

// Clears the memory, so that bytes of earlier users are not read.
Status Peers::give_caller_memory(Session& session) {
    session.memory = pool_.allocate(memory_of_caller(config_));
    if (!session.memory.valid()) {
        return Error{"there is no memory for a session's blocks", "give the pool more, or choose smaller blocks"};
    }
    std::fill(session.memory.span().begin(), session.memory.span().end(), std::uint8_t{0});
    const std::size_t shift = config_.features.colouring ? session.id.number() % kColours * kLineBytes : 0;
    session.caller.emplace(config_.shape, session.memory.span().subspan(shift, Caller::memory_for(config_.shape)));
    auto staged = device_.register_memory(*session.pd, session.caller->staged(), verbs::Right::RemoteRead, 0);
    if (!staged.ok()) {
        return staged.error();
    }
    session.staged = std::move(staged).value();
    auto answers = device_.register_memory(*session.pd, session.caller->answers(),
                                           verbs::Rights{verbs::Right::LocalWrite} | verbs::Right::RemoteWrite, 0);
    if (!answers.ok()) {
        return answers.error();
    }
    session.answers = std::move(answers).value();
    return Nothing{};
}

std::span<const std::uint8_t> Peers::hello_of(const rpc::LinkedSession& linked) {
    const auto& session = static_cast<const Session&>(linked);
    Hello hello;
    hello.shape = config_.shape;
    if (session.caller) {
        hello.cohort = config_.cohort;
        hello.staged = {session.staged->address(), session.staged->rkey()};
        hello.answers = {session.answers->address(), session.answers->rkey()};
    } else {
        hello.cohort = config_.slice_clock != nullptr || !config_.features.grouping ? 1 : 0;
    }
    hello_ = hello.raw();
    return {reinterpret_cast<const std::uint8_t*>(&hello_), sizeof(hello_)};
}

// Both ends must have blocks of one shape.
bool Peers::welcomes(const cm::PrivateBytes& said) {
    const auto hello = Hello::parse(std::span(said.octets).first(said.size));
    return hello && hello->shape == config_.shape;
}

bool Peers::greet(rpc::LinkedSession& linked, const cm::PrivateBytes& said) {
    if (!welcomes(said)) {
        return false;
    }
    of(linked).peer = *Hello::parse(std::span(said.octets).first(said.size));
    return true;
}

bool Peers::open(rpc::LinkedSession& linked, Instant now) {
    Session& session = of(linked);
    sessions_.note_written(session);  // the welcome may have come before
    if (session.caller) {
        client_.note_server(session.qp->path()->key().remote, session.peer.cohort != 0);
        return true;
    }
    return slices_.add(session, now);
}

void Peers::stop(rpc::LinkedSession& linked, CallStatus status, Instant now) {
    Session& session = of(linked);
    if (session.caller) {
        client_.fail_calls(session, status, now);
    } else {
        slices_.remove(session);
        if (server_.answers().lends(session.id)) {
            (void)session.qp->modify(verbs::QpState::Err);  // sends no answer again: others get the memory now
        }
        server_.forget(session);
    }
}

void Peers::remove(rpc::LinkedSession& linked) {
    Session& session = of(linked);
    if (session.guest) {
        slices_.remove(session);  // if its connection never opened, or was given up
        server_.forget(session);
    }
    session.qp.reset();
    session.staged.reset();
    session.answers.reset();
    session.pd.reset();
    pool_.release(session.memory);
    sessions_.remove(session);
}

}  // namespace cairn::scalerpc
