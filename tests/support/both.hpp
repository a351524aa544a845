// A client and a server that use eRPC and RDMA with each other at once.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "tests/support/tenants.hpp"

namespace cairn::connections {

constexpr std::uint16_t kService = 31850;
constexpr std::uint16_t kPort = 7471;

// Runs a client and a server over any transport. turn() lets time pass and gives all workers a turn.
template <class Turn>
void exchange_both(Tenants& client, Tenants& server, const Instant& now, const Turn& turn) {
    const auto until = [&](const auto& done) {
        for (int i = 0; i < 20'000 && !done(); ++i) {
            turn();
        }
        return done();
    };
    ASSERT_TRUE(server.directory->serve(kService, {server.endpoint->qpn(), kQkey, 1}).ok());
    ASSERT_TRUE(server.connector->listen(kPort, 4).ok());

    // Both ask at once, from queue pair 1 of the same host.
    ASSERT_TRUE(client.directory->ask(server.port.local_address(), kService, now).ok());
    verbs::ConnectTo to;
    to.remote = server.port.local_address();
    to.port = kPort;
    ASSERT_TRUE(client.connector->connect(*client.qp, to, now).ok());
    std::optional<erpc::ServiceAnswer> found;
    bool up = false;
    ASSERT_TRUE(until([&] {
        found = found ? found : client.directory->poll_answer();
        while (const auto event = server.connector->poll_event()) {
            if (const auto* requested = std::get_if<cm::Requested>(&*event)) {
                verbs::ConnectionChoice choice;
                choice.access = verbs::Right::RemoteWrite;
                EXPECT_TRUE(server.connector->accept(requested->id, *server.qp, choice, now).ok());
            }
        }
        while (const auto event = client.connector->poll_event()) {
            up = up || std::holds_alternative<cm::Established>(*event);
        }
        return found.has_value() && up;
    }));
    ASSERT_EQ(found->outcome, erpc::ServiceAnswer::Outcome::Found);

    // Calls and WRITEs side by side.
    roce::UdAddress peer;
    peer.path = client.home->own_path(server.port.local_address(), now);
    peer.qpn = found->offer.qpn;
    peer.qkey = found->offer.qkey;
    const SessionId session = client.endpoint->connect(peer, now).value();
    int answered = 0;
    int written = 0;
    for (int i = 0; i < 32; ++i) {
        const std::array<std::uint8_t, 3> said{1, 2, static_cast<std::uint8_t>(i)};
        erpc::Call call;
        call.type = kEcho;
        call.request = said;
        call.context = &answered;
        call.completion = [](void* context, const erpc::CallResult& result) {
            *static_cast<int*>(context) += result.status == erpc::CallStatus::Ok && result.response.size() == 3 ? 1 : 0;
        };
        (void)client.endpoint->post(session, call, now);
        verbs::SendRequest write;
        write.opcode = verbs::WorkOpcode::RdmaWrite;
        write.is_inline = true;
        write.inline_bytes = said;
        write.remote_address = server.mr->address() + static_cast<std::uint64_t>(i) * 8;
        write.rkey = server.mr->rkey();
        ASSERT_EQ(client.qp->post_send(write), verbs::PostVerdict::Posted);
        ASSERT_TRUE(until([&] {
            std::array<verbs::Completion, 4> done;
            for (const verbs::Completion& each : std::span(done).first(client.completions->poll(done))) {
                written += each.status == verbs::CompletionStatus::Success ? 1 : 0;
            }
            return answered == i + 1 && written == i + 1;
        })) << i;
        EXPECT_EQ(server.memory[static_cast<std::size_t>(i) * 8 + 2], i);
    }
}

}  // namespace cairn::connections
