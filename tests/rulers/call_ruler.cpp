// What a small call costs both sides without a device: two workers with an eRPC endpoint each, joined in memory.
//
//     call_ruler CALLS [WINDOW]     makes so many calls, WINDOW of them at a time, over 8 sessions
//
// Under callgrind (--toggle-collect=counted_part*) only the calls are counted, neither the set-up nor the end.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "lib/base/copy.hpp"
#include "lib/port/path_table.hpp"
#include "lib/worker/worker.hpp"
#include "rpc/erpc/endpoint.hpp"

namespace {

using namespace cairn;

constexpr std::size_t kHeadroom = 128;
constexpr std::size_t kRoom = 2048;
constexpr std::size_t kRing = 4096;
constexpr std::size_t kBuffers = 2048;
constexpr std::uint8_t kEcho = 1;
constexpr std::uint32_t kMessageBytes = 32;
constexpr std::size_t kSessions = 8;

struct alignas(64) Buffer {
    std::array<std::uint8_t, kHeadroom + kRoom> bytes;
};

// Frames are handed over where they lie; headers and ICRC are written and judged as on a network.
class MemoryPort final : public port::Port {
public:
    MemoryPort(const char* address, std::uint8_t mac) : address_(net::IpAddress::parse(address).value()) {
        mac_.octets = {2, 0, 0, 0, 0, mac};
        for (Buffer& buffer : buffers_) {
            free_.push_back(&buffer);
        }
    }
    void connect(MemoryPort& other) { peer_ = &other; }

    [[nodiscard]] std::size_t receive_burst(std::span<port::PacketRef> out, Instant now) noexcept override {
        paths_.begin_burst();
        empty_at_ = now;
        if (known_ == nullptr) {
            known_ = open_path({address_, peer_->address_, port::kFirstUdpSourcePort, 0}, now);
        }
        const std::size_t count = std::min(out.size(), tail_ - head_);
        const Frame* const ring = ring_.data();
        port::Path& path = *known_;
        std::size_t at = head_;
        for (port::PacketRef& packet : out.first(count)) {
            const Frame& frame = ring[at++ % kRing];
            if (path.judge_arrival(frame.bytes, frame.length, packet) != port::Path::Arrival::Whole) {
                std::abort();
            }
            packet.cookie = frame.buffer;
            packet.room = kRoom - port::Path::kLowerBytesV4;
            paths_.keep(path);
        }
        head_ = at;
        return count;
    }
    [[nodiscard]] Instant empty_at() const noexcept override { return empty_at_; }
    [[nodiscard]] std::size_t transmit_burst(std::span<port::TxPacket> packets, Instant) noexcept override {
        constexpr std::size_t kLower = port::Path::kLowerBytesV4;
        Frame* const ring = peer_->ring_.data();
        std::size_t at = peer_->tail_;
        for (const port::TxPacket& each : packets) {
            each.packet.path->seal(each.packet.data, each.packet.len);
            ring[at++ % kRing] = {each.packet.data - kLower, each.packet.len + kLower, each.packet.cookie};
        }
        peer_->tail_ = at;
        return packets.size();
    }
    [[nodiscard]] std::size_t allocate_burst(std::span<port::PacketRef> out) noexcept override {
        std::size_t count = 0;
        for (; count < out.size() && !free_.empty(); ++count) {
            Buffer* const buffer = free_.back();
            free_.pop_back();
            constexpr std::size_t kLower = port::Path::kLowerBytesV4;
            out[count] = {};
            out[count].cookie = buffer;
            out[count].data = buffer->bytes.data() + kHeadroom + kLower;
            out[count].room = static_cast<std::uint16_t>(kRoom - kLower);
        }
        return count;
    }
    void release_burst(std::span<port::PacketRef> packets) noexcept override {
        for (port::PacketRef& packet : packets) {
            if (packet.cookie != nullptr) {
                free_.push_back(static_cast<Buffer*>(packet.cookie));
                packet.cookie = nullptr;
            }
        }
    }
    [[nodiscard]] bool can_send_from(std::span<const std::uint8_t>) const noexcept override { return false; }
    [[nodiscard]] port::Path* open_path(const port::PathKey& key, Instant) noexcept override {
        port::Path* const path = paths_.intern(key);
        path->resolve(mac_, peer_->mac_);
        return path;
    }
    void on_timeout(Instant) noexcept override {}
    [[nodiscard]] Instant next_deadline() const noexcept override { return Instant::never(); }
    [[nodiscard]] net::IpAddress local_address() const noexcept override { return address_; }
    [[nodiscard]] port::PortLimits limits() const noexcept override { return {1200, 32, true, false}; }
    [[nodiscard]] std::string describe() const override { return "memory"; }

private:
    struct Frame {
        std::uint8_t* bytes;
        std::size_t length;
        void* buffer;
    };
    net::IpAddress address_;
    net::MacAddress mac_{};
    MemoryPort* peer_ = nullptr;
    port::Path* known_ = nullptr;
    Instant empty_at_{};
    std::size_t head_ = 0;
    std::size_t tail_ = 0;
    std::vector<Buffer> buffers_{kBuffers};  // they change hands: both sides end together
    std::vector<Buffer*> free_;
    std::vector<Frame> ring_{kRing};
    port::PathTable paths_{256};
};

struct Side {
    Side(const char* address, std::uint8_t number)
        : port(address, number), memory(std::size_t{4} << 20U), pool(memory) {}
    void start() {
        worker = worker::Worker::create(port, roce::kDatagramsOnly, {}).value();
        erpc::EndpointConfig config;
        config.qp.qpn = Qpn{0x100};
        config.qp.qkey = Qkey{0x205};
        config.sessions_max = 256;
        config.seed = {address_key(), 1};
        endpoint = erpc::Endpoint::create(config, *worker, pool).value();
    }
    [[nodiscard]] std::uint64_t address_key() const { return reinterpret_cast<std::uintptr_t>(this); }

