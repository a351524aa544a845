// Bytes as what happens to two devices and their connectors: connections asked for, taken, refused, ended and
// forgotten, work of every kind, regions and queue pairs that end at any moment, lost packets, time; and datagrams of a
// stranger and of one who has the peer's address. Whatever comes: nothing breaks, no byte is touched outside of the
// regions, events are what the connections' states allow, and in the end every buffer is back.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/verbs/connector.hpp"
#include "tests/support/guarded_pages.hpp"
#include "tests/support/wire_port.hpp"

namespace {

using namespace cairn;
using namespace cairn::verbs;

constexpr Rights kRemote = Rights{Right::RemoteWrite} | Right::RemoteRead | Right::RemoteAtomic;
constexpr std::uint16_t kService = 7471;
constexpr std::size_t kBuffers = 512;

// The input, read to its end; then zeros.
class Input {
public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
    [[nodiscard]] bool empty() const { return rest_.empty(); }
    std::uint8_t byte() {
        const std::uint8_t first = rest_.empty() ? std::uint8_t{0} : rest_.front();
        rest_ = rest_.subspan(rest_.empty() ? 0 : 1);
        return first;
    }
    std::uint32_t word() { return byte() * 256U + byte(); }

private:
    std::span<const std::uint8_t> rest_;
};

void require(bool holds) {
    if (!holds) {
        std::abort();
    }
}

struct Host {
    Host(const char* address, std::uint64_t seed) : port(address, kBuffers), address_text(address) {
        roce::EngineConfig config;
        config.seed = {seed, 1};
        config.max_queue_pairs = 8;
        device = std::make_unique<Device>(port, config, Instant{});
        pd = device->create_pd();
        connector = Connector::create(*device, {}).value();
        require(connector->listen(kService, 2).ok());
        completions = device->create_cq(64).value();
        register_memory();
    }
    void register_memory() {
        mr.reset();
        mr = device->register_memory(*pd, pages.span(), kRemote | Right::LocalWrite).value();
    }
    [[nodiscard]] Qp* choose(std::uint8_t which) const { return qps.empty() ? nullptr : qps[which % qps.size()].get(); }

    Qp* make_qp(std::uint8_t bits) {
        QpCapacity capacity;
        capacity.send_slots = 4;
        capacity.receive_slots = 4;
        capacity.window_packets = 8;
        capacity.service = (bits & 1U) != 0 ? wire::Service::Uc : wire::Service::Rc;
        auto made = device->create_qp(*pd, capacity, {*completions, *completions});
        if (!made.ok()) {
            return nullptr;
        }
        return qps.emplace_back(std::move(made).value()).get();
    }
    void take_events() {
        while (const std::optional<cm::Event> event = connector->poll_event()) {
            if (const auto* const requested = std::get_if<cm::Requested>(&*event)) {
                asked.push_back(requested->id);
            }
            std::erase_if(links, [](const auto& link) { return !link.second->in_use(); });
        }
    }
    // The connection of a queue pair that has one.
    [[nodiscard]] std::optional<ConnectionId> link_of(const Qp* qp) const {
        const auto found = std::find_if(links.begin(), links.end(), [qp](const auto& one) { return one.second == qp; });
        return found == links.end() ? std::nullopt : std::optional(found->first);
    }

    test::GuardedPages pages{1};
    test::WirePort port;
    const char* address_text;
    std::unique_ptr<Device> device;
    std::unique_ptr<Pd> pd;
    std::unique_ptr<Mr> mr;
    std::unique_ptr<Cq> completions;
    std::vector<std::unique_ptr<Qp>> qps;
    std::unique_ptr<Connector> connector;  // ends before the queue pairs
    std::vector<ConnectionId> asked;
    std::map<ConnectionId, Qp*> links;
};

struct World {
    explicit World(Input& all) : input(all) {
        a.port.join(b.port);
        b.port.join(a.port);
        for (test::WirePort* const port : {&stranger, &impostor}) {
            port->join(a.port);
        }
        a.port.fate = b.port.fate = [this](std::uint64_t) { return losses != 0 && input.byte() < losses ? 0 : 1; };
        connect(a, b);
        for (int i = 0; i < 6; ++i) {
            turn(a);
            turn(b);
        }
        prompt = (input.byte() & 1U) != 0;
    }

