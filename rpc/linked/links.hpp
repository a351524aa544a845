// The connections of an endpoint: how they begin and end. The RPC system defines the parts of a session.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/verbs/connector.hpp"
#include "rpc/common/call.hpp"
#include "rpc/common/host_shares.hpp"
#include "rpc/linked/link_counters.hpp"
#include "rpc/linked/linked_session.hpp"

namespace cairn::rpc {

enum class LinkEvent : std::uint8_t { Connected, Refused, Disconnected, PeerLost };
// Called on the endpoint's thread for events of sessions that connect() began, or that peers began.
using LinkCallback = void (*)(void* context, SessionId session, LinkEvent event);

// The RPC system's part in its links.
class LinkOwner {
public:
    // Makes a session with a queue pair in RESET. Errors: all are in use; no memory.
    [[nodiscard]] virtual Result<LinkedSession*> make(bool ours) = 0;
    // Returns the greeting that this end sends to its peer in REQ or REP.
    [[nodiscard]] virtual std::span<const std::uint8_t> hello_of(const LinkedSession& session) = 0;
    // Returns true if a peer with this greeting may connect.
    [[nodiscard]] virtual bool welcomes(const cm::PrivateBytes& said) = 0;
    // Takes the peer's greeting, from the REP for a session of ours, else from its REQ. Returns false if the session
    // cannot be opened.
    [[nodiscard]] virtual bool greet(LinkedSession& session, const cm::PrivateBytes& said) = 0;
    // Opens a session whose connection is established. Returns false if the session cannot be opened.
    [[nodiscard]] virtual bool open(LinkedSession& session, Instant now) = 0;
    // Ends the session's calls and requests. The session takes no more calls.
    virtual void stop(LinkedSession& session, CallStatus status, Instant now) = 0;
    // Removes a session. It may not have been stopped, if its connection was given up for another, or its endpoint
    // ends.
    virtual void remove(LinkedSession& session) = 0;
    // Lets the session be found by its connection and its queue pair from now on.
    virtual void name(LinkedSession& session) = 0;
    [[nodiscard]] virtual LinkedSession* of_connection(verbs::ConnectionId id) = 0;
    [[nodiscard]] virtual LinkedSession* find(SessionId id) = 0;
    virtual void for_each(const std::function<void(LinkedSession&)>& run) = 0;
    // Notes that the session has something to do in another turn.
    virtual void list(LinkedSession& session) = 0;

protected:
    ~LinkOwner() = default;
};

struct LinkConfig {
    verbs::Rights access{};  // the peer's
    std::uint32_t path_mtu_bytes = 1024;
    std::uint16_t sessions_max = 0;
    std::uint16_t own_sessions = 0;  // sessions that are kept for connect(); peers that connect can have the others
    // How many of the others one host may hold; 0: three times as many as are free.
    std::uint16_t host_sessions_max = 0;
};

class Links {
public:
    // Makes the object. All references outlive it.
    Links(const LinkConfig& config, verbs::Device& device, connections::Home& home, LinkOwner& owner,
          LinkCounters& counters);
    // end_all() has removed the owner's sessions.
    ~Links() = default;
    Links(const Links&) = delete;
    Links& operator=(const Links&) = delete;
    // Begins the endpoint's end: from now on no session begins, and no session takes a call.
    void take_no_more();
    // Gives up all connections, and removes the sessions. Callbacks do not run: the endpoint ends.
    void end_all();

    void set_callback(LinkCallback callback, void* context) noexcept { own_ = {callback, context}; }
    // Sets a callback for sessions that peers began. It gets Connected once a session is open, and then the session's
    // end, unless this end ends it.
    void set_guest_callback(LinkCallback callback, void* context) noexcept { guests_ = {callback, context}; }
    Status listen(std::uint16_t port);
    // Begins a session. Returns its id.
    Result<SessionId> connect(const net::IpAddress& remote, std::uint16_t port, Instant now);
    // Ends a session; its calls fail with Disconnected.
    void end(LinkedSession& session, Instant now);
    // Ends a session whose queue pair failed, or whose peer broke a rule or is silent.
    void lose(LinkedSession& session, Instant now);
    // Handles events of the connector. Returns true if there were any. `serves`: peers may connect.
    bool poll_events(bool serves, Instant now);

private:
    [[nodiscard]] LinkedSession* who_gives_way(const net::IpAddress& newcomer, bool of_guests);
    bool displace(const net::IpAddress& newcomer, bool of_guests, Instant now);
    [[nodiscard]] bool has_room_for_guests() const noexcept;
    [[nodiscard]] bool may_hold_another(const net::IpAddress& host, std::size_t asked = 0) const;
    [[nodiscard]] bool may_ask(const net::IpAddress& host, bool has_room, Instant now);
    bool admit(const cm::Requested& requested, Instant now);
    void on_requested(const cm::Requested& requested, bool serves, Instant now);
    void on_established(const cm::Established& established, Instant now);
    void on_ended(verbs::ConnectionId id, LinkEvent event, telemetry::Counter& reason, Instant now);
    void on_silent(verbs::ConnectionId id, Instant now);
    void hang_up(LinkedSession& session, Instant now);
    void remove_left();
    void leave(LinkedSession& session);
    void remove(LinkedSession& session);
    [[nodiscard]] verbs::ConnectionChoice choice_of(const LinkedSession& session);
    void tell(const LinkedSession& session, LinkEvent event) const;

    const LinkConfig config_;
    verbs::Device& device_;
    verbs::Connector connector_;
    LinkOwner& owner_;
    LinkCounters& counters_;
    std::vector<SessionId> left_;  // sessions to remove; they have no connection any more
    std::size_t sessions_ = 0;     // all sessions, those in the next two counts included
    std::size_t ours_ = 0;
    std::size_t guests_open_ = 0;  // open sessions that peers began; their hosts hold shares
    HostShares shares_;
    HostShares asked_;  // sessions that peers asked for and have not confirmed
    struct Listener {
        LinkCallback callback = nullptr;
        void* context = nullptr;
    };
    bool ended_ = false;
    Listener own_{};
    Listener guests_{};
};

}  // namespace cairn::rpc
