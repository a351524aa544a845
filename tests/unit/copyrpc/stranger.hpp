// A stranger: a host that makes connections to an endpoint itself and writes by hand.
#pragma once

#include "tests/unit/copyrpc/two_hosts.hpp"
#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::copyrpc {

constexpr std::uint32_t kRing = 4096;
constexpr int kSessions = 24;

// A host that makes connections itself and writes by hand.
struct Stranger : verbs::VerbsHost {
    explicit Stranger(const char* address) : VerbsHost(address, 99), qp(qps.emplace_back(make_qp()).get()) {}
    void ask(std::span<const std::uint8_t> private_data, Instant now) {
        verbs::ConnectTo to;
        to.remote = net::IpAddress::parse("10.0.0.2").value();
        to.port = kService;
        to.choice.access = verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::RemoteRead;
        to.choice.private_data = private_data;
        ASSERT_TRUE(connector->connect(*qp, to, now).ok());
    }
    void look() {
        while (const std::optional<cm::Event> event = connector->poll_event()) {
            if (const auto* up = std::get_if<cm::Established>(&*event)) {
                peer = Hello::parse(std::span(up->private_data.octets).first(up->private_data.size));
            } else if (std::holds_alternative<cm::Rejected>(*event)) {
                refused = true;
            } else if (std::holds_alternative<cm::DisconnectRequested>(*event)) {
                ended = true;
            }
        }
    }
    // Writes the batch at `offset` of the memory to the same place of the peer's ring.
    void write(std::uint32_t immediate, std::uint32_t bytes = kBlockBytes, std::uint32_t offset = 0) {
        const std::array<verbs::Sge, 1> pieces{mr->sge(offset, bytes)};
        verbs::SendRequest request;
        request.opcode = verbs::WorkOpcode::RdmaWriteWithImmediate;
        request.sges = pieces;
        request.immediate = immediate;
        request.remote_address = peer->address + offset;
        request.rkey = peer->rkey;
        EXPECT_EQ(qp->post_send(request), verbs::PostVerdict::Posted);
    }

    verbs::Qp* qp;  // one of `qps`, which end after the connector
    std::optional<Hello> peer;
    bool refused = false;
    bool ended = false;
};

class CopyrpcStranger : public TwoHosts {
protected:
    CopyrpcStranger() : TwoHosts(config()) {
        stranger.port.join(server.port);
        server.port.join(stranger.port);
    }
    static EndpointConfig config() {
        EndpointConfig config;
        config.ring_bytes = kRing;
        config.receives = 16;
        config.answer_bytes = 400;
        config.sessions_max = config.host_sessions_max = kSessions;
        return config;
    }
    static RawHello hello() {
        RawHello raw;
        Hello{kRing, 16, 0, Rkey{}}.emit(raw);
        return raw;
    }
    void ask(const RawHello& raw) {
        stranger.ask({reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)}, now);
        run_all(milliseconds(5));
    }
    void run_all(Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(20)) {
            client.turn(now);
            server.turn(now);
            stranger.worker->turn(now);
            stranger.look();
        }
    }
    // Composes a batch of one message at most, in the stranger's memory.
    void compose(const Message& message, const BatchHeader& header, std::uint32_t offset = 0) {
        RawBatchHeader raw;
        header.emit(raw);
        const std::span<std::uint8_t> room = stranger.memory().subspan(offset);
        std::memcpy(room.data(), &raw, sizeof(raw));
        (void)message.emit(room.subspan(kBlockBytes));
    }
    // Sends the first batch of its connection, with this message.
    void send_first(const Message& message) {
        compose(message, {0, 1, 0, 0, 0});
        stranger.write(1 + message.blocks(), (1 + message.blocks()) * kBlockBytes);
        run_all(milliseconds(5));
    }
    std::uint64_t breaches(Breach breach) { return server.endpoint->statistics().breaches.of(breach); }

    Stranger stranger{"10.0.0.9"};
};

}  // namespace cairn::copyrpc
