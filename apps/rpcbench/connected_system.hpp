// The common part of RPC systems over reliable connections under cairn-rpcbench. It has a device on each worker, its
// connections, and sessions to the peer's service.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "apps/rpcbench/system.hpp"
#include "lib/connections/home.hpp"
#include "lib/verbs/device.hpp"

namespace cairn::rpcbench {

// The sessions that an endpoint has room for.
struct Places {
    std::uint16_t all = 0;
    std::uint16_t own = 0;  // that it makes itself
    std::uint16_t of_host = 0;
};
// Returns the sessions. A server takes `--sessions` clients, all of one host unless --host-sessions sets another limit:
// a bench has one host.
[[nodiscard]] inline Places places_of(const Options& options) noexcept {
    const std::size_t own = options.peer.empty() ? 0 : options.sessions;
    const std::size_t guests = options.server ? options.sessions : 0;
    const auto all = static_cast<std::uint16_t>(std::min<std::size_t>(own + guests, 0xffff));
    return {all, static_cast<std::uint16_t>(own), options.host_sessions.value_or(all)};
}

// `Event` is the system's session event.
template <class Endpoint, class Event>
class ConnectedSystem : public SystemOf<Endpoint> {
public:
    void look(Instant now) override {
        while (stage_.peer.has_value() && this->sessions_.size() < this->options_.sessions && this->failure().empty()) {
            const Result<SessionId> session = this->endpoint().connect(*stage_.peer, this->options_.service, now);
            if (!session.ok()) {
                this->fail(session.error().text());
                return;
            }
            this->sessions_.push_back(session.value());
        }
    }

protected:
    explicit ConnectedSystem(const Stage& stage) : SystemOf<Endpoint>(stage), stage_(stage) {}
    ~ConnectedSystem() override { this->drop_endpoint(); }  // before its device

    // Makes the endpoint, and listens if the options ask for a server. Errors: those of the endpoint; the service is
    // taken.
    template <class Config>
    Status open(const Config& config) {
        const Status ready = open_device();
        return ready.ok() ? open_endpoint(config) : ready;
    }
    // Does the first half of open(), for a system that has other parts on the device.
    Status open_device() {
        connections::HomeConfig connections;
        connections.udp_source_port = static_cast<std::uint16_t>(connections.udp_source_port + stage_.number);
        auto home = connections::Home::create(stage_.crew.agent, stage_.worker, connections);
        if (!home.ok()) {
            return home.error();
        }
        home_ = std::move(home).value();
        device_ = std::make_unique<verbs::Device>(stage_.worker);
        return Nothing{};
    }
    // Does the second half.
    template <class Config>
    Status open_endpoint(const Config& config) {
        auto made = Endpoint::create(config, *device_, *home_, stage_.pool);
        if (!made.ok()) {
            return made.error();
        }
        made.value()->set_session_callback(session_changed, this);
        const Status ready = this->take(std::move(made).value(), stage_);
        if (!ready.ok() || !this->options_.server) {
            return ready;
        }
        return this->endpoint().listen(this->options_.service);
    }
    [[nodiscard]] verbs::Device& device() noexcept { return *device_; }
    [[nodiscard]] connections::Home& home() noexcept { return *home_; }
    // Fills in the counters of the engine.
    void count_packets(SystemFigures& figures) const {
        const auto& engine = stage_.worker.engine().counters();
        figures.resent = engine.of(roce::EngineCounter::PacketsResent);
        figures.packets_sent = engine.of(roce::EngineCounter::PacketsSent);
    }

private:
    // Returns why a session did not open.
    [[nodiscard]] static const char* why_none([[maybe_unused]] Event event) noexcept {
        if constexpr (requires { Event::Refused; }) {
            return event == Event::Refused || event == Event::Disconnected
                       ? "was refused: has the server this --service and --system, places for so many --sessions of a "
                         "host, and the same --flow, or --block and --blocks?"
                       : "did not open: nobody answers; is the server running, with this --system?";
        } else {
            return "did not open; is the server running, with this --service and --system, and does it take so many "
                   "--sessions?";
        }
    }
    static void session_changed(void* context, SessionId session, Event event) {
        auto& self = *static_cast<ConnectedSystem*>(context);
        if (event == Event::Connected) {
            ++self.connected_;
        } else if (!self.closing_) {
            self.fail(
                fmt::format("session {} {}", session.number(),
                            self.is_connected() ? "ended: the peer is gone; is the server running?" : why_none(event)));
        }
    }

    const Stage stage_;
    std::unique_ptr<connections::Home> home_;
    std::unique_ptr<verbs::Device> device_;
};

}  // namespace cairn::rpcbench
