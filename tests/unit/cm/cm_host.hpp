// A host with a connection manager, for tests: each message and event of it is taken one by one, and must be the
// expected one.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/cm/manager.hpp"
#include "lib/cm/timeouts.hpp"

namespace cairn::cm {

inline const net::IpAddress kClientAddress = net::IpAddress::from_v4(0x0a4d000b);
inline const net::IpAddress kServerAddress = net::IpAddress::from_v4(0x0a4d000a);
constexpr wire::ServiceId kService{0x1234};  // no IP service

inline std::vector<std::uint8_t> octets(const std::string& text) {
    return {text.begin(), text.end()};
}

// Returns a sender's text at the front of a field of private data.
inline std::string text_of(const PrivateBytes& data) {
    const auto view = data.view();
    return {view.begin(), std::find(view.begin(), view.end(), std::uint8_t{0})};
}

class CmHost {
public:
    explicit CmHost(const net::IpAddress& address, Config config = {}) : address_(address), manager(config) {}

    [[nodiscard]] Route to(const CmHost& peer) const { return {address_, peer.address_}; }
    [[nodiscard]] const net::IpAddress& address() const { return address_; }

    // Returns the next event, which must be of this kind.
    template <class Kind>
    Kind event() {
        const std::optional<Event> event = manager.poll_event();
        if (!event || !std::holds_alternative<Kind>(*event)) {
            ADD_FAILURE() << (event ? "another event: " + std::to_string(event->index()) : "no event");
            return {};
        }
        return std::get<Kind>(*event);
    }
    [[nodiscard]] bool has_no_event() { return !manager.poll_event().has_value(); }

    // Returns the next datagram to be sent, which must hold this kind of message.
    template <class Kind>
    Kind sent() {
        const std::optional<OutMad> mad = manager.poll_transmit();
        if (!mad) {
            ADD_FAILURE() << "nothing is sent";
            return {};
        }
        last = *mad;
        const auto parsed = wire::CmMad::parse(mad->bytes);
        if (!std::holds_alternative<Kind>(parsed.value().message)) {
            ADD_FAILURE() << "another message: " << parsed.value().message.index();
            return {};
        }
        return std::get<Kind>(parsed.value().message);
    }
    [[nodiscard]] bool sends_nothing() { return !manager.poll_transmit().has_value(); }

    // Passes the message that sent() took last to `peer`.
    void pass_last(CmHost& peer, Instant now) { peer.take(*this, last.bytes, now); }
    std::size_t pass_all(CmHost& peer, Instant now) {
        std::size_t count = 0;
        while (const std::optional<OutMad> mad = manager.poll_transmit()) {
            EXPECT_EQ(mad->route, to(peer));
            last = *mad;
            peer.take(*this, mad->bytes, now);
            ++count;
        }
        return count;
    }
    void take(const CmHost& peer, std::span<const std::uint8_t> bytes, Instant now) {
        manager.on_mad(to(peer), bytes, now);
    }
    void take(const CmHost& peer, const wire::CmMad& mad, Instant now) { take(peer, mad.bytes(), now); }

    [[nodiscard]] std::uint64_t count(Counter counter) const { return manager.counters().of(counter); }

private:
    net::IpAddress address_;

public:
    Manager manager;
    OutMad last{};
};

inline Config config_of(std::uint64_t seed) {
    Config config;
    config.seed = {seed, 0};
    config.ca_guid = seed * 0x0101;
    return config;
}

// A client and a server, and the steps that establish their connection.
class CmPair : public testing::Test {
protected:
    [[nodiscard]] ConnectRequest request() const {
        ConnectRequest request;
        request.route = client.to(server);
        request.service = kService;
        request.qpn = Qpn{0x11};
        request.starting_psn = Psn{0x100};
        request.path_mtu_bytes = 4096;
        request.responder_resources = 4;
        request.initiator_depth = 8;
        return request;
    }
    [[nodiscard]] static AcceptParameters acceptance() {
        AcceptParameters accepted;
        accepted.qpn = Qpn{0x22};
        accepted.starting_psn = Psn{0x200};
        accepted.responder_resources = 16;
        accepted.initiator_depth = 16;
        return accepted;
    }
    void listen(std::uint32_t backlog = 8) { ASSERT_EQ(server.manager.listen(kService, backlog), std::nullopt); }

    // Connects. Returns the client's name for the connection; `passive` is the server's, once it has one.
    ConnectionId connect(const ConnectRequest& asked) {
        const auto connected = client.manager.connect(asked, now);
        EXPECT_TRUE(connected.ok());
        return connected.ok() ? connected.value() : ConnectionId{};
    }
    // Lets the REQ arrive without an answer.
    void ask() {
        active = connect(request());
        EXPECT_EQ(client.pass_all(server, now), 1U);
        passive = server.event<Requested>().id;
    }
    // Lets the REP arrive at the client, which has not confirmed it yet.
    void ask_and_accept() {
        ask();
        EXPECT_EQ(server.manager.accept(passive, acceptance(), now), std::nullopt);
        EXPECT_EQ(server.pass_all(client, now), 1U);
        (void)client.event<Replied>();
    }
    void establish() {
        ask_and_accept();
        EXPECT_EQ(client.manager.ready(active, {}, now), std::nullopt);
        EXPECT_EQ(client.pass_all(server, now), 1U);
        (void)server.event<Established>();
    }
    // Lets time pass to the next deadline of `host`.
    void pass_time(CmHost& host) {
        now = host.manager.next_deadline();
        ASSERT_NE(now, Instant::never());
        host.manager.on_timeout(now);
    }
    [[nodiscard]] static State state_at(CmHost& host, ConnectionId id) {
        const Connection* const connection = host.manager.find(id);
        return connection != nullptr ? connection->state : State::Ended;
    }

    CmHost client{kClientAddress, config_of(0x1111'0000'2222'0001U)};
    CmHost server{kServerAddress, config_of(0x3333'0000'4444'0001U)};
    Instant now{1'000'000};
    ConnectionId active{};
    ConnectionId passive{};
};

}  // namespace cairn::cm
