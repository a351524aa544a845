// How clients are added and removed.
#include "rpc/scalerpc/slices.hpp"

#include <algorithm>

namespace cairn::scalerpc {

namespace {

// Without groups all clients are in one group, whose slice never ends.
GroupConfig group_config(const EndpointConfig& config) noexcept {
    GroupConfig groups = config.groups;
    groups.by_priority = config.features.priority;
    if (!config.features.grouping) {
        groups.size = config.sessions_max;
    }
    if (config.slice_clock != nullptr) {
        groups.cohorts = config.slice_clock->config().cohorts;
        groups.slice = config.slice_clock->config().slice;
    }
    return groups;
}

}  // namespace

Slices::Slices(const EndpointConfig& config, Sessions& sessions, Server& server, Statistics& statistics)
    : config_(config), sessions_(sessions), server_(server), statistics_(statistics), groups_(group_config(config)) {
    slice_.length = slice_.usual = config.groups.slice;
    if (config.slice_clock != nullptr) {
        slice_.length = Duration{};  // the first slice belongs to the first client
    }
    slice_.shares.reserve(config.sessions_max);
}

Status Slices::open(verbs::Device& device, verbs::Pd& pd, rpc::MsgPool& pool) {
    device_ = &device;
    pd_ = &pd;
    auto pools = Pools::create(config_, device, pd, pool);
    if (!pools.ok()) {
        return pools.error();
    }
    pools_ = std::move(pools).value();
    return entries_.open(config_.sessions_max, device, pd, pool);
}

void Slices::close() noexcept {
    entries_.close();
    pools_.reset();
}

// Opens a client's entry to it. The welcome has the key.
bool Slices::add(Session& session, Instant now) {
    auto made = device_->create_window(*pd_, verbs::WindowType::Type2B);
    if (!made.ok() || !groups_.add(session.id, session.peer.cohort)) {
        return false;
    }
    server_.answers().tell(session, entries_.open_to(session, std::move(made).value()));
    serve_all_if_alone();
    if (!config_.features.grouping && !config_.features.warmup && pools_->take_berth(slice_.pool, session)) {
        become(session, GuestState::Fetched);
        Broken nobody;
        start(session, now, nobody);
    }
    return true;
}

// Removes a client. READs into its blocks must not complete later. Its slot is cleared, so the next client finds
// neither requests nor parts of them.
void Slices::remove(Session& session) {
    Guest& guest = *session.guest;
    if (guest.state == GuestState::Fetching) {
        (void)session.qp->modify(verbs::QpState::Err);
    }
    guest.window.reset();
    guest.entry_window.reset();
    pools_->wipe(guest);
    leave(session);
    groups_.remove(session.id);
    std::erase(next_.served, session.id);
    serve_all_if_alone();
}

// With one group there is no switch: serves all of its members. Members whose requests lie in the other pool must ask
// again.
void Slices::serve_all_if_alone() {
    if (groups_.size() != 1 || next_.warming) {
        return;
    }
    pools_->forget_late_hosts();  // each client has a slot, which it never leaves
    serve(groups_[0].members);
    const std::vector<Session*> others = pools_->tenants(pools_->other(slice_.pool));
    for (Session* const session : others) {
        if (session->guest->state == GuestState::Fetched && session->guest->berth->pool != slice_.pool) {
            leave(*session);
        }
    }
}

// Gives the slice to these members. Some of them may have asked before.
void Slices::serve(std::span<const SessionId> members) noexcept {
    for (const SessionId id : members) {
        Session* const session = sessions_.find(id);
        if (session == nullptr || !session->guest || session->guest->served == slice_.number) {
            continue;
        }
        session->guest->served = slice_.number;
        if (session->guest->state != GuestState::Fetched) {
            sessions_.note_written(*session);
            looks_again_ = true;
        }
    }
}

Instant Slices::next_deadline() const noexcept {
    if (looks_again_) {
        return Instant{};
    }
    const bool waits = (groups_.size() > 1 && !nobody_waits_) || next_.warming;
    return waits ? next_step_ : Instant::never();
}

}  // namespace cairn::scalerpc