    void turn(Host& host) {
        (void)host.device->begin_turn(now);
        host.connector->on_timeout(now);
        host.take_events();
        if (prompt) {
            answer(host);
        }
        host.device->end_turn(now);
        std::array<Completion, 16> some;
        if (!idle) {
            while (host.completions->poll(some) != 0) {
            }
        }
    }
    void connect(Host& from, const Host& to) {
        Qp* const qp = from.make_qp(input.byte());
        if (qp == nullptr) {
            return;
        }
        ConnectTo where;
        where.remote = net::IpAddress::parse(to.address_text).value();
        where.port = static_cast<std::uint16_t>(kService + (input.byte() == 0));
        where.path_mtu_bytes = 256U << (input.byte() % 5U);
        where.choice.access = kRemote;
        const Result<ConnectionId> id = from.connector->connect(*qp, where, now);
        if (id.ok()) {
            from.links[id.value()] = qp;
        }
    }
    void answer(Host& host) {
        if (host.asked.empty()) {
            return;
        }
        const ConnectionId id = host.asked.back();
        host.asked.pop_back();
        const std::uint8_t how = input.byte();
        Qp* const qp = host.make_qp(how >> 2U);
        if ((how & 3U) == 3 || qp == nullptr) {
            (void)host.connector->reject(id, {}, now);
            return;
        }
        ConnectionChoice choice;
        choice.access = kRemote;
        if (host.connector->accept(id, *qp, choice, now).ok()) {
            host.links[id] = qp;
        }
    }
    void end(Host& host) {
        const std::uint8_t how = input.byte();
        Qp* const qp = host.choose(how >> 2U);
        const std::optional<ConnectionId> id = qp != nullptr ? host.link_of(qp) : std::nullopt;
        if (!id.has_value()) {
            return;
        }
        if ((how & 1U) != 0) {
            (void)host.connector->disconnect(*id, {}, now);
        } else {
            host.connector->abandon(*id, now);
            host.links.erase(*id);
        }
    }
    // Of what is connected to nobody.
    void destroy(Host& host) {
        Qp* const qp = host.choose(input.byte());
        if (qp != nullptr && !qp->in_use()) {
            host.qps.erase(
                std::find_if(host.qps.begin(), host.qps.end(), [qp](const auto& one) { return one.get() == qp; }));
        }
    }
    void post(Host& host, const Host& peer) {
        Qp* const qp = host.choose(input.byte());
        if (qp == nullptr) {
            return;
        }
        const std::uint8_t flags = input.byte();
        const std::uint32_t bytes = (flags & 1U) != 0 ? input.word() % 5000U : 8U;
        const std::array<Sge, 1> sges{{{host.mr->address() + input.byte() * 8U, bytes, host.mr->lkey()}}};
        if ((flags & 2U) != 0) {
            (void)qp->post_receive(ReceiveRequest{1, sges});
            return;
        }
        SendRequest request;
        request.opcode =
            static_cast<roce::rc::WorkOpcode>(input.byte() % static_cast<unsigned>(roce::rc::WorkOpcode::Count));
        request.sges = sges;
        request.signalled = (flags & 4U) != 0;
        request.fence = (flags & 8U) != 0;
        request.remote_address = peer.mr->address() + input.byte() * 8U;
        request.rkey = peer.mr->rkey();
        (void)qp->post_send(request);
    }
    // A datagram to `a` whose ICRC holds: any bytes, or a header for one of its queue pairs.
    void intrude(test::WirePort& from) {
        std::array<port::PacketRef, 1> buffer;
        if (from.allocate_burst(buffer) == 0) {
            return;
        }
        const std::uint8_t kind = input.byte();
        const std::size_t len = wire::Bth::kBytes + port::kIcrcBytes + kind % 64U;
        for (std::size_t i = 0; i < len; ++i) {
            buffer[0].data[i] = input.byte();
        }
        if (const Qp* const qp = a.choose(kind >> 6U); qp != nullptr && (kind & 1U) != 0) {
            wire::Bth bth;
            bth.opcode = buffer[0].data[0] & 0x3fU;
            bth.dest_qpn = qp->qpn();
            bth.psn = Psn{input.word()};
            emit_at(buffer[0].data, bth);
        } else if ((kind & 2U) != 0) {
            wire::Bth bth;
            bth.opcode = wire::opcode_of(wire::Service::Ud, wire::Operation::SendOnly);
            bth.dest_qpn = wire::kGeneralServicesQpn;
            emit_at(buffer[0].data, bth);
            emit_at(buffer[0].data + wire::Bth::kBytes, wire::Deth{wire::kGeneralServicesQkey, Qpn{1}});
        }
        buffer[0].len = static_cast<std::uint16_t>(len);
        buffer[0].path = from.open_path({from.local_address(), a.port.local_address(), 0xc000, 0}, now);
        port::TxPacket packet;
        packet.packet = buffer[0];
        (void)from.transmit_burst({&packet, 1}, now);
    }
    void modify(Host& host) {
        Qp* const qp = host.choose(input.byte());
        if (qp != nullptr) {
            (void)qp->modify(static_cast<QpState>(input.byte() % static_cast<unsigned>(QpState::Count)));
        }
    }
    void step() {
        const std::uint8_t what = input.byte();
        Host& one = (what & 0x80U) != 0 ? b : a;
        Host& other = (what & 0x80U) != 0 ? a : b;
        switch (what % 16U) {
            case 0:
                return connect(one, other);
            case 1:
                return answer(one);
            case 2:
                return end(one);
            case 3:
                return destroy(one);
            case 4:
                return one.register_memory();
            case 5:
                return modify(one);
            case 6:
                now = now + microseconds(input.word() * (what / 16U));
                return;
            case 7:
                losses = input.byte() % 128U;
                return;
            case 8:
                idle = !idle;
                return;
            case 9:
                return intrude((what & 0x40U) != 0 ? stranger : impostor);
            case 10:
            case 11:
            case 12:
                return post(one, other);
            default:
                turn(one);
                return turn(other);
        }
    }

    Input& input;
    Host a{"10.0.0.1", 1};
    Host b{"10.0.0.2", 2};
    test::WirePort stranger{"10.0.0.3", 8};
    test::WirePort impostor{"10.0.0.2", 8};
    Instant now{1'000'000};
    std::uint8_t losses = 0;
    bool idle = false;   // nobody looks at completions
    bool prompt = true;  // requests are answered at once
};

void end_all(Host& host) {
    host.connector.reset();
    host.qps.clear();
    host.mr.reset();
    host.completions.reset();
    host.pd.reset();
    host.device.reset();
    require(host.port.buffers_in_use() == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    World world(input);
    while (!input.empty()) {
        world.step();
    }
    end_all(world.a);
    end_all(world.b);
    return 0;
}
