// The connection manager of one host: brings queue pairs of two hosts together and apart by management datagrams
// between their queue pairs 1 (IBTA vol. 1, chapter 12; annex A11).
#pragma once

#include <span>

#include "lib/base/parsed.hpp"
#include "lib/cm/connection_table.hpp"
#include "lib/cm/counters.hpp"
#include "lib/cm/datagrams.hpp"
#include "lib/cm/deadlines.hpp"
#include "lib/cm/event_queue.hpp"
#include "lib/cm/outbox.hpp"
#include "lib/cm/service_map.hpp"
#include "lib/wire/cm_message.hpp"

namespace cairn::cm {

// No I/O, no clock, no chance: datagrams and user calls in, datagrams and events out; whoever drives it sends what
// poll_transmit() has, carries out what poll_event() says, and comes back at next_deadline(). One thread. Memory is
// bounded by the configuration whatever peers send, as long as events are polled.
//
// A connection that both ends want goes, at the end that asks: connect(), Replied, ready(); at the other: Requested,
// accept(), Established. It ends by disconnect() at one end, DisconnectRequested and disconnect() at the other; at the
// first Disconnected follows. Released is the last event of each, Rejected or Unreachable come when things go wrong.
class Manager {
public:
    explicit Manager(const Config& config);
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;

    // The payload of a datagram that came to our queue pair 1.
    void on_mad(const Route& route, std::span<const std::uint8_t> bytes, Instant now);
    // Whatever is due by `now`.
    void on_timeout(Instant now);

    [[nodiscard]] std::optional<OutMad> poll_transmit() { return outbox_.pop(); }
    // With the user that it is for: who listens, connects or asks.
    [[nodiscard]] std::optional<AddressedEvent> poll_addressed();
    [[nodiscard]] std::optional<Event> poll_event() {
        const std::optional<AddressedEvent> next = poll_addressed();
        return next ? std::optional(next->event) : std::nullopt;
    }
    // The user ends: nobody listens for it any more, its connections are abandoned.
    void forget(const User& user, Instant now);
    // Changes with every call of anything else.
    [[nodiscard]] Instant next_deadline() const noexcept;

    // Requests for `service` that come to `local`, or to any address when it is unspecified, become events. When
    // `backlog` of them are neither answered nor established, a further one takes the place of the oldest of the host
    // that has most of them, if its sender has fewer or that host had time to answer. Others are not looked at: their
    // senders ask again after a while, as long as it takes, whereas a refusal would fail them for a burst.
    [[nodiscard]] CallStatus listen(wire::ServiceId service, std::uint32_t backlog, const net::IpAddress& local = {},
                                    User* user = nullptr);
    CallStatus unlisten(wire::ServiceId service, const net::IpAddress& local = {});

    [[nodiscard]] Parsed<ConnectionId, CallStatus> connect(const ConnectRequest& request, Instant now,
                                                           User* user = nullptr);
    // After Replied: the queue pair is in RTS, the connection is established.
    // 224 bytes at most.
    [[nodiscard]] CallStatus ready(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now);
    // After Requested: the queue pair is in RTR.
    [[nodiscard]] CallStatus accept(ConnectionId id, const AcceptParameters& accepted, Instant now);
    // A packet of the peer came for an accepted connection: it is established, whether the peer's word comes or not.
    [[nodiscard]] CallStatus established(ConnectionId id);
    // After Requested or Replied, until it is established.
    [[nodiscard]] CallStatus reject(ConnectionId id, const Refusal& refusal, Instant now);
    // After Requested or Replied: the answer takes up to `service_timeout`. Done unasked with the configured one when
    // the user takes long. 222 bytes at most.
    [[nodiscard]] CallStatus ask_for_time(ConnectionId id, wire::CmTimeout service_timeout,
                                          std::span<const std::uint8_t> private_data);
    // Of an established connection, or after DisconnectRequested. 220 bytes at most, after DisconnectRequested 224.
    [[nodiscard]] CallStatus disconnect(ConnectionId id, std::span<const std::uint8_t> private_data, Instant now);
    // Ends whatever it is in the way its state wants; no event of it comes any more.
    CallStatus abandon(ConnectionId id, Instant now);

