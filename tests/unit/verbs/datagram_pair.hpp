// Two devices with a queue pair of datagrams each.
#pragma once

#include <array>
#include <cstring>
#include <memory>

#include "lib/verbs/ud_qp.hpp"
#include "tests/unit/verbs/verbs_pair.hpp"

namespace cairn::verbs {

constexpr Qkey kKey{0x1ee7};
constexpr std::uint32_t kPlace = 128;  // the place of each received message

struct Datagrams : VerbsPair {
    struct End {
        VerbsHost& host;
        std::unique_ptr<UdQp> qp;
        std::uint32_t posted = 0;
    };

    static End make(VerbsHost& host, Srq* srq = nullptr) {
        End end{host, host.device.create_datagram_qp(*host.pd, {}, {*host.sends, *host.receives, srq}).value()};
        EXPECT_EQ(end.qp->bring_up(kKey), std::nullopt);
        return end;
    }
    // Posts a receive request for a message at kPlace times the number of earlier ones; its number is the wr_id.
    static PostVerdict receive(End& end, std::uint32_t bytes = kPlace) {
        const std::array<Sge, 1> sges{end.host.mr->sge(end.posted * kPlace, bytes)};
        return end.qp->post_receive({end.posted++, sges});
    }
    DatagramRequest request(std::uint32_t bytes) {
        sges[0] = a.mr->sge(32768, bytes);
        DatagramRequest made;
        made.work.sges = sges;
        made.to = to_b.get();
        made.qpn = there.qp->qpn();
        made.qkey = kKey;
        return made;
    }
    PostVerdict send(std::uint32_t bytes) { return here.qp->post_send(request(bytes)); }
    static std::span<const std::uint8_t> place(End& end, std::uint32_t number) {
        return end.host.memory().subspan(number * kPlace, kPlace);
    }
    [[nodiscard]] static std::uint64_t drops(VerbsHost& host, roce::Drop reason) {
        return host.worker->datagrams().drops().of(reason);
    }
    std::unique_ptr<Ah> way(const char* address) {
        return a.device.create_ah(net::IpAddress::parse(address).value(), 0xc000, now).value();
    }

    std::array<Sge, 1> sges{};
    End here = make(a);
    End there = make(b);
    std::unique_ptr<Ah> to_b = way("10.0.0.2");
};

}  // namespace cairn::verbs