    MemoryPort port;
    std::vector<std::uint8_t> memory;
    rpc::MsgPool pool;
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<erpc::Endpoint> endpoint;
};

void serve(void*, const erpc::Request& request) {
    request.endpoint.answer(request.handle, request.payload, request.now);
}

struct Ruler {
    Ruler() : client("10.77.0.2", 2), server("10.77.0.1", 1) {
        client.port.connect(server.port);
        server.port.connect(client.port);
        client.start();
        server.start();
        server.endpoint->set_handler(kEcho, serve, nullptr, kMessageBytes);
        request = client.pool.allocate(kMessageBytes);
        std::memset(request.data, 0x5a, kMessageBytes);
        for (SessionId& session : sessions) {
            port::Path* const path = client.port.open_path(
                {client.port.local_address(), server.port.local_address(), port::kFirstUdpSourcePort, 0}, now);
            session = client.endpoint->connect({path, Qpn{0x100}, Qkey{0x205}}, now).value();
        }
        what = draft();
        for (int i = 0; i < 100; ++i) {
            turn();
        }
    }
    void turn() {
        now = now + nanoseconds(300);
        client.worker->turn(now);
        server.worker->turn(now);
    }
    // What all calls have in common.
    [[nodiscard]] erpc::Call draft() {
        erpc::Call made;
        made.type = kEcho;
        made.request = request.span();
        made.context = this;
        made.completion = [](void* context, const erpc::CallResult& result) {
            auto& self = *static_cast<Ruler*>(context);
            if (result.status != erpc::CallStatus::Ok || result.response.size() != kMessageBytes) {
                std::abort();
            }
            ++self.completed;
            if (self.left != 0) {
                --self.left;
                self.call(result.tag);
            }
        };
        return made;
    }
    void call(std::uint64_t session) {
        what.tag = session;
        if (client.endpoint->post(sessions[session], what, now).verdict != erpc::PostVerdict::Posted) {
            std::abort();
        }
    }

    Instant now{1'000'000};
    Side client;
    Side server;
    rpc::MsgBuffer request;
    erpc::Call what;
    std::array<SessionId, kSessions> sessions{};
    std::uint64_t left = 0;
    std::uint64_t completed = 0;
};

// What callgrind counts: from the first of these calls to the last.
[[gnu::noinline]] void counted_part(Ruler& ruler, std::uint64_t calls, std::uint64_t window) {
    const std::uint64_t until = ruler.completed + calls;
    ruler.left = calls - window;
    for (std::uint64_t i = 0; i < window; ++i) {
        ruler.call(i % kSessions);
    }
    while (ruler.completed < until) {
        ruler.turn();
    }
}

[[gnu::noinline]] void warm_up(Ruler& ruler, std::uint64_t calls) {
    ruler.left = calls - 1;
    ruler.call(0);
    while (ruler.completed < calls) {
        ruler.turn();
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
    const std::uint64_t window = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 60;
    if (calls < window || window == 0 || window > 256) {
        std::fputs("usage: call_ruler CALLS [WINDOW]; at least as many calls as the window, which is 1 to 256\n",
                   stderr);
        return 2;
    }
    auto ruler = std::make_unique<Ruler>();
    warm_up(*ruler, 2000);
    counted_part(*ruler, calls, window);
    ruler->client.endpoint->check_invariants();
    ruler->server.endpoint->check_invariants();
    std::printf("%llu calls\n", static_cast<unsigned long long>(calls));
    return 0;
}
