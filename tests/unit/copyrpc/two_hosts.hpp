// A client and a server on a wire in memory, in virtual time. Handlers echo requests or keep them.
#pragma once

#include <map>
#include <vector>

#include "tests/unit/copyrpc/host.hpp"

namespace cairn::copyrpc {

constexpr std::uint8_t kEcho = 7;
constexpr std::uint8_t kKeep = 8;

class TwoHosts : public testing::Test {
protected:
    explicit TwoHosts(const EndpointConfig& config) : TwoHosts(config, config) {}
    TwoHosts(const EndpointConfig& ours, const EndpointConfig& theirs, std::size_t our_pool_bytes = Host::kPoolBytes,
             std::size_t their_pool_bytes = Host::kPoolBytes)
        : client("10.0.0.1", 11, ours, our_pool_bytes), server("10.0.0.2", 22, theirs, their_pool_bytes) {
        client.port.join(server.port);
        server.port.join(client.port);
        EXPECT_TRUE(server.endpoint->listen(kService).ok());
        for (Host* host : {&client, &server}) {
            host->endpoint->set_handler(
                kEcho,
                [](void*, const Request& request) {
                    EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
                },
                nullptr);
        }
        server.endpoint->set_handler(
            kKeep,
            [](void* context, const Request& request) {
                auto& self = *static_cast<TwoHosts*>(context);
                self.kept.push_back(request.keep());
                EXPECT_TRUE(!self.retains || request.endpoint.retain(request.handle));
                self.payloads.emplace_back(request.payload);
            },
            this);
    }
    TwoHosts() : TwoHosts(EndpointConfig{}) {}
    SessionId connect() {
        const auto session = client.endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now);
        EXPECT_TRUE(session.ok());
        run(milliseconds(5));
        return session.value();
    }
    void run(Duration span, Duration step = microseconds(20)) {
        for (const Instant end = now + span; now < end; now = now + step) {
            client.turn(now);
            server.turn(now);
        }
    }
    Posted post(SessionId session, std::uint64_t tag, std::size_t bytes = 32, std::uint8_t type = kEcho) {
        requests[tag].resize(bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
            requests[tag][i] = static_cast<std::uint8_t>(tag * 31 + i);
        }
        Call call;
        call.type = type;
        call.request = requests[tag];
        call.context = this;
        call.tag = tag;
        call.completion = [](void* context, const rpc::CallResult& result) {
            auto& self = *static_cast<TwoHosts*>(context);
            ASSERT_EQ(self.results.count(result.tag), 0U) << "completed twice";
            self.results[result.tag] = result.status;
            if (result.status == CallStatus::Ok && !self.empty_answers) {
                const std::vector<std::uint8_t>& sent = self.requests[result.tag];
                EXPECT_TRUE(std::equal(sent.begin(), sent.end(), result.response.begin(), result.response.end()));
            }
        };
        return client.endpoint->post(session, call, now);
    }
    std::size_t count(CallStatus status) const {
        std::size_t found = 0;
        for (const auto& [tag, got] : results) {
            found += got == status ? 1 : 0;
        }
        return found;
    }

    Host client;
    Host server;
    Instant now{1'000'000'000};
    bool empty_answers = false;
    bool retains = false;  // requests kept by kKeep are not to change
    std::map<std::uint64_t, std::vector<std::uint8_t>> requests;
    std::map<std::uint64_t, CallStatus> results;
    std::vector<rpc::KeptRequest> kept;
    std::vector<std::span<const std::uint8_t>> payloads;  // the payloads of kept requests; readable if they are
                                                          // retained
};

}  // namespace cairn::copyrpc
