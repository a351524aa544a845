// The connections of an adapter for rdma_cm: the place where the connection manager and the endpoints meet.
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

// It owns the connections of the adapter's worker, and queue pair 1 with them. Its user is every endpoint that is bound
// to the device, and every endpoint that listens everywhere. Needs the adapter's lock, as does all that it calls.
class Exchange final : private cm::User, private worker::Tenant {
public:
    // Errors: those of Home::create().
    static Result<std::unique_ptr<Exchange>> open(Device& device);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    // Returns an errno value.
    [[nodiscard]] int listen(Endpoint& endpoint, std::uint32_t backlog);
    // Returns false if it does not listen here.
    [[nodiscard]] bool unlisten(Endpoint& endpoint);
    // They name the endpoint by the connection or question that is made.
    [[nodiscard]] int connect(Endpoint& endpoint, const cm::ConnectRequest& request);
    [[nodiscard]] int ask(Endpoint& endpoint, const cm::ResolveRequest& request);
    // Ends the endpoint's connection or question as its state demands.
    void abandon(Endpoint& endpoint);
    // The endpoint has answered its question.
    void forget_question(Endpoint& endpoint) noexcept;
    // The program says that packets of the peer came.
    void tell_established(Endpoint& endpoint);
    // The queue pair of our end is in RTS, after Replied.
    [[nodiscard]] std::optional<cm::CallRefusal> establish(cm::ConnectionId id);
    // Ends those of all endpoints. The program exits.
    void end_all();

    [[nodiscard]] cm::Manager& manager() noexcept { return home_->manager(); }
    [[nodiscard]] Instant now() noexcept;
    // What is to be sent leaves, and endpoints are told what follows.
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
    void hear(const Kind& said);  // of the others: only that they came
    [[nodiscard]] bool take(const Service& service, std::uint32_t backlog);
    void drop(const Service& service);
    void hold(const Service& service, const cm::Event& request);
    bool on_turn(Instant now) noexcept override;
    [[nodiscard]] Instant next_deadline() const noexcept override { return linger_.next_deadline(); }
    // Does what `news` means for the endpoint. Returns the event to be completed and told; nullptr if there is none.
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

// Returns a number that nobody can guess. Needs the adapter's lock, as the next does.
[[nodiscard]] Psn draw_psn(const Device& device) noexcept;
[[nodiscard]] std::uint32_t path_mtu_bytes(const Device& device) noexcept;
// The service of a port, of the endpoint's port space.
[[nodiscard]] wire::ServiceId service_of(const Endpoint& endpoint, std::uint16_t port) noexcept;
[[nodiscard]] int errno_of(cm::CallRefusal refusal) noexcept;
// Fills in what the program is told of its peer.
void describe(Event& event, const cm::QpParameters& peer, const cm::PrivateBytes& data) noexcept;

}  // namespace cairn::rdmacm
