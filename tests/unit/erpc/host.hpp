// One host of the endpoint tests: port, engine and endpoint on a wire in memory.
#pragma once

#include <array>
#include <cstring>
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
        : port(address, kBuffers) {
        config.qp.qpn = Qpn{0x100};
        config.qp.qkey = Qkey{0x205};
        config.qp.path_mtu_bytes = path_mtu;
        config.sessions_max = kSessionsMax;
        config.calls_max = 256;
        config.credits = 4;
        config.max_message_bytes = message_bytes_max;
        give_memory(std::size_t{1} << 20U);
        restart(seed, background);
    }
    // Restarts the host with the current `config`.
    void restart(std::uint64_t seed, BackgroundPool* background = nullptr) {
        endpoint.reset();
        worker.reset();
        worker = worker::Worker::create(port, roce::kDatagramsOnly, {}).value();
        config.seed = {seed, 0};
        config.background = background;
        endpoint = Endpoint::create(config, *worker, *pool).value();
    }
    // Restarts the host with this much memory for messages.
    void restart(std::uint64_t seed, std::size_t pool_bytes) {
        endpoint.reset();
        give_memory(pool_bytes);
        restart(seed);
    }
    void give_memory(std::size_t pool_bytes) {
        memory.assign(pool_bytes + mem::BufferPool::kSmallestBytes, 0);  // the pool begins at a multiple of that
        pool.emplace(memory);
    }
    // Sends a datagram from this host's queue pair without its endpoint's knowledge.
    void inject(const Host& to, const Header& header, std::span<const std::uint8_t> payload, Instant now) {
        roce::Sender& sender = worker->sender();
        port::PacketRef packet = sender.take();
        wire::RawUd raw{};
        wire::Bth bth;
        bth.opcode = wire::kUdSendOnly;
        bth.dest_qpn = to.config.qp.qpn;
        bth.pad_count = static_cast<std::uint8_t>((4U - (payload.size() & 3U)) & 3U);
        bth.emit(raw.bth);
        raw.deth.qkey.set(config.qp.qkey.value);
        raw.deth.source_qpn.set(config.qp.qpn.value);
        std::memcpy(packet.data, &raw, sizeof(raw));
        header.emit(*reinterpret_cast<RawHeader*>(packet.data + sizeof(raw)));
        constexpr std::size_t kHeaders = sizeof(raw) + sizeof(RawHeader);
        if (!payload.empty()) {
            std::memcpy(packet.data + kHeaders, payload.data(), payload.size());
        }
        port::Path* const path = port.open_path({port.local_address(), to.port.local_address(), 0xc000, 0}, now);
        sender.send(packet, path, kHeaders + payload.size() + bth.pad_count + port::kIcrcBytes, {}, now);
        sender.flush(now);
    }
    void turn(Instant now) {
        worker->turn(now);
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
    std::optional<rpc::MsgPool> pool;
    EndpointConfig config;
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<Endpoint> endpoint;
};

}  // namespace cairn::erpc
