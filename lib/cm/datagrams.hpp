// Services over datagrams: which queue pair and Q_Key serve a service (SIDR; IBTA vol. 1, 12.11).
#pragma once

#include <map>
#include <optional>
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

// A part of the Manager, which feeds it. A service with a standing answer keeps nothing per request. Other requests
// wait for answer(). Their answers are kept for a while, for copies of the request.
class Datagrams {
public:
    Datagrams(const Config& config, SecretNumbers& numbers, Outbox& outbox, EventQueue& events,
              telemetry::CounterSet<Counter>& counters);

    // Listens to a service. `standing` is the answer to every request; its private data are copied. Without it each
    // request becomes an event. `local` is one of our addresses, or unspecified for all of them.
    [[nodiscard]] std::optional<CallRefusal> listen(wire::ServiceId service, const net::IpAddress& local,
                                                    const std::optional<DatagramService>& standing,
                                                    User* user = nullptr);
    [[nodiscard]] std::optional<CallRefusal> unlisten(wire::ServiceId service, const net::IpAddress& local);
    // Answers a DatagramRequested. `service` is used if the status is Valid.
    [[nodiscard]] std::optional<CallRefusal> answer(DatagramId id, wire::SidrStatus status,
                                                    const DatagramService& service, Instant now);

    // Drops a DatagramRequested for which the user has no room. It counts as not received, and its sender asks again.
    void ignore(DatagramId id);

    // Asks a question. A Resolved follows, unless the question is cancelled.
    [[nodiscard]] Parsed<DatagramId, CallRefusal> resolve(const ResolveRequest& request, Instant now,
                                                          User* user = nullptr);
    [[nodiscard]] std::optional<CallRefusal> cancel(DatagramId id);
    // Ends all services and questions of the user.
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
    // A question of ours that waits for its answer.
    struct Query {
        Route route{};
        User* user = nullptr;
        wire::ServiceId service{};
        wire::MadBytes message{};
        std::uint8_t retries_left = 0;
        Instant deadline = Instant::never();
    };
    using AskedKey = std::pair<net::IpAddress, wire::SidrRequestId>;
    // A question of a peer.
    struct Asked {
        DatagramId id{};
        Route route{};
        std::uint64_t transaction = 0;
        wire::ServiceId service{};
        const User* user = nullptr;
        bool answered = false;
        wire::MadBytes answer{};
        Instant deadline = Instant::never();  // when an answered question is forgotten
        net::Shares<DatagramId>::Ticket ticket = 0;
    };

    [[nodiscard]] DatagramId next_id();
    [[nodiscard]] bool make_room(const net::IpAddress& peer);
    void forget(std::map<AskedKey, Asked>::iterator asked);
    void on_query_due(DatagramId id, Query& query, Instant now);
    // Returns true if the request is a copy of an earlier one, which needs no further work.
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
    Deadlines<DatagramId> forget_due_;  // of answered questions of peers
};

}  // namespace cairn::cm
