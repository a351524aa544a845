// A client and a server of any RPC system, and handlers, for the tests of rpc_promises.hpp.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rpc/common/method.hpp"
#include "tests/support/take_all.hpp"

namespace cairn::rpc::test {

// A type with a codec of its own.
struct Shouted {
    std::string text;
};

}  // namespace cairn::rpc::test

// The encoding is the text with a call mark at its end.
template <>
struct cairn::rpc::Codec<cairn::rpc::test::Shouted> {
    [[nodiscard]] static std::size_t bytes_of(const test::Shouted& shouted) noexcept { return shouted.text.size(); }
    static void put(const test::Shouted& shouted, std::span<std::uint8_t> room) noexcept {
        std::copy(shouted.text.begin(), shouted.text.end(), room.begin());
    }
    [[nodiscard]] static std::optional<test::Shouted> get(std::span<const std::uint8_t> bytes) {
        return !bytes.empty() && bytes.back() == '!' ? std::optional(test::Shouted{{bytes.begin(), bytes.end()}})
                                                     : std::nullopt;
    }
};

namespace cairn::rpc::test {

constexpr std::uint8_t kEcho = 7;     // answers with the request
constexpr std::uint8_t kKeep = 8;     // keeps the handle
constexpr std::uint8_t kUnknown = 9;  // has no handler
constexpr std::uint8_t kLazy = 10;    // answers with room for as many bytes as the request asks for, and writes none of
                                      // them

struct Pixel {
    std::uint32_t x;
    std::uint32_t y;
};
struct Color {
    std::uint64_t value;
};
constexpr Method<Pixel, Color> kColorOf{11};

constexpr Method<std::string, Shouted> kShout{12};

struct Picture {
    [[nodiscard]] Shouted shout(const std::string& text) const { return {shouts_badly ? text : text + "!"}; }
    bool shouts_badly = false;
    [[nodiscard]] Color color_of(const Pixel& pixel) {
        ++asked;
        return {pixel.x * 1000ULL + pixel.y};
    }
    int asked = 0;
};

// The pair of hosts has: `using Endpoint`, `Endpoint& client()`, `Endpoint& server()`; `SessionId connect()`, which
// returns with the session open; `void run(Duration)` in virtual time, and `Instant now`. For a second client it has
// `Endpoint& other()` and `SessionId connect_other()`. It has `WirePort& server_port()` and `MsgPool& server_pool()`,
// and `void end_client()`, after which nothing runs any more.
template <class Pair>
class RpcPromises : public testing::Test {
protected:
    using Endpoint = typename Pair::Endpoint;

    RpcPromises() {
        server().set_handler(
            kEcho,
            [](void*, const Request<Endpoint>& request) {
                const auto bytes = static_cast<std::uint32_t>(request.payload.size());
                const std::vector<std::uint8_t> echoed(request.payload.begin(), request.payload.end());
                const std::span<std::uint8_t> room = request.endpoint.reserve(request.handle, bytes);
                ASSERT_EQ(room.size(), echoed.size());
                std::copy(echoed.begin(), echoed.end(), room.begin());
                request.endpoint.respond(request.handle, request.now);
            },
            nullptr);
        server().set_handler(
            kKeep,
            [](void* context, const Request<Endpoint>& request) {
                static_cast<RpcPromises*>(context)->kept.push_back(request.keep());
            },
            this);
        server().set_handler(
            kLazy,
            [](void*, const Request<Endpoint>& request) {
                std::uint32_t bytes = 0;
                ASSERT_EQ(request.payload.size(), sizeof(bytes));
                std::memcpy(&bytes, request.payload.data(), sizeof(bytes));
                ASSERT_EQ(request.endpoint.reserve(request.handle, bytes).size(), bytes);
                request.endpoint.respond(request.handle, request.now);
            },
            nullptr);
        EXPECT_TRUE((serve<kColorOf, &Picture::color_of>(server(), picture).ok()));
        EXPECT_TRUE((serve<kShout, &Picture::shout>(server(), picture).ok()));
    }
    Endpoint& client() { return pair.client(); }
    Endpoint& other() { return pair.other(); }
    Endpoint& server() { return pair.server(); }
    Posted post(SessionId session, std::uint64_t tag, std::uint8_t type = kEcho, std::size_t bytes = 40) {
        return post(client(), session, tag, type, std::vector(bytes, static_cast<std::uint8_t>(tag)));
    }
    Posted post(Endpoint& from, SessionId session, std::uint64_t tag, std::uint8_t type,
                const std::vector<std::uint8_t>& message) {
        requests[tag] = message;
        call.type = type;
        call.request = requests[tag];
        call.context = this;
        call.tag = tag;
        call.completion = [](void* context, const CallResult& result) {
            auto& self = *static_cast<RpcPromises*>(context);
            ASSERT_EQ(self.results.count(result.tag), 0U) << "completed twice";
            self.results[result.tag] = result.status;
            self.latencies[result.tag] = result.latency;
            self.responses[result.tag].assign(result.response.begin(), result.response.end());
        };
        return from.post(session, call, pair.now);
    }

    // Asks for an answer of this length, which its handler does not write.
    Posted post_lazy(Endpoint& from, SessionId session, std::uint64_t tag, std::uint32_t bytes) {
        std::vector<std::uint8_t> wish(sizeof(bytes));
        std::memcpy(wish.data(), &bytes, sizeof(bytes));
        return post(from, session, tag, kLazy, wish);
    }

    Pair pair;
    Picture picture;
    Call call;  // the call that post() completes
    std::vector<KeptRequest> kept;
    std::map<std::uint64_t, std::vector<std::uint8_t>> requests;
    std::map<std::uint64_t, std::vector<std::uint8_t>> responses;
    std::map<std::uint64_t, CallStatus> results;
    std::map<std::uint64_t, Duration> latencies;
};

}  // namespace cairn::rpc::test
