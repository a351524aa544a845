// Bytes as datagrams to an endpoint that has a session with itself: arbitrary payloads, and packets of that session
// that only its peer could send but never would. In all cases nothing breaks and invariants hold.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "rpc/erpc/endpoint.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/support/wire_port.hpp"

namespace {

using namespace cairn;

constexpr std::uint8_t kType = 1;
constexpr std::uint32_t kAnswerMost = 3'000;
constexpr std::uint32_t kPacketBytes = 1024 - sizeof(erpc::RawHeader);

struct World {
    World()
        : port("10.0.0.1", 256),
          memory(1U << 20U),
          pool(memory),
          worker(worker::Worker::create(port, roce::kDatagramsOnly, {}).value()),
          sender(worker->sender()) {
        port.join(port);  // its answers come back to it
        erpc::EndpointConfig config;
        config.qp.qpn = Qpn{0x100};
        config.qp.qkey = Qkey{0x205};
        config.sessions_max = 8;
        config.calls_max = 32;
        endpoint = erpc::Endpoint::create(config, *worker, pool).value();
        CAIRN_ASSERT(endpoint->set_handler(kType, answer, this, kAnswerMost).ok());
        path = port.open_path({port.local_address(), port.local_address(), 1, 0}, now);
        const SessionId session = endpoint->connect({path, Qpn{0x100}, Qkey{0x205}}, now).value();
        erpc::Call call;
        call.type = kType;
        endpoint->post(session, call, now);
        at_client = session;
        for (int i = 0; i < 8 && at_server.request_number == 0; ++i) {
            turn();
        }
        if (at_server.request_number == 0) {
            std::abort();  // an endpoint with a session can call
        }
    }
    static void answer(void* context, const erpc::Request& request) {
        auto& self = *static_cast<World*>(context);
        if (self.at_server.request_number == 0) {
            self.at_server = request.handle;
        }
        const auto bytes = std::min(static_cast<std::uint32_t>(request.payload.size()), kAnswerMost);
        if (request.endpoint.reserve(request.handle, bytes).size() != bytes) {
            std::abort();  // there is always room for that many
        }
        request.endpoint.respond(request.handle, request.now);
    }
    // Makes a call of several packets, so that there is something to answer.
    void call(std::size_t bytes) {
        erpc::Call what;
        what.type = kType;
        what.request = std::span(request).first(bytes);
        endpoint->post(at_client, what, now);
    }
    // Sends a packet of the session, to either end.
    void speak(test::Input& input) {
        constexpr std::array<std::uint32_t, 8> kSizes{0,     12,     kPacketBytes, kPacketBytes + 1,
                                                      5'000, 20'000, 300'000,      0xffffff};
        constexpr std::array<erpc::PacketType, 8> kTypes{erpc::PacketType::Request,  erpc::PacketType::Request,
                                                         erpc::PacketType::Request,  erpc::PacketType::Request,
                                                         erpc::PacketType::Request,  erpc::PacketType::Rfr,
                                                         erpc::PacketType::Response, erpc::PacketType::CreditReturn};
        const std::uint8_t which = input.byte();
        const std::uint8_t size = input.byte();
        const std::uint8_t packet = input.byte();
        erpc::Header header;
        header.type = kTypes[which & 7U];
        const bool to_server = header.type == erpc::PacketType::Request || header.type == erpc::PacketType::Rfr;
        header.session = to_server ? at_server.session : at_client;
        header.request_number = at_server.request_number + ((which >> 3U) & 1U) +
                                erpc::kSlotsPerSession * std::uint64_t{(which >> 4U) & 3U};
        header.request_type = (which & 0xc0U) == 0xc0U ? kType + 1 : kType;
        header.message_bytes = kSizes[size & 7U];
        header.packet_number = packet & ((size & 0x80U) != 0 ? 0xffU : 3U);
        std::size_t bytes = (size & 0x70U) == 0x70U ? input.byte() * 4U : kPacketBytes;
        if ((size & 0x70U) < 0x60U && header.packet_number < erpc::packets_of(header.message_bytes, kPacketBytes)) {
            bytes = erpc::bytes_of_packet(header.message_bytes, kPacketBytes, header.packet_number);
        }
        std::vector<std::uint8_t> payload(sizeof(erpc::RawHeader) + std::min<std::size_t>(bytes, kPacketBytes));
        header.emit(*reinterpret_cast<erpc::RawHeader*>(payload.data()));
        inject(payload);
    }
    void inject(std::span<const std::uint8_t> payload) {
        port::PacketRef packet = sender.take();
        if (packet.cookie == nullptr) {
            return;
        }
        wire::RawUd raw{};
        wire::Bth bth;
        bth.opcode = wire::kUdSendOnly;
        bth.dest_qpn = Qpn{0x100};
        bth.pad_count = static_cast<std::uint8_t>((4U - (payload.size() & 3U)) & 3U);
        bth.emit(raw.bth);
        raw.deth.qkey.set(0x205);
        raw.deth.source_qpn.set(0x100);
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
            worker->turn(now);
            endpoint->check_invariants();
        }
    }
    Instant now{1'000'000};
    test::WirePort port;
    std::vector<std::uint8_t> memory;
    rpc::MsgPool pool;
    std::unique_ptr<worker::Worker> worker;
    roce::Sender& sender;
    std::unique_ptr<erpc::Endpoint> endpoint;
    port::Path* path = nullptr;
    SessionId at_client{};
    erpc::RequestHandle at_server{};  // of the session's first call
    std::vector<std::uint8_t> request = std::vector<std::uint8_t>(20'000);
};

}  // namespace

// The input is a row of events, each with a byte that says which. A packet of the session. A datagram of a number of
// bytes, which follow; it has a well-formed start if its first byte has the high bit set. Time that passes. A call.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    World world;
    test::Input input(data, size);
    while (!input.empty()) {
        const std::uint8_t event = input.byte();
        if (event < 0x80) {
            world.speak(input);
        } else if (event < 0xf0) {
            std::vector<std::uint8_t> payload = input.bytes(event & 0x7fU);
            if (payload.size() >= sizeof(erpc::RawHeader) && (payload[0] & 0x80U) != 0) {
                payload[0] = erpc::kHeaderVersion;
                payload[1] &= 1U;
                payload[15] = static_cast<std::uint8_t>((payload[15] & 0xf0U) | erpc::kMagic);
            }
            world.inject(payload);
        } else if (event < 0xf8) {
            world.now = world.now + milliseconds(std::int64_t{1} << (event & 7U) * 2);
        } else {
            world.call(event == 0xf8 ? world.request.size() : event);
        }
        world.turn();
    }
    return 0;
}
