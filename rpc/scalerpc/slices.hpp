// The slices of a server: whose turn it is, what is read for the next one, and the switch between them (ScaleRPC 3.2 to
// 3.4).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rpc/scalerpc/entries.hpp"
#include "rpc/scalerpc/groups.hpp"
#include "rpc/scalerpc/pools.hpp"
#include "rpc/scalerpc/server.hpp"
#include "rpc/scalerpc/slice.hpp"

namespace cairn::scalerpc {

class Slices {
public:
    using Broken = std::vector<std::pair<Session*, Breach>>;

    // All references outlive the object.
    Slices(const EndpointConfig& config, Sessions& sessions, Server& server, Statistics& statistics);
    // Takes the memory of pools and entries. Errors: no memory; the device has no room.
    Status open(verbs::Device& device, verbs::Pd& pd, rpc::MsgPool& pool);
    void close() noexcept;

    // Adds a client whose connection is open. Returns false if the device has no room for its windows.
    [[nodiscard]] bool add(Session& session, Instant now);
    // Removes a client whose connection ends. Its peer cannot write to its blocks any more.
    void remove(Session& session);
    // Looks at what the session's client has written: requests, or its entry. Adds sessions whose clients break a rule
    // to `broken`. Returns true if there was something.
    bool look_at(Session& session, Instant now, Broken& broken);
    // Switches slices when that is due. Returns true if it did.
    bool on_turn(Instant now, Broken& broken);
    // Notes that a READ of a session's requests is complete.
    void on_fetched(Session& session, Instant now, Broken& broken);

    [[nodiscard]] Instant next_deadline() const noexcept;
    [[nodiscard]] const Groups& groups() const noexcept { return groups_; }
    [[nodiscard]] const Pools& pools() const noexcept { return *pools_; }
    [[nodiscard]] const Slice& slice() const noexcept { return slice_; }

private:
    bool take_requests(Session& session, Instant now, Broken& broken);
    void take_fetched(Session& session, Instant now, Broken& broken);
    void look_whether_left(Session& session, Instant now);
    void end_keys_of_the_late(Instant now);
    void become(Session& session, GuestState state) noexcept;
    void serve(std::span<const SessionId> members) noexcept;
    [[nodiscard]] bool has_work(const Session& session) const noexcept;
    enum class When : std::uint8_t { Now, Next };
    bool admit(Session& session, When when, Instant now, Broken& broken);
    void start(Session& session, Instant now, Broken& broken);
    [[nodiscard]] bool has_work(const Groups::Group& group) const noexcept;
    [[nodiscard]] std::size_t next_cohort(Instant now);
    void warm(Instant now, Broken& broken);
    void close(Instant now);
    void switch_over(Instant now, Broken& broken);
    void send_away(Session& session, Instant now);
    void leave(Session& session) noexcept;
    void serve_all_if_alone();
    [[nodiscard]] SliceView view(Instant now) const noexcept;

    const EndpointConfig& config_;
    Sessions& sessions_;
    Server& server_;
    Statistics& statistics_;
    Groups groups_;
    Entries entries_;
    std::unique_ptr<Pools> pools_;  // set by open()
    verbs::Device* device_ = nullptr;
    verbs::Pd* pd_ = nullptr;
    Slice slice_{};
    NextSlice next_{};
    Patience patience_{};
    Census census_{};
    Instant last_turn_{};
    Instant next_late_{};        // when the next leaving client is late
    Instant next_step_{};        // when to look at the slice again
    bool nobody_waits_ = false;  // true while no client has unseen work
    bool looks_again_ = false;   // looks at clients that may have asked before
};

}  // namespace cairn::scalerpc
