// The connections of an adapter for rdma_cm: connects the connection manager with the endpoints.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "lib/base/result.hpp"
#include "lib/connections/agent.hpp"
#include "lib/connections/home.hpp"
#include "lib/rdmacm/endpoint.hpp"
#include "lib/rdmacm/last_will.hpp"
#include "lib/rdmacm/linger.hpp"
#include "lib/worker/tenant.hpp"
#include "lib/worker/worker.hpp"

namespace cairn::rdmacm {

// Owns the connections of the adapter's worker, and queue pair 1 with them. Its users are the endpoints that are bound
// to the device, and those that listen everywhere. Needs the adapter's lock, as do all functions that it calls.
class Exchange final : private cm::User, private worker::Tenant {
public:
    // Opens the exchange of the device. Errors: those of Home::create().
    static Result<std::unique_ptr<Exchange>> open(Device& device);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    // Listens for the endpoint. Returns an errno value.
    [[nodiscard]] int listen(Endpoint& endpoint, std::uint32_t backlog);
    // Stops listening. Returns false if the endpoint does not listen here.
    [[nodiscard]] bool unlisten(Endpoint& endpoint);
    // Connect, or ask a question for datagrams. The id that they make names the endpoint.
    [[nodiscard]] int connect(Endpoint& endpoint, const cm::ConnectRequest& request);
    [[nodiscard]] int ask(Endpoint& endpoint, const cm::ResolveRequest& request);
    // Ends the endpoint's connection or question as its state demands.
    void abandon(Endpoint& endpoint);
    // Forgets the question that the endpoint has answered.
    void forget_question(Endpoint& endpoint) noexcept;
    // Notifies the connection manager that packets of the peer came, as the program reports.
    void tell_established(Endpoint& endpoint);
    // Establishes a connection after Replied; the queue pair of our end is in RTS.
    [[nodiscard]] std::optional<cm::CallRefusal> establish(cm::ConnectionId id);
    // Ends the connections and questions of all endpoints, as the program exits.
    void end_all();

    [[nodiscard]] cm::Manager& manager() noexcept { return home_->manager(); }
    [[nodiscard]] Instant now() noexcept;
    // Sends what is due, and then notifies endpoints of the results.
    void settle();

private:
    explicit Exchange(Device& device) noexcept : device_(device), wills_(device.adapter().voice()) {}
    void on_event(const cm::Event& event, Instant now) override;
    void hear(const cm::Requested& said);
    void hear(const cm::Replied& said);
    void hear(const cm::Rejected& said);
    void hear(const cm::Released& said);
    void hear(const cm::DatagramRequested& said);
    void hear(const cm::Resolved& said);
    template <class Kind>
    void hear(const Kind& said);  // takes in events of other kinds, which have no data to pass on
    [[nodiscard]] bool take(const Service& service, std::uint32_t backlog);
    void drop(const Service& service);
    void hold(const Service& service, const cm::Event& request);
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override { return linger_.next_deadline(); }
    // Changes the endpoint's state as `news` demands. Returns the event to be completed and queued; nullptr if there is
    // none.
    [[nodiscard]] std::unique_ptr<Event> apply(Endpoint* endpoint, News news, int status);
    [[nodiscard]] Endpoint* find(cm::ConnectionId id) noexcept;
    [[nodiscard]] Endpoint* find_listener(cm::ServiceKind kind, wire::ServiceId service) noexcept;

    Device& device_;
    LastWill wills_;
    std::unique_ptr<connections::Home> home_;
    std::map<Service, Endpoint*> listeners_;
    Linger linger_;
    worker::Tenancy tenancy_;
    std::unordered_map<std::uint32_t, Endpoint*> connections_;  // by ConnectionId
    std::unordered_map<std::uint32_t, Endpoint*> questions_;    // by DatagramId
};

// Returns a number that peers cannot guess. Needs the adapter's lock, as the next does.
[[nodiscard]] Psn draw_psn(const Device& device) noexcept;
[[nodiscard]] std::uint32_t path_mtu_bytes(const Device& device) noexcept;
// Returns the service of a port, in the endpoint's port space.
[[nodiscard]] wire::ServiceId service_of(const Endpoint& endpoint, std::uint16_t port) noexcept;
[[nodiscard]] int errno_of(cm::CallRefusal refusal) noexcept;
// Writes the parameters and private data of the peer to the event.
void describe(Event& event, const cm::QpParameters& peer, const cm::PrivateBytes& data) noexcept;

}  // namespace cairn::rdmacm
