// Two devices on a wire in memory, each with a connector, and queue pairs that connect.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "lib/verbs/connector.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::verbs {

constexpr Rights kAllRemote = Rights{Right::RemoteWrite} | Right::RemoteRead | Right::RemoteAtomic;
constexpr Rights kAllRights = kAllRemote | Right::LocalWrite;

struct VerbsHost {
    static constexpr std::size_t kBytes = 65536;

    VerbsHost(const char* address, std::uint64_t seed)
        : port(address, 1024),
          worker(worker::Worker::create(port, config_of(seed), Instant{}).value()),
          device(*worker),
          pd(device.create_pd()) {
        open_connector({});
        mr = device.register_memory(*pd, memory(), kAllRights).value();
        sends = device.create_cq(256).value();
        receives = device.create_cq(256).value();
    }
    static roce::EngineConfig config_of(std::uint64_t seed) {
        roce::EngineConfig config;
        config.seed = {seed, 1};
        return config;
    }

    void open_connector(const connections::HomeConfig& config) {
        connector.reset();
        home.reset();
        home = connections::Home::create(connections::Agent::create(), *worker, config).value();
        connector = std::make_unique<Connector>(device, *home);
    }
    std::span<std::uint8_t> memory() { return {reinterpret_cast<std::uint8_t*>(words.data()), kBytes}; }
    std::unique_ptr<Qp> make_qp(const QpCapacity& capacity = {}) {
        return device.create_qp(*pd, capacity, {*sends, *receives}).value();
    }
    bool turn(Instant now) {
        const std::uint64_t before = port.sent();
        const bool worked = worker->turn(now);
        return worked || port.sent() != before;
    }
    // Returns the next event, which must be of this kind.
    template <class Kind>
    Kind expect_event() {
        const std::optional<cm::Event> event = connector->poll_event();
        EXPECT_TRUE(event.has_value());
        EXPECT_TRUE(event && std::holds_alternative<Kind>(*event)) << (event ? event->index() : 99);
        return event && std::holds_alternative<Kind>(*event) ? std::get<Kind>(*event) : Kind{};
    }

    test::WirePort port;
    std::vector<std::uint64_t> words = std::vector<std::uint64_t>(kBytes / 8);
    std::unique_ptr<worker::Worker> worker;
    Device device;
    std::unique_ptr<Pd> pd;
    std::unique_ptr<Mr> mr;
    std::unique_ptr<Cq> sends;
    std::unique_ptr<Cq> receives;
    std::vector<std::unique_ptr<Qp>> qps;
    std::unique_ptr<connections::Home> home;
    std::unique_ptr<Connector> connector;  // ends before the queue pairs that it connected
};

struct VerbsPair : testing::Test {
    static constexpr std::uint16_t kPort = 7471;

    VerbsPair() {
        a.port.join(b.port);
        b.port.join(a.port);
    }
    void run() {
        for (int quiet = 0; quiet < 3;) {
            const bool busy = a.turn(now);
            quiet = b.turn(now) || busy ? 0 : quiet + 1;
        }
    }
    // Lets time pass, event by event.
    void pass(Duration span) {
        const Instant end = now + span;
        while (now < end) {
            const Instant due = std::min(a.worker->next_deadline(), b.worker->next_deadline());
            now = std::min(end, std::max(now + microseconds(1), due));
            run();
        }
    }
    static ConnectTo to_b(std::span<const std::uint8_t> private_data = {}) {
        ConnectTo to;
        to.remote = net::IpAddress::parse("10.0.0.2").value();
        to.port = kPort;
        to.path_mtu_bytes = 4096;
        to.choice.access = kAllRemote;
        to.choice.private_data = private_data;
        return to;
    }
    static ConnectionChoice choice(std::span<const std::uint8_t> private_data = {}) {
        ConnectionChoice made;
        made.access = kAllRemote;
        made.private_data = private_data;
        return made;
    }
    // Connects a new queue pair of a's to one of b's. Returns their ids.
    std::pair<ConnectionId, ConnectionId> connect(const QpCapacity& capacity = {}) {
        a.qps.push_back(a.make_qp(capacity));
        b.qps.push_back(b.make_qp(capacity));
        (void)b.connector->listen(kPort, 64);
        const Result<ConnectionId> asked = a.connector->connect(*a.qps.back(), to_b(), now);
        EXPECT_TRUE(asked.ok());
        run();
        const auto requested = b.expect_event<cm::Requested>();
        EXPECT_TRUE(b.connector->accept(requested.id, *b.qps.back(), choice(), now).ok());
        run();
        EXPECT_EQ(a.expect_event<cm::Established>().id, asked.value());
        EXPECT_EQ(b.expect_event<cm::Established>().id, requested.id);
        return {asked.value(), requested.id};
    }
    PostVerdict write(std::uint64_t wr_id, std::uint32_t bytes) {
        const std::array<Sge, 1> sges{a.mr->sge(0, bytes)};
        SendRequest request;
        request.wr_id = wr_id;
        request.opcode = WorkOpcode::RdmaWrite;
        request.sges = sges;
        request.remote_address = b.mr->address();
        request.rkey = b.mr->rkey();
        return a.qps.back()->post_send(request);
    }
    static std::vector<Completion> drain(Cq& cq) {
        std::vector<Completion> all(cq.slots());
        all.resize(cq.poll(all));
        return all;
    }

    VerbsHost a{"10.0.0.1", 5};
    VerbsHost b{"10.0.0.2", 6};
    Instant now{1'000'000};
};

}  // namespace cairn::verbs
