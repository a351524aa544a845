// A worker's share of the connections of a host address: the connections of the worker's queue pairs, and their users.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/cm/manager.hpp"
#include "lib/cm/user.hpp"
#include "lib/connections/agent.hpp"
#include "lib/connections/mad_road.hpp"
#include "lib/roce/ud/mux.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::connections {

struct HomeConfig {
    cm::Config cm{};  // the seed is drawn from the worker's engine, the share of names is the worker's
    std::uint16_t udp_source_port =
        port::kFirstUdpSourcePort;  // UDP source port of messages that are no answers; the answers come to it
    bool has_queue_pair_1 = false;  // at a worker other than 0: the owner brings the messages to it (lib/broker)
};

// A tenant of its worker, among whose counters are this object's, and at worker 0 the agent's. Worker 0 owns queue pair
// 1, unless a broker owns it or the configuration gives it to another worker. The owner hands other workers their
// messages. Messages, deadlines and calls of users become events. Each event goes to its user.
class Home final : private roce::UdReceiver, private worker::Tenant {
public:
    // Makes the connections of a worker. If `road` is nullptr, messages leave by the worker's sender. Otherwise they
    // leave by `road`: a broker owns queue pair 1 and calls Agent::on_mad(). Errors: the worker has connections
    // already; queue pair 1 has another owner.
    static Result<std::unique_ptr<Home>> create(std::shared_ptr<Agent> agent, worker::Worker& worker,
                                                const HomeConfig& config, std::unique_ptr<MadRoad> road = nullptr);
    Home(const Home&) = delete;
    Home& operator=(const Home&) = delete;
    // All users must have left.
    ~Home() override;

    // As the manager's calls of the same names, over all workers of the address. Errors: no backlog; another user
    // listens to the service.
    Status listen(wire::ServiceId service, std::uint32_t backlog, cm::User& user, Sharing sharing = Sharing::Alone);
    Status unlisten(wire::ServiceId service);
    // Listens to a service over datagrams. Errors: the private data are too long; another user listens to the service.
    Status listen_datagrams(wire::ServiceId service, const std::optional<cm::DatagramService>& standing, cm::User& user,
                            Sharing sharing = Sharing::Alone);
    Status unlisten_datagrams(wire::ServiceId service);
    // Ends a user. Its connections are abandoned, and it no longer listens to its services.
    void leave(const cm::User& user);

    // Returns the manager, for users. After calls to the manager, settle() delivers the events that follow, and sends.
    [[nodiscard]] cm::Manager& manager() noexcept { return manager_; }
    void settle(Instant now);

    [[nodiscard]] net::IpAddress local_address() const noexcept { return worker_.port().local_address(); }
    [[nodiscard]] std::uint16_t udp_source_port() const noexcept { return udp_source_port_; }
    // Returns the path to a host, or nullptr as Port::open_path() does.
    [[nodiscard]] port::Path* own_path(const net::IpAddress& remote, Instant now);
    // Returns the path to `remote`. If `remote` sent the message whose events are being delivered, it is the path back,
    // as Port::path_back() gives it; else it is own_path().
    [[nodiscard]] port::Path* path_to(const net::IpAddress& remote, Instant now);
    [[nodiscard]] worker::Worker& worker() noexcept { return worker_; }

    // Takes a message for this worker from the agent.
    void on_mad(const ArrivedMad& mad, Instant now);

private:
    struct Listened {
        cm::ServiceKind kind;
        wire::ServiceId service;
        const cm::User* user;
    };

    Home(std::shared_ptr<Agent> agent, worker::Worker& worker, const HomeConfig& config, std::unique_ptr<MadRoad> road);
    Status open_queue_pair_1();
    [[nodiscard]] telemetry::CounterList list_counters() const;
    void on_datagrams(std::span<const roce::UdDatagram> datagrams, Instant now) noexcept override;
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override { return manager_.next_deadline(); }
    void send_messages(Instant now);
    Status take_service(const Listened& listened, Sharing sharing, std::optional<cm::CallRefusal> refusal);
    Status drop_service(cm::ServiceKind kind, wire::ServiceId service, std::optional<cm::CallRefusal> refusal);

    const std::shared_ptr<Agent> agent_;
    worker::Worker& worker_;
    const std::uint16_t udp_source_port_;
    cm::Manager manager_;
    std::unique_ptr<MadRoad> road_;
    roce::UdEntry* qp_ = nullptr;  // queue pair 1, at worker 0
    std::vector<Listened> listened_;
    const port::WayBack* arrived_by_ = nullptr;  // the way back of the message whose events are being delivered
    bool settling_ = false;
    bool registered_ = false;
    worker::Tenancy tenancy_;
    telemetry::Registration registration_;
};

// Turns a refusal into an Error with a remedy, and nullopt into success.
[[nodiscard]] Status status_of(std::optional<cm::CallRefusal> refusal);

}  // namespace cairn::connections
