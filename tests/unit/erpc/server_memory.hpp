// What tests of a server's memory have in common: packets that follow no rules, and answers of one size.
#pragma once

#include <gtest/gtest.h>

#include "tests/unit/erpc/two_hosts.hpp"

namespace cairn::erpc {

class ServerMemory : public TwoHosts {
protected:
    static constexpr std::uint32_t kPacketBytes = 1024 - sizeof(RawHeader);
    static constexpr std::uint32_t kAnswerBytes = 4000;
    static constexpr std::uint32_t kAnswerTakes = 4096;  // of the pool

    // The session that packets are forged for; their numbers follow from one call over it.
    void open_session() {
        forged = connect();
        post(forged, next_tag++);
        run(milliseconds(5));
        at_server = last.session;
        first_number = last.request_number;  // of slot 0
    }
    // What a client can send that follows no rules: packet `packet` of a request in a slot, so many rounds after the
    // slot's first, with a payload of `payload_bytes` or as many as there should be.
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
    // Answers of one size, for which there is always room when the handler runs.
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
    // A session of a third host on the server's network.
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

// How it ends is told to `status`; `request` and it outlive the call.
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
