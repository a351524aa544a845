// Services over datagrams: who serves what with which queue pair and Q_Key (SIDR; IBTA vol. 1, 12.11).
#pragma once

#include <map>
#include <utility>

#include "lib/base/parsed.hpp"
#include "lib/base/secret_numbers.hpp"
#include "lib/cm/counters.hpp"
#include "lib/cm/deadlines.hpp"
#include "lib/cm/event_queue.hpp"
#include "lib/cm/outbox.hpp"
#include "lib/cm/service_map.hpp"
#include "lib/net/shares.hpp"

namespace cairn::cm {

// A part of the Manager, which feeds it. A service with a standing answer costs nothing per request; requests for
// others wait for answer(), and what was answered is kept for a while for requests that come again.
class Datagrams {
public:
    Datagrams(const Config& config, SecretNumbers& numbers, Outbox& outbox, EventQueue& events,
              telemetry::CounterSet<Counter>& counters);

    // `standing`: what everybody is told, its private data copied. Nothing: each request is an event. `local`: one of
    // our addresses, or unspecified for all.
    [[nodiscard]] CallStatus listen(wire::ServiceId service, const net::IpAddress& local,
                                    const std::optional<DatagramService>& standing, User* user = nullptr);
    CallStatus unlisten(wire::ServiceId service, const net::IpAddress& local);
    // Of a DatagramRequested. `service` counts when the status is Valid.
    [[nodiscard]] CallStatus answer(DatagramId id, wire::SidrStatus status, const DatagramService& service,
                                    Instant now);

    // A Resolved comes, unless it is cancelled.
    [[nodiscard]] Parsed<DatagramId, CallStatus> resolve(const ResolveRequest& request, Instant now,
                                                         User* user = nullptr);
    CallStatus cancel(DatagramId id);
    // Nobody listens or asks for the user any more.
    void forget(const User& user);

    void on_request(const Route& route, std::uint64_t transaction, const wire::SidrReq& req);
    void on_reply(const Route& route, const wire::SidrRep& rep);
    void on_timeout(Instant now);
    [[nodiscard]] Instant next_deadline() const noexcept {
        return std::min(query_due_.earliest(), forget_due_.earliest());
    }

private:
    struct Listener {
        bool has_standing = false;
        Qpn qpn{};
        Qkey qkey{};
        PrivateBytes private_data{};
        User* user = nullptr;
    };
    // One of ours that waits for an answer.
    struct Query {
        Route route{};
        User* user = nullptr;
        wire::ServiceId service{};
        wire::MadBytes message{};
        std::uint8_t retries_left = 0;
        Instant deadline = Instant::never();
    };
    using AskedKey = std::pair<net::IpAddress, wire::SidrRequestId>;
    // One of a peer.
    struct Asked {
        DatagramId id{};
        Route route{};
        std::uint64_t transaction = 0;
        wire::ServiceId service{};
        const User* user = nullptr;
        bool answered = false;
        wire::MadBytes answer{};
        Instant deadline = Instant::never();  // of an answered one, when it is forgotten
        net::Shares<DatagramId>::Ticket ticket = 0;
    };

    [[nodiscard]] DatagramId next_id();
    [[nodiscard]] bool make_room(const net::IpAddress& peer);
    void forget(std::map<AskedKey, Asked>::iterator asked);
    void on_query_due(DatagramId id, Query& query, Instant now);
    // Whether the request is one that came before; then all is done.
    [[nodiscard]] bool take_duplicate(const AskedKey& key, std::uint64_t transaction, const wire::SidrReq& req);

    const Config& config_;
    SecretNumbers& numbers_;
    Outbox& outbox_;
    EventQueue& events_;
    telemetry::CounterSet<Counter>& counters_;
    ServiceMap<Listener> listeners_;
    std::map<DatagramId, Query> queries_;
    std::map<AskedKey, Asked> asked_;
    std::map<DatagramId, AskedKey> asked_by_id_;
    net::Shares<DatagramId> asked_shares_;
    Deadlines<DatagramId> query_due_;
    Deadlines<DatagramId> forget_due_;  // answered ones of peers
};

}  // namespace cairn::cm
