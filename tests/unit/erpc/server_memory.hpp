// The common part of tests of a server's memory: packets that break the rules, and answers of one size.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {

class ServerMemory : public TwoHosts {
protected:
    static constexpr std::uint32_t kPacketBytes = 1024 - sizeof(RawHeader);
    static constexpr std::uint32_t kAnswerBytes = 4000;
    static constexpr std::uint32_t kAnswerTakes = 4096;  // of the pool

    // Opens the session in which packets are forged. Their numbers are derived from one call over it.
    void open_session() {
        forged = connect();
        post(forged, next_tag++);
        run(milliseconds(5));
        at_server = last.session;
        first_number = last.request_number;  // of slot 0
    }
    // Sends packet `packet` of a request in a slot, `round` rounds after the slot's first one. Its payload has
    // `payload_bytes`, or the correct length. A client that breaks the rules can send it.
    void forge(std::uint32_t slot, std::uint32_t round, std::uint32_t message_bytes, std::uint32_t packet,
               std::uint32_t payload_bytes = kNone) {
        Header header;
        header.request_type = kEcho;
        header.session = at_server;
        header.message_bytes = message_bytes;
        header.packet_number = static_cast<std::uint16_t>(packet);
        header.request_number = first_number + slot + std::uint64_t{round} * kSlotsPerSession;
        if (payload_bytes == kNone) {
            payload_bytes = bytes_of_packet(message_bytes, kPacketBytes, packet);
        }
        client.inject(server, header, std::vector<std::uint8_t>(payload_bytes), now);
    }
    // Makes the handler answer with this size. There is always room for it when the handler runs.
    void answer_by_size(std::uint32_t bytes) {
        answer_bytes = bytes;
        const Status set = server.endpoint->set_handler(
            kEcho,
            [](void* context, const Request& request) {
                auto& self = *static_cast<ServerMemory*>(context);
                std::uint64_t tag = 0;
                std::memcpy(&tag, request.payload.data(), sizeof(tag));
                ++self.executed[tag];
                ASSERT_EQ(request.endpoint.reserve(request.handle, self.answer_bytes).size(), self.answer_bytes);
                request.endpoint.respond(request.handle, request.now);
            },
            this, bytes);
        EXPECT_TRUE(set.ok());
    }
    Posted ask(SessionId session, std::uint64_t tag) {
        requests[tag].assign(sizeof(tag), 0);
        std::memcpy(requests[tag].data(), &tag, sizeof(tag));
        Call call;
        call.type = kEcho;
        call.request = requests[tag];
        call.context = this;
        call.tag = tag;
        call.completion = [](void* context, const CallResult& result) {
            static_cast<ServerMemory*>(context)->results[result.tag] = result.status;
        };
        return client.endpoint->post(session, call, now);
    }
    // Connects a third host on the server's network.
    SessionId connect_third(Host& third) {
        third.port.join(server.port);
        server.port.join(third.port);
        return third.connect(server, now);
    }
    void run_with(Host& third, Duration span) {
        for (const Instant end = now + span; now < end; now = now + microseconds(50)) {
            client.turn(now);
            third.turn(now);
            server.turn(now);
        }
    }
    [[nodiscard]] std::uint64_t drops(Drop reason) { return server.endpoint->statistics().of(reason); }

    std::uint64_t next_tag = 1'000;
    SessionId forged{};
    SessionId at_server{};
    std::uint64_t first_number = 0;
    std::uint32_t answer_bytes = 0;
};

// Makes a call whose end is stored in `status`. `request` and `status` outlive the call.
inline Call call_with(std::span<const std::uint8_t> request, CallStatus& status) {
    Call call;
    call.type = kEcho;
    call.request = request;
    call.context = &status;
    call.completion = [](void* context, const CallResult& result) {
        *static_cast<CallStatus*>(context) = result.status;
    };
    return call;
}

}  // namespace cairn::erpc