    [[nodiscard]] Datagrams& datagrams() noexcept { return datagrams_; }
    // nullptr: no such connection, or only events of it are left.
    [[nodiscard]] const Connection* find(ConnectionId id) noexcept;
    [[nodiscard]] std::uint32_t connections() const noexcept { return table_.size(); }
    [[nodiscard]] const telemetry::CounterSet<Counter>& counters() const noexcept { return counters_; }
    [[nodiscard]] const telemetry::CounterSet<wire::MadDrop>& mad_drops() const noexcept { return mad_drops_; }

private:
    struct Listener {
        std::uint32_t serial = 0;
        std::uint32_t backlog = 0;
        User* user = nullptr;
        ConnectionShares waiting{};
    };
    struct Incoming {
        const Route& route;
        std::uint64_t transaction;
        Instant now;
    };

    // One message of each kind.
    void receive(const Incoming& in, const wire::Req& req);
    void receive(const Incoming& in, const wire::Mra& mra);
    void receive(const Incoming& in, const wire::Rej& rej);
    void receive(const Incoming& in, const wire::Rep& rep);
    void receive(const Incoming& in, const wire::Rtu& rtu);
    void receive(const Incoming& in, const wire::Dreq& dreq);
    void receive(const Incoming& in, const wire::Drep& drep);
    void receive(const Incoming& in, const wire::SidrReq& req);
    void receive(const Incoming& in, const wire::SidrRep& rep);
    void receive(const Incoming& in, const wire::Lap& lap);
    void receive(const Incoming& in, const wire::Apr& apr);

    void admit(const Incoming& in, const wire::Req& req);
    void add_request(const Incoming& in, const wire::Req& req, Listener& listener);
    void take_rep(const Incoming& in, const wire::Rep& rep, Connection& connection);
    void take_rej(const wire::Rej& rej, Connection& connection, Instant now);
    [[nodiscard]] Connection* find_by_ids(const Incoming& in, const wire::CommIds& ids);
    // Does what needs nothing of the message; the Take verdicts are the caller's.
    Verdict apply(Connection& connection, Message message, Instant now);
    [[nodiscard]] Connection* find_by_refusal(const Incoming& in, const wire::CommIds& ids);
    [[nodiscard]] bool make_room(const Incoming& in, Listener& listener);
    [[nodiscard]] std::optional<ConnectionId> who_gives_way(const ConnectionShares& shares, const Incoming& in);
    void give_way(Connection& connection, Instant now);
    // The peer seems to have forgotten the connection.
    void ask_whether_it_lives(const Connection& connection);
    void refuse(const Incoming& in, const wire::CommIds& ids, wire::Answered message, wire::RejectReason reason);
    void echo_drep(const Incoming& in, const wire::Dreq& dreq);

    // Of what a peer that is not proven has been sent, as much as it may be.
    void transmit(Connection& connection, const wire::MadBytes& bytes);
    // Sends and keeps it; it answers messages of the kind `answers`, if any, whenever they come again.
    void send(Connection& connection, std::uint64_t transaction, const wire::CmMessage& message,
              std::optional<Message> answers);
    void send_mra(Connection& connection, wire::CmTimeout service_timeout, std::span<const std::uint8_t> data);
    void reject_request(Connection& connection, const Refusal& refusal, Instant now);
    void send_timeout_rej(Connection& connection);
    void start_disconnect(Connection& connection, std::span<const std::uint8_t> private_data, Instant now);
    void answer_dreq(Connection& connection, std::span<const std::uint8_t> private_data, Instant now);

    void on_due(Connection& connection, Instant now);
    void give_up(Connection& connection, Instant now);
    void wait_for_answer(Connection& connection, Instant now);
    void arm(Connection& connection, Instant when) { deadlines_.set(connection.id, connection.deadline, when); }
    void emit(const Connection& connection, const Event& event);
    void leave_backlog(Connection& connection);
    void establish(Connection& connection);
    // The peer said what nobody can say who does not get our messages.
    void prove(Connection& connection);
    void leave_strangers(Connection& connection);
    void enter_time_wait(Connection& connection, Instant now, Duration at_least = {});
    void finish(Connection& connection);
    void remove(Connection& connection);
    [[nodiscard]] Connection* find_live(ConnectionId id) noexcept;

    Config config_;
    SecretNumbers numbers_;  // names and transactions
    Outbox outbox_;
    EventQueue events_;
    ConnectionTable table_;
    ConnectionShares strangers_;  // passive ones whose peers are not proven
    ServiceMap<Listener> listeners_;
    Deadlines<ConnectionId> deadlines_;
    telemetry::CounterSet<Counter> counters_;
    telemetry::CounterSet<wire::MadDrop> mad_drops_;
    Datagrams datagrams_;
    std::uint32_t last_listener_ = 0;
};

}  // namespace cairn::cm
