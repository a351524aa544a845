// Bytes as events of two devices and their connectors. Connections are requested, taken, refused, ended and forgotten.
// There is work of every kind, datagrams to hosts and groups, regions and queue pairs that end at any moment, lost
// packets, and time. An unknown host and a host with the peer's address send packets. In all cases nothing breaks, no
// byte outside of the regions is touched, and in the end every buffer is back.
#include <algorithm>
#include <array>
#include <memory>

#include "tests/fuzz/verbs/fuzz_host.hpp"

namespace {

using namespace cairn;
using namespace cairn::verbs;
using cairn::test::Input;

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
        host.worker->turn(now);
        host.take_events();
        if (prompt) {
            answer(host);
        }
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
    // Destroys an unconnected queue pair.
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
        const std::uint32_t bytes = (flags & 1U) != 0 ? input.take<std::uint16_t>() % 5000U : 8U;
        const std::array<Sge, 1> sges{{{host.mr->address() + input.byte() * 8U, bytes, host.mr->lkey()}}};
        if ((flags & 2U) != 0) {
            (void)qp->post_receive(ReceiveRequest{1, sges});
            return;
        }
        SendRequest request;
        request.opcode = static_cast<roce::WorkOpcode>(input.byte() % static_cast<unsigned>(roce::WorkOpcode::Count));
        request.sges = sges;
        request.signalled = (flags & 4U) != 0;
        request.fence = (flags & 8U) != 0;
        request.remote_address = peer.mr->address() + input.byte() * 8U;
        request.rkey = peer.mr->rkey();
        (void)qp->post_send(request);
    }
    void post_datagram(Host& host, const Host& peer) {
        const std::uint8_t flags = input.byte();
        const std::uint32_t bytes = (flags & 1U) != 0 ? input.take<std::uint16_t>() % 1200U : 8U;
        const std::array<Sge, 1> sges{{{host.mr->address() + input.byte() * 8U, bytes, host.mr->lkey()}}};
        if ((flags & 2U) != 0) {
            (void)host.datagrams->post_receive(ReceiveRequest{1, sges});
            return;
        }
        const bool to_group = (flags & 4U) != 0;
        DatagramRequest request;
        request.work.opcode = static_cast<roce::WorkOpcode>(input.byte() % 4U);  // datagrams have only two of the
                                                                                 // opcodes
        request.work.sges = sges;
        request.work.signalled = (flags & 8U) != 0;
        request.qpn = to_group ? wire::kGroupQpn : peer.datagrams->qpn();
        request.qkey = (flags & 0xf0U) == 0 ? Qkey{8} : kQkey;
        const auto way = host.device->create_ah(net::IpAddress::parse(peer.address_text).value(), 0xc000, now);
        request.to = to_group ? host.group.get() : way.value().get();
        (void)host.datagrams->post_send(request);
    }
    void change_datagrams(Host& host) {
        const std::uint8_t how = input.byte();
        switch (how % 4U) {
            case 0:
                return host.make_datagram_qp();
            case 1:
                (void)host.datagrams->attach(*host.group);
                return;
            case 2:
                (void)host.datagrams->detach(*host.group);
                return;
            default:
                (void)host.datagrams->modify(static_cast<QpState>(how / 4U % static_cast<unsigned>(QpState::Count)));
        }
    }
    // Sends a datagram to `a` with a correct ICRC: any bytes, or a header for one of its queue pairs.
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
            bth.psn = Psn{input.take<std::uint16_t>()};
            emit_at(buffer[0].data, bth);
        } else if ((kind & 2U) != 0) {
            wire::Bth bth;
            bth.opcode = wire::opcode_of(wire::Service::Ud, wire::Operation::SendOnly);
            bth.dest_qpn = wire::kGeneralServicesQpn;
            emit_at(buffer[0].data, bth);
            emit_at(buffer[0].data + wire::Bth::kBytes, wire::Deth{wire::kGeneralServicesQkey, Qpn{1}});
        } else if ((kind & 4U) != 0) {
            wire::Bth bth;
            bth.opcode = wire::opcode_of(wire::Service::Ud, wire::Operation::SendOnlyImmediate);
            bth.dest_qpn = a.datagrams->qpn();
            bth.pad_count = static_cast<std::uint8_t>(kind >> 6U);
            emit_at(buffer[0].data, bth);
            emit_at(buffer[0].data + wire::Bth::kBytes, wire::Deth{kQkey, Qpn{9}});
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
        switch (what % 20U) {
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
                now = now + microseconds(input.take<std::uint16_t>() * (what / 16U));
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
            case 13:
            case 14:
                return post_datagram(one, other);
            case 15:
                return change_datagrams(one);
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
    bool idle = false;   // completions are not polled
    bool prompt = true;  // requests are answered at once
};

void end_all(Host& host) {
    host.connector.reset();
    host.qps.clear();
    host.datagrams.reset();
    host.group.reset();
    host.mr.reset();
    host.completions.reset();
    host.pd.reset();
    host.home.reset();
    host.device.reset();
    host.worker.reset();
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
