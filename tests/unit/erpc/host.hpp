// One host of the endpoint tests: port, engine and endpoint on a wire in memory.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "rpc/erpc/endpoint.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::erpc {

struct Host {
    static constexpr std::size_t kBuffers = 1024;
    static constexpr std::uint16_t kSessionsMax = 64;

    explicit Host(const char* address, std::uint64_t seed, BackgroundPool* background = nullptr,
                  std::uint32_t message_bytes_max = kMaxMessageBytes, std::uint16_t path_mtu = 1024)
        : port(address, kBuffers),
          memory(1U << 20U),
          pool(memory),
          max_message_bytes(message_bytes_max),
          path_mtu_bytes(path_mtu) {
        restart(seed, background);
    }
    void restart(std::uint64_t seed, BackgroundPool* background = nullptr) {
        endpoint.reset();
        sender.reset();
        service.emplace(port);
        sender.emplace(port);
        EndpointConfig config;
        config.qp.qpn = Qpn{0x100};
        config.qp.qkey = Qkey{0x205};
        config.qp.path_mtu_bytes = path_mtu_bytes;
        config.sessions_max = kSessionsMax;
        config.calls_max = 256;
        config.credits = 4;
        config.seed = {seed, 0};
        config.background = background;
        config.max_message_bytes = max_message_bytes;
        endpoint = Endpoint::create(config, *service, *sender, pool).value();
    }
    void turn(Instant now) {
        std::array<port::PacketRef, 16> burst;
        const std::size_t count = port.receive_burst(burst, now);
        service->on_packets(std::span(burst).first(count), now);
        endpoint->on_timeout(now);
        sender->flush(now);
        endpoint->check_invariants();
    }
    SessionId connect(const Host& to, Instant now) { return connect(to.port, now); }
    SessionId connect(const test::WirePort& to, Instant now) {
        const roce::UdAddress peer{port.open_path({port.local_address(), to.local_address(), 0xc000, 0}, now),
                                   Qpn{0x100}, Qkey{0x205}};
        return endpoint->connect(peer, now).value();
    }

    test::WirePort port;
    std::vector<std::uint8_t> memory;
    rpc::MsgPool pool;
    std::uint32_t max_message_bytes;
    std::uint16_t path_mtu_bytes;
    std::optional<roce::UdService> service;
    std::optional<roce::Sender> sender;
    std::unique_ptr<Endpoint> endpoint;
};

}  // namespace cairn::erpc
