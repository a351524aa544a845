// The connection manager of one host. It connects and disconnects queue pairs of two hosts by management datagrams
// between their queue pairs 1 (IBTA vol. 1, chapter 12; annex A11).
#pragma once

#include <optional>
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

// The manager does no I/O, reads no clock and draws no random numbers. Datagrams and calls of users go in; datagrams
// and events come out. Its driver sends the datagrams of poll_transmit(), carries out the events of poll_event(), and
// calls on_timeout() at next_deadline(). It belongs to one thread. The configuration bounds its memory for any input of
// peers, as long as events are polled.
//
// The end that asks for a connection calls connect(), gets Replied and calls ready(). The other end gets Requested,
// calls accept() and gets Established. To end it, one end calls disconnect(). The other end gets DisconnectRequested
// and calls disconnect(); the first end then gets Disconnected. Released is the last event at each end. Rejected and
// Unreachable report failures.
class Manager {
public:
    explicit Manager(const Config& config);
    Manager(const Manager&) = delete;
    Manager& operator=(const Manager&) = delete;

    // Takes the payload of a datagram that came to our queue pair 1.
    void on_mad(const Route& route, std::span<const std::uint8_t> bytes, Instant now);
    // Does the work that is due by `now`.
    void on_timeout(Instant now);

    [[nodiscard]] std::optional<OutMad> poll_transmit() { return outbox_.pop(); }
    // Returns the next event with its user: the user that listens, connects or asks.
    [[nodiscard]] std::optional<AddressedEvent> poll_addressed();
    [[nodiscard]] std::optional<Event> poll_event() {
        const std::optional<AddressedEvent> next = poll_addressed();
        return next ? std::optional(next->event) : std::nullopt;
    }
    // Ends a user: its services lose their listener, its connections are abandoned.
    void forget(const User& user, Instant now);
    // Returns when on_timeout() is due. The result changes with every call of another function.
    [[nodiscard]] Instant next_deadline() const noexcept;

    // Turns requests for `service` that come to `local` into events; an unspecified `local` means any address. The
    // backlog counts requests that are not answered or not established. If it is full, a further request may take the
    // place of the oldest request of the host that has most of them. It does so if its sender has fewer, or if that
    // host had time to answer. Other requests are ignored: their senders ask again for a while, whereas a refusal would
    // fail each of them in a burst.
    [[nodiscard]] std::optional<CallRefusal> listen(wire::ServiceId service, std::uint32_t backlog,
                                                    const net::IpAddress& local = {}, User* user = nullptr);
    [[nodiscard]] std::optional<CallRefusal> unlisten(wire::ServiceId service, const net::IpAddress& local = {});

    [[nodiscard]] Parsed<ConnectionId, CallRefusal> connect(const ConnectRequest& request, Instant now,
                                                            User* user = nullptr);
    // Establishes the connection, after Replied, when the queue pair is in RTS. `private_data` has at most 224 bytes.
    [[nodiscard]] std::optional<CallRefusal> ready(ConnectionId id, std::span<const std::uint8_t> private_data,
                                                   Instant now);
    // Accepts the request, after Requested, when the queue pair is in RTR.
    [[nodiscard]] std::optional<CallRefusal> accept(ConnectionId id, const AcceptParameters& accepted, Instant now);
    // Reports that a packet of the peer came on an accepted connection. The connection is then established, whether the
    // peer's RTU comes or not.
    [[nodiscard]] std::optional<CallRefusal> established(ConnectionId id);
    // Refuses the connection, after Requested or Replied and before it is established.
    [[nodiscard]] std::optional<CallRefusal> reject(ConnectionId id, const Refusal& refusal, Instant now);
    // Reports to the peer, after Requested or Replied, that the answer takes up to `service_timeout`. The manager does
    // so by itself, with the configured time, if the user takes long. `private_data` has at most 222 bytes.
    [[nodiscard]] std::optional<CallRefusal> ask_for_time(ConnectionId id, wire::CmTimeout service_timeout,
                                                          std::span<const std::uint8_t> private_data);
    // Ends an established connection, or answers DisconnectRequested. `private_data` has at most 220 bytes, after
    // DisconnectRequested 224.
    [[nodiscard]] std::optional<CallRefusal> disconnect(ConnectionId id, std::span<const std::uint8_t> private_data,
                                                        Instant now);
    // Ends the connection in the way that its state demands. No event of it comes any more. `parting` is for a request
    // that was not answered: an ignored one is treated like one beyond a full backlog.
    [[nodiscard]] std::optional<CallRefusal> abandon(ConnectionId id, Instant now, Parting parting = Parting::Refuses);

    [[nodiscard]] Datagrams& datagrams() noexcept { return datagrams_; }
    // Returns nullptr if there is no such connection or only events of it are left.
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

    // Takes a message; there is one function for each kind.
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
    // Does the work that does not need the message's fields. The caller carries out the Take verdicts.
    Verdict apply(Connection& connection, Message message, Instant now);
    [[nodiscard]] Connection* find_by_refusal(const Incoming& in, const wire::CommIds& ids);
    [[nodiscard]] bool make_room(const Incoming& in, Listener& listener);
    [[nodiscard]] std::optional<ConnectionId> who_gives_way(const ConnectionShares& shares, const Incoming& in);
    void give_way(Connection& connection, Instant now);
    // Asks a peer that seems to have forgotten the connection if it still has it.
    void ask_whether_it_lives(const Connection& connection);
    void refuse(const Incoming& in, const wire::CommIds& ids, wire::Answered message, wire::RejectReason reason);
    void echo_drep(const Incoming& in, const wire::Dreq& dreq);

    // Sends the message. A peer that is not proven gets only as many messages as its allowance permits.
    void transmit(Connection& connection, const wire::MadBytes& bytes);
    // Sends the message and keeps it. It answers messages of the kind `answers`, if any, and is sent again for their
    // copies.
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
    // Marks the peer as proven: it sent something that only a receiver of our messages can know.
    void prove(Connection& connection);
    void leave_strangers(Connection& connection);
    void enter_time_wait(Connection& connection, Instant now, Duration at_least = {});
    void finish(Connection& connection);
    void remove(Connection& connection);
    [[nodiscard]] Connection* find_live(ConnectionId id) noexcept;

    Config config_;
    SecretNumbers numbers_;  // for names and transactions
    Outbox outbox_;
    EventQueue events_;
    ConnectionTable table_;
    ConnectionShares strangers_;  // passive connections whose peers are not proven
    ServiceMap<Listener> listeners_;
    Deadlines<ConnectionId> deadlines_;
    telemetry::CounterSet<Counter> counters_;
    telemetry::CounterSet<wire::MadDrop> mad_drops_;
    Datagrams datagrams_;
    std::uint32_t last_listener_ = 0;
};

}  // namespace cairn::cm
