// eRPC and RDMA side by side, on each worker of two processes:
//
//   memif-both EAL... -- --ip 10.77.0.1                    each worker serves one client, then the program ends
//   memif-both EAL... -- --ip 10.77.0.2 --peer 10.77.0.1   each worker is a client
//
// Worker i uses the number --service + i: it is the name of a server's eRPC service and the port of its connections.
// Both ends print a JSON object.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apps/common/app.hpp"
#include "apps/common/command_line.hpp"
#include "apps/common/ports.hpp"
#include "lib/base/secret.hpp"
#include "tests/eal/both_client.hpp"

namespace {

using namespace cairn;
using both::Client;
using both::Side;
using Sides = std::vector<std::unique_ptr<Side>>;

struct Options {
    app::PortOptions ports{};
    std::string peer;  // empty: serve
    std::uint16_t service = 7471;
};

// Serves one connection and meanwhile the calls of one session.
class Server final : public Side {
public:
    using Side::Side;
    Status prepare(std::uint16_t service) {
        const Status served = tenants().directory->serve(service, {tenants().endpoint->qpn(), connections::kQkey, 1});
        return served.ok() ? tenants().connector->listen(service, 1) : served;
    }
    [[nodiscard]] std::uint64_t calls() const noexcept override {
        return tenants().endpoint->statistics().requests_handled;
    }

private:
    bool step(Instant now) noexcept override {
        bool heard = false;
        while (const std::optional<cm::Event> event = tenants().connector->poll_event()) {
            on_event(*event, now);
            heard = true;
        }
        if (released_ && tenants().endpoint->sessions_open() == 0) {
            end();
        }
        return heard;
    }
    void on_event(const cm::Event& event, Instant now) {
        if (const auto* requested = std::get_if<cm::Requested>(&event)) {
            accept(requested->id, now);
        } else if (const auto* leaving = std::get_if<cm::DisconnectRequested>(&event)) {
            require(tenants().connector->disconnect(leaving->id, {}, now).ok(), "disconnect() refuses");
        } else if (std::holds_alternative<cm::Released>(event)) {
            released_ = true;
        } else {
            const bool in_order =
                std::holds_alternative<cm::Established>(event) || std::holds_alternative<cm::Disconnected>(event);
            require(in_order, "the connection fell apart");
        }
    }
    void accept(verbs::ConnectionId id, Instant now) {
        const both::RawOffer offer{Be64{tenants().mr->address()}, Be32{tenants().mr->rkey().value}};
        verbs::ConnectionChoice choice;
        choice.access = verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::RemoteRead;
        choice.private_data = {reinterpret_cast<const std::uint8_t*>(&offer), sizeof(offer)};
        require(tenants().connector->accept(id, *tenants().qp, choice, now).ok(), "accept() refuses");
    }

    bool released_ = false;
};

Result<Options> parse_options(int argc, char** argv, int first) {
    CLI::App app("memif-both: eRPC and RDMA side by side; EAL arguments first, then --");
    Options options;
    app.add_option("--ip", options.ports.ip, "the ethernet port's IP address");
    app.add_option("--peer", options.peer, "the server's IP address: be the client");
    app.add_option("--service", options.service, "the number of worker 0's service and port");
    const Status parsed = app::parse_arguments(app, argc, argv, first);
    return parsed.ok() ? Result<Options>(options) : parsed.error();
}

Result<Sides> make_sides(const Options& options, app::Ports& ports, const pmd::Clock& clock) {
    const std::shared_ptr<connections::Agent> agent = connections::Agent::create();
    Sides sides;
    for (std::uint16_t i = 0; i < pmd::worker_count(); ++i) {
        auto port = ports.make_port(i);
        if (!port.ok()) {
            return port.error();
        }
        const std::uint64_t seed = draw_secret()[0];
        const auto service = static_cast<std::uint16_t>(options.service + i);
        Status ready = Nothing{};
        if (options.peer.empty()) {
            auto server = std::make_unique<Server>(std::move(port).value(), agent, i, seed);
            ready = server->prepare(service);
            sides.push_back(std::move(server));
        } else {
            const Result<net::IpAddress> peer = ports.peer(options.peer);
            auto client = std::make_unique<Client>(std::move(port).value(), agent, i, seed);
            ready = peer.ok() ? client->begin(peer.value(), service, clock.now()) : Status(peer.error());
            sides.push_back(std::move(client));
        }
        if (!ready.ok()) {
            return ready.error();
        }
    }
    return sides;
}

Result<int> run(int argc, char** argv, int first) {
    Result<Options> options = parse_options(argc, argv, first);
    if (!options.ok()) {
        return options.error();
    }
    options.value().ports.workers = pmd::worker_count();
    auto ports = app::Ports::open(options.value().ports);
    if (!ports.ok()) {
        return ports.error();
    }
    const pmd::Clock clock;
    const Result<Sides> sides = make_sides(options.value(), ports.value(), clock);
    if (!sides.ok()) {
        return sides.error();
    }
    std::vector<worker::Task*> tasks;
    for (const auto& side : sides.value()) {
        tasks.push_back(side.get());
    }
    (void)pmd::run_workers(tasks, clock, worker::Polling::Adaptive);
    bool succeeded = true;
    std::uint64_t calls = 0;
    std::uint64_t rounds = 0;
    for (const auto& side : sides.value()) {
        succeeded = succeeded && side->succeeded();
        calls += side->calls();
        rounds += side->rounds();
    }
    fmt::print("{{\"workers\": {}, \"calls\": {}, \"rounds\": {}}}\n", tasks.size(), calls, rounds);
    return succeeded ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    return app::run("memif-both", argc, argv, run);
}
