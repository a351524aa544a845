// Bytes as the payloads of datagrams from a stranger to an endpoint that has a session: whatever comes, nothing
// breaks, invariants hold and every buffer returns.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "rpc/erpc/endpoint.hpp"
#include "tests/support/wire_port.hpp"

namespace {

using namespace cairn;

struct World {
    World() : port("10.0.0.1", 256), memory(1U << 20U), pool(memory), service(port), sender(port) {
        port.join(port);  // what it answers comes back to it
        erpc::EndpointConfig config;
        config.qp.qpn = Qpn{0x100};
        config.qp.qkey = Qkey{0x205};
        config.sessions_max = 8;
        config.calls_max = 32;
        endpoint = erpc::Endpoint::create(config, service, sender, pool).value();
        endpoint->set_handler(1, answer, nullptr);
        path = port.open_path({port.local_address(), port.local_address(), 1, 0}, now);
        const SessionId session = endpoint->connect({path, Qpn{0x100}, Qkey{0x205}}, now).value();
        erpc::Call call;
        call.type = 1;
        endpoint->post(session, call, now);
        turn();
    }
    static void answer(void*, const erpc::Request& request) {
        const auto bytes = static_cast<std::uint32_t>(request.payload.size());
        if (request.endpoint.reserve(request.handle, bytes).size() != bytes) {
            std::abort();  // the pool holds enough
        }
        request.endpoint.respond(request.handle, request.now);
    }
    void inject(std::span<const std::uint8_t> payload) {
        port::PacketRef packet = sender.take();
        if (packet.cookie == nullptr) {
            return;
        }
        roce::RawUd raw{};
        wire::Bth bth;
        bth.opcode = roce::kUdSendOnly;
        bth.dest_qpn = Qpn{0x100};
        bth.pad_count = static_cast<std::uint8_t>((4U - (payload.size() & 3U)) & 3U);
        bth.emit(raw.bth);
        raw.qkey.set(0x205);
        raw.source_qpn.set(0x100);
        std::memcpy(packet.data, &raw, sizeof(raw));
        if (!payload.empty()) {
            std::memcpy(packet.data + sizeof(raw), payload.data(), payload.size());
        }
        packet.len = static_cast<std::uint16_t>(sizeof(raw) + payload.size() + bth.pad_count + port::kIcrcBytes);
        packet.path = path;
        sender.send(packet, packet.path, packet.len, {}, now);
    }
    void turn() {
        for (int i = 0; i < 4; ++i) {
            now = now + microseconds(700);
            sender.flush(now);
            std::array<port::PacketRef, 16> burst;
            const std::size_t count = port.receive_burst(burst, now);
            service.on_packets(std::span(burst).first(count), now);
            endpoint->on_timeout(now);
            endpoint->check_invariants();
        }
    }
    Instant now{1'000'000};
    test::WirePort port;
    std::vector<std::uint8_t> memory;
    rpc::MsgPool pool;
    roce::UdService service;
    roce::Sender sender;
    std::unique_ptr<erpc::Endpoint> endpoint;
    port::Path* path = nullptr;
};

}  // namespace

// The input is a row of datagrams: a length byte, then that many bytes. A first payload byte with its high bit
// set is replaced by a well-formed start, so that the layers behind the header are reached.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    World world;
    while (size > 1) {
        const std::size_t bytes = std::min<std::size_t>(data[0], size - 1);
        std::vector<std::uint8_t> payload(data + 1, data + 1 + bytes);
        if (bytes >= sizeof(erpc::RawHeader) && (payload[0] & 0x80U) != 0) {
            payload[0] = erpc::kHeaderVersion;
            payload[1] &= 1U;
            payload[15] = static_cast<std::uint8_t>((payload[15] & 0xf0U) | erpc::kMagic);
        }
        world.inject(payload);
        world.turn();
        data += 1 + bytes;
        size -= 1 + bytes;
    }
    return 0;
}
