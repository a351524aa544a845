// Many clients of one server in virtual time, each with a session of its own, over one wire in memory.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tests/unit/scalerpc/host.hpp"

namespace cairn::scalerpc {

constexpr std::uint8_t kEcho = 7;
constexpr std::uint8_t kKeep = 8;

class ManyClients : public testing::Test {
protected:
    static EndpointConfig small(std::uint16_t sessions) {
        EndpointConfig config;
        config.shape = {256, 4};
        config.groups.size = 8;
        config.sessions_max = config.host_sessions_max = sessions;
        config.notice_timeout = milliseconds(100);
        return config;
    }
    void begin(const EndpointConfig& config, std::uint32_t clients) {
        config_of_server = config;
        server = std::make_unique<Host>("10.0.0.2", 22, config);
        client = std::make_unique<Host>("10.0.0.1", 11, config);
        client->port.join(server->port);
        server->port.join(client->port);
        ASSERT_TRUE(server->endpoint->listen(kService).ok());
        server->endpoint->set_handler(
            kEcho,
            [](void* context, const RequestOf& request) {
                ++static_cast<ManyClients*>(context)->executed[tag_of(request.payload)];
                EXPECT_TRUE(request.endpoint.answer(request.handle, request.payload, request.now));
            },
            this);
        server->endpoint->set_handler(
            kKeep,
            [](void* context, const RequestOf& request) {
                static_cast<ManyClients*>(context)->kept.push_back(request.keep());
            },
            this);
        for (std::uint32_t i = 0; i < clients; ++i) {
            const auto session = client->endpoint->connect(net::IpAddress::parse("10.0.0.2").value(), kService, now);
            ASSERT_TRUE(session.ok());
            sessions.push_back(session.value());
            run(microseconds(100));
        }
        run(milliseconds(5));
        ASSERT_EQ(client->events.size(), clients);
    }
    // Runs in steps that are shorter than slices.
    void run(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(5)) {
            client->turn(now);
            server->turn(now);
        }
    }
    static std::uint64_t tag_of(std::span<const std::uint8_t> payload) {
        std::uint64_t tag = 0;
        std::memcpy(&tag, payload.data(), sizeof(tag));
        return tag;
    }
    // Posts a call. With `again` each answer posts the next one.
    void post(std::size_t session, std::size_t bytes = 32, std::uint8_t type = kEcho) {
        const std::uint64_t tag = ++tags;
        std::vector<std::uint8_t>& request = requests[tag];
        request.assign(bytes, filler.value_or(static_cast<std::uint8_t>(tag)));
        std::memcpy(request.data(), &tag, sizeof(tag));
        session_of[tag] = session;
        Call call;
        call.type = type;
        call.request = request;
        call.context = this;
        call.tag = tag;
        call.completion = [](void* context, const rpc::CallResult& result) {
            static_cast<ManyClients*>(context)->on_completed(result);
        };
        ASSERT_EQ(client->endpoint->post(sessions[session], call, now).verdict, PostVerdict::Posted);
    }
    void on_completed(const rpc::CallResult& result) {
        ASSERT_EQ(results.count(result.tag), 0U) << "completed twice";
        results[result.tag] = result.status;
        const std::size_t session = session_of[result.tag];
        if (result.status == CallStatus::Ok) {
            ++done[session];
            const std::vector<std::uint8_t>& sent = requests[result.tag];
            EXPECT_TRUE(std::equal(sent.begin(), sent.end(), result.response.begin(), result.response.end()));
            requests.erase(result.tag);
        }
        if (again) {
            post(session);
        }
    }
    std::size_t count(CallStatus status) const {
        std::size_t found = 0;
        for (const auto& [tag, got] : results) {
            found += got == status ? 1 : 0;
        }
        return found;
    }
    const Statistics& counted() const { return server->endpoint->statistics(); }
    // Checks that unused places are empty.
    void check_clean_pools() {
        const Pools& pools = server->endpoint->slices().pools();
        const EndpointConfig& config = config_of_server;
        for (std::uint8_t pool = 0; pool != Pools::sides_of(config); ++pool) {
            std::set<std::uint32_t> taken;
            for (const Session* const session : pools.tenants(pool)) {
                taken.insert(session->guest->berth->slot);
            }
            for (std::uint32_t slot = 0; slot != Pools::slots_for(config); ++slot) {
                Guest nobody(config.shape, {}, 0);
                nobody.berth = Berth{pool, slot};
                for (std::uint32_t i = 0; taken.count(slot) == 0 && i != config.shape.blocks; ++i) {
                    const std::span<const std::uint8_t> block = pools.block(nobody, i);
                    EXPECT_EQ(std::count(block.begin(), block.end(), 0), std::ssize(block)) << slot << "." << i;
                }
            }
        }
    }
    // Checks that no request was executed twice, and no rule broken.
    void check() {
        for (const auto& [tag, times] : executed) {
            ASSERT_EQ(times, 1) << tag;
        }
        for (const Host* host : {client.get(), server.get()}) {
            EXPECT_EQ(telemetry::text_of(host->endpoint->statistics().breaches.snapshot()), "");
        }
        server->endpoint->slices().groups().check();
        check_clean_pools();
    }

    Instant now{1'000'000'000};
    EndpointConfig config_of_server;
    std::vector<SessionId> sessions;
    bool again = false;
    std::uint64_t tags = 0;
    std::optional<std::uint8_t> filler;  // the byte after the tags of requests, if all have the same one
    std::map<std::uint64_t, std::vector<std::uint8_t>> requests;
    std::map<std::uint64_t, std::size_t> session_of;
    std::map<std::uint64_t, CallStatus> results;
    std::map<std::uint64_t, int> executed;
    std::map<std::size_t, std::uint64_t> done;
    std::vector<rpc::KeptRequest> kept;
    // These are last, so that they end first: remaining calls complete then.
    std::unique_ptr<Host> client;
    std::unique_ptr<Host> server;
};

}  // namespace cairn::scalerpc
