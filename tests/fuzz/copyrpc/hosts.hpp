// The hosts of a fuzzer of copyrpc that keep to the rules. Each call of the client must be answered.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "rpc/copyrpc/endpoint.hpp"
#include "tests/fuzz/endpoint_host.hpp"

namespace cairn::copyrpc {

using test::require;

constexpr const char* kServerAddress = "10.0.0.2";
constexpr std::uint16_t kService = 7472;
constexpr std::uint32_t kRing = RingShape::kLeastBytes;
constexpr RingShape kShape{kRing / kBlockBytes};
constexpr std::uint16_t kReceives = 8;
constexpr std::uint16_t kSessionsMost = 8;
constexpr std::uint16_t kHonestSessions = 2;  // the first ones of the server
constexpr std::uint32_t kCallsMost = 32;
constexpr std::uint32_t kLongest = 4096;  // the longest messages that travel by themselves
enum Type : std::uint8_t { kEcho = 1, kKeep, kDrop, kNobody };

class EndpointHost : public test::EndpointHost<Endpoint> {
public:
    EndpointHost(const char* address, std::uint64_t seed, const EndpointConfig& its_config)
        : test::EndpointHost<Endpoint>(address, seed, its_config, std::size_t{1} << 20U, 192), config(its_config) {}

    const EndpointConfig config;
};

class HonestClient : public EndpointHost {
public:
    explicit HonestClient(const EndpointConfig& its_config) : EndpointHost("10.0.0.1", 11, its_config) {
        endpoint->set_handler(
            kEcho,
            [](void*, const Request& request) {
                require(request.endpoint.answer(request.handle, request.payload, request.now));
            },
            nullptr);
    }
    void connect(Instant now) {
        for (SessionId& session : sessions_) {
            session = endpoint->connect(net::IpAddress::parse(kServerAddress).value(), kService, now).value();
        }
    }
    // Makes calls that are alike. The server keeps half of them in its ring.
    void call(std::uint8_t what, Instant now) {
        for (std::uint32_t left = 1U + what % 4U; left > 0; --left) {
            call_once(what, now);
        }
    }
    void turn(Instant now) { (void)worker->turn(now); }
    [[nodiscard]] bool is_waiting() const { return !requests_.empty(); }

private:
    void call_once(std::uint8_t what, Instant now) {
        const std::uint64_t tag = ++calls_;
        std::vector<std::uint8_t>& request = requests_[tag];
        const std::uint32_t bytes = what * 2U;
        request.assign(bytes * (config.message_bytes_max != 0 && bytes > 256 ? 8U : 1U), what);
        Call call;
        call.type = (what & 4U) != 0 ? kKeep : kEcho;
        call.request = request;
        call.tag = tag;
        call.trace = tag;
        call.context = this;
        call.completion = [](void* self, const rpc::CallResult& result) {
            static_cast<HonestClient*>(self)->on_completed(result);
        };
        if (endpoint->post(sessions_[what % kHonestSessions], call, now).verdict != PostVerdict::Posted) {
            requests_.erase(tag);  // too many are under way already
        }
    }
    void on_completed(const rpc::CallResult& result) {
        const auto found = requests_.find(result.tag);
        require(found != requests_.end() && result.status == CallStatus::Ok);
        require(std::equal(result.response.begin(), result.response.end(), found->second.begin(), found->second.end()));
        requests_.erase(found);
    }

    std::array<SessionId, kHonestSessions> sessions_{};
    std::uint64_t calls_ = 0;
    std::map<std::uint64_t, std::vector<std::uint8_t>> requests_;
};

}  // namespace cairn::copyrpc
