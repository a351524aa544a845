// A client and a server of --system ud on a wire in memory, in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "apps/rpcbench/ud_endpoint.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::rpcbench {

constexpr std::uint16_t kService = 7473;
constexpr std::uint8_t kEchoed = 7;
constexpr std::uint8_t kSilent = 8;  // its handler does not answer
constexpr std::uint8_t kUnknown = 9;

struct UdHost {
    UdHost(const char* address, std::uint64_t seed, UdConfig config)
        : port(address, 4096), worker(worker::Worker::create(port, engine_config(seed), Instant{}).value()) {
        config.seed = {seed, 3};
        home = connections::Home::create(connections::Agent::create(), *worker, {}).value();
        device = std::make_unique<verbs::Device>(*worker);
        endpoint = UdEndpoint::create(config, *device, *home, pool).value();
        endpoint->set_session_callback(
            [](void* context, SessionId, UdEvent event) { static_cast<UdHost*>(context)->events.push_back(event); },
            this);
    }
    static roce::EngineConfig engine_config(std::uint64_t seed) {
        roce::EngineConfig config;
        config.seed = {seed, 1};
        return config;
    }
    [[nodiscard]] std::uint64_t breaches(UdBreach which) const { return endpoint->statistics().breaches.of(which); }
    [[nodiscard]] std::size_t count(UdEvent event) const {
        return static_cast<std::size_t>(std::count(events.begin(), events.end(), event));
    }

    test::WirePort port;
    std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(8U << 20U);
    rpc::MsgPool pool{memory};
    std::vector<UdEvent> events;
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<connections::Home> home;
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<UdEndpoint> endpoint;
};

class UdHosts : public testing::Test {
protected:
    explicit UdHosts(const UdConfig& theirs = {}) : server("10.0.0.2", 22, theirs) {
        client.port.join(server.port);
        server.port.join(client.port);
        EXPECT_TRUE(server.endpoint->listen(kService).ok());
        server.endpoint->set_handler(
            kEchoed,
            [](void* context, const rpc::Request<UdEndpoint>& request) {
                ++*static_cast<std::size_t*>(context);
                EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
            },
            &executed);
        server.endpoint->set_handler(
            kSilent, [](void*, const rpc::Request<UdEndpoint>&) {}, nullptr);
    }
    SessionId begin() {
        const auto session = client.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now);
        EXPECT_TRUE(session.ok());
        return session.ok() ? session.value() : SessionId{};
    }
    SessionId connect() {
        const SessionId session = begin();
        run(milliseconds(60));
        return session;
    }
    void run(Duration span, Duration step = microseconds(50)) {
        for (const Instant end = now + span; now < end; now = now + step) {
            (void)client.worker->turn(now);
            (void)server.worker->turn(now);
        }
    }
    rpc::Posted post(SessionId session, std::uint64_t tag, std::size_t bytes = 32, std::uint8_t type = kEchoed) {
        requests[tag].assign(bytes, static_cast<std::uint8_t>(tag * 31 + 1));
        rpc::Call call;
        call.type = type;
        call.request = requests[tag];
        call.context = this;
        call.tag = tag;
        call.completion = [](void* context, const rpc::CallResult& result) {
            auto& self = *static_cast<UdHosts*>(context);
            EXPECT_EQ(self.results.count(result.tag), 0U) << "completed twice";
            self.results[result.tag] = result.status;
            if (result.status == rpc::CallStatus::Ok) {
                const std::vector<std::uint8_t>& sent = self.requests[result.tag];
                EXPECT_TRUE(std::equal(sent.begin(), sent.end(), result.response.begin(), result.response.end()));
            }
        };
        return client.endpoint->post(session, call, now);
    }
    [[nodiscard]] std::size_t count(rpc::CallStatus status) const {
        return static_cast<std::size_t>(std::count_if(results.begin(), results.end(),
                                                      [status](const auto& each) { return each.second == status; }));
    }
    static UdConfig of_client() {
        UdConfig config;
        config.calls_max = 4096;
        return config;
    }

    std::size_t executed = 0;
    std::map<std::uint64_t, std::vector<std::uint8_t>> requests;
    std::map<std::uint64_t, rpc::CallStatus> results;
    Instant now{1'000'000};
    UdHost client{"10.0.0.1", 11, of_client()};
    UdHost server;
};

}  // namespace cairn::rpcbench
