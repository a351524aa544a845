// Connections between two programs of one address: the broker forwards their connection managers' messages, and ends
// the connections of a program that was killed.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "lib/cm/last_words.hpp"
#include "lib/verbs/connector.hpp"
#include "lib/wire/ip_cm.hpp"
#include "tests/support/worker_config.hpp"
#include "tests/unit/broker/running_broker.hpp"

namespace cairn::broker {
namespace {

constexpr std::uint16_t kPort = 7471;
constexpr std::uint8_t kOwnerBits = 8;

Instant read_now() {
    return Instant{std::chrono::steady_clock::now().time_since_epoch().count()};
}

// A process's part of the address.
struct LiveProgram {
    explicit LiveProgram(std::unique_ptr<Membership> joined) : membership(std::move(joined)) {
        port::UringPortConfig own;
        own.mode = port::SocketMode::Plain;
        const std::uint32_t slot = membership->slot().value;
        port = std::move(port::UringPort::open(own, membership->queues(), slot).value());
        worker = worker::Worker::create(*port, test::worker_config(kOwnerBits, slot, slot), read_now()).value();
        device = std::make_unique<verbs::Device>(*worker);
        pd = device->create_pd();
        completions = device->create_cq(16).value();
        connections::HomeConfig config;
        config.has_queue_pair_1 = true;
        home = connections::Home::create(connections::Agent::create(), *worker, config).value();
        membership->voice().manage();
        connector = std::make_unique<verbs::Connector>(*device, *home);
    }
    ~LiveProgram() {
        connector.reset();
        qps.clear();
    }
    verbs::Qp& add_qp() {
        qps.push_back(device->create_qp(*pd, {}, {*completions, *completions}).value());
        return *qps.back();
    }
    [[nodiscard]] bool listens() {
        const wire::ServiceId service = wire::ip_service(wire::IpProtocol::Tcp, kPort);
        return connector->listen(kPort, 4).ok() &&
               comes([&] { return membership->voice().claim(service, false).ok(); });
    }
    // Takes turns until an event comes. Returns nullopt if none comes.
    std::optional<cm::Event> event() {
        std::optional<cm::Event> next;
        comes([&] {
            worker->turn(read_now());
            next = connector->poll_event();
            return next.has_value();
        });
        return next;
    }
    template <class Kind>
    std::optional<Kind> event_of() {
        const std::optional<cm::Event> next = event();
        return next && std::holds_alternative<Kind>(*next) ? std::optional(std::get<Kind>(*next)) : std::nullopt;
    }

    std::unique_ptr<Membership> membership;
    std::unique_ptr<port::UringPort> port;
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<verbs::Pd> pd;
    std::unique_ptr<verbs::Cq> completions;
    std::vector<std::unique_ptr<verbs::Qp>> qps;
    std::unique_ptr<connections::Home> home;
    std::unique_ptr<verbs::Connector> connector;
};

class BrokerConnections : public testing::Test {
protected:
    std::unique_ptr<Membership> join() const {
        MembershipConfig config;
        config.place = place;
        auto joined = Membership::join(config);
        return joined.ok() ? std::move(joined.value().membership) : nullptr;
    }
    // Serves in a child process, which begins before the broker and so inherits none of its descriptors.
    void serve() const {
        std::unique_ptr<Membership> membership;
        comes([&] { return (membership = join()) != nullptr; });
        LiveProgram server(std::move(membership));
        if (!server.listens()) {
            return;
        }
        for (;;) {
            const std::optional<cm::Event> next = server.event();
            const cm::Requested* const requested = next ? std::get_if<cm::Requested>(&*next) : nullptr;
            if (requested != nullptr) {
                (void)server.connector->accept(requested->id, server.add_qp(), {}, read_now());
                continue;
            }
            const cm::Established* const there = next ? std::get_if<cm::Established>(&*next) : nullptr;
            if (there == nullptr) {
                continue;
            }
            if (const auto words = cm::last_words(server.home->manager().find(there->id), 1)) {
                server.membership->voice().leave({there->id.value, place.local, *words});
            }
        }
    }
    // Returns true once another program has the service.
    static bool is_served(LiveProgram& client) {
        const wire::ServiceId service = wire::ip_service(wire::IpProtocol::Tcp, kPort);
        const auto claimed = client.membership->voice().claim(service, false);
        if (claimed.ok()) {
            client.membership->voice().release(service);
        }
        return !claimed.ok() && claimed.reason() == ClaimRefusal::Taken;
    }

    Place place{net::IpAddress::parse(test::loopback(3)).value(), 4791};
};

TEST_F(BrokerConnections, ComeAboutOnOneAddressAndEndWhenOneIsKilled) {
    const pid_t server = fork();
    if (server == 0) {
        serve();
        _exit(1);
    }
    {
        const RunningBroker broker(place);
        LiveProgram client(join());
        ASSERT_TRUE(comes([&] { return is_served(client); }));
        verbs::Qp& qp = client.add_qp();
        verbs::ConnectTo to;
        to.remote = place.local;
        to.port = kPort;
        ASSERT_TRUE(client.connector->connect(qp, to, read_now()).ok());
        ASSERT_TRUE(client.event_of<cm::Established>().has_value());
        EXPECT_EQ(qp.state(), verbs::QpState::Rts);
        // It leaves its farewell message once it knows that the connection is established.
        for (int turns = 0; turns < 60; ++turns) {
            client.worker->turn(read_now());
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        kill(server, SIGKILL);
        EXPECT_TRUE(client.event_of<cm::DisconnectRequested>().has_value());
        EXPECT_EQ(qp.state(), verbs::QpState::Err);
    }
    waitpid(server, nullptr, 0);
}

}  // namespace
}  // namespace cairn::broker
