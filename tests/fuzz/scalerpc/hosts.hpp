// The hosts of a fuzzer of ScaleRPC that keep to the rules. The server checks the requests that reach its handlers. All
// calls of the client must be answered.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "rpc/scalerpc/endpoint.hpp"
#include "tests/fuzz/endpoint_host.hpp"

namespace cairn::scalerpc {

using test::require;

constexpr const char* kServerAddress = "10.0.0.2";
constexpr std::uint16_t kService = 7473;
constexpr BlockShape kShape{128, 4};
constexpr std::uint16_t kSessionsMost = 8;
enum Type : std::uint8_t { kEcho = 1, kKeep, kDrop, kNobody };

class EndpointHost : public test::EndpointHost<Endpoint> {
public:
    EndpointHost(const char* address, std::uint64_t seed, const EndpointConfig& config)
        : test::EndpointHost<Endpoint>(address, seed, config, std::size_t{256} << 10U, 64) {}
};

class FuzzedServer : public EndpointHost {
public:
    explicit FuzzedServer(const EndpointConfig& config) : EndpointHost(kServerAddress, 22, config) {
        require(endpoint->listen(kService).ok());
        for (const Type type : {kEcho, kKeep, kDrop}) {
            endpoint->set_handler(
                type, [](void* self, const RequestOf& request) { static_cast<FuzzedServer*>(self)->execute(request); },
                this);
        }
    }
    void turn(Instant now) {
        (void)worker->turn(now);
        const Statistics& said = endpoint->statistics();
        require(said.breaches.snapshot().total() <= said.links.peers_lost);
        require(endpoint->server().requests_kept() <= kSessionsMost * kShape.blocks);
        require(pool.live() <= live_at_first + kSessionsMost);
        endpoint->slices().groups().check();
    }
    void answer(std::size_t which, std::uint32_t bytes, Instant now) {
        if (kept_.empty()) {
            return;
        }
        const auto at = kept_.begin() + static_cast<std::ptrdiff_t>(which % kept_.size());
        const std::vector<std::uint8_t> message(bytes);
        (void)endpoint->answer(*at, message, now);  // its session may have ended
        require(!endpoint->answer(*at, message, now));
        kept_.erase(at);
    }

private:
    void execute(const RequestOf& request) {
        require(request.payload.size() <= kShape.bytes - sizeof(RawTrailer));
        for (const std::uint8_t octet : request.payload) {
            sum_ += octet;  // reads all bytes of the span
        }
        check_guest(request.handle.session);
        // The requests of a session are executed in their order, each once.
        const auto generation = static_cast<std::uint32_t>(request.handle.request_number >> 32U);
        const auto sequence = static_cast<std::uint32_t>(request.handle.request_number);
        const auto [last, first] = last_.try_emplace(generation, sequence);
        require(first || static_cast<std::int32_t>(sequence - last->second) > 0);
        last->second = sequence;
        // No block has two of them.
        require(std::none_of(kept_.begin(), kept_.end(), [generation, sequence](const RequestHandle& other) {
            return other.request_number >> 32U == generation &&
                   kShape.index_of(static_cast<std::uint32_t>(other.request_number)) == kShape.index_of(sequence);
        }));
        if (request.type == kEcho) {
            require(request.endpoint.answer(request.handle, request.payload, request.now));
        } else if (request.type == kKeep) {
            kept_.push_back(request.keep());
        }
    }
    // Checks that the client of the executed request has this slice.
    void check_guest(SessionId id) const {
        const Slice& slice = endpoint->slices().slice();
        const Guest* guest = nullptr;
        for (const Session* const session : endpoint->slices().pools().tenants(slice.pool)) {
            guest = session->id == id ? &*session->guest : guest;
        }
        require(guest != nullptr && guest->state == GuestState::Serving && guest->served == slice.number);
    }

    std::vector<rpc::KeptRequest> kept_;
    std::map<std::uint32_t, std::uint32_t> last_;  // the last sequence that was executed, by its session's generation
    std::uint64_t sum_ = 0;
};

class HonestClient : public EndpointHost {
public:
    static constexpr std::size_t kSessions = 2;

    explicit HonestClient(const EndpointConfig& config) : EndpointHost("10.0.0.1", 11, config) {}
    void connect(Instant now) {
        for (SessionId& session : sessions_) {
            session = endpoint->connect(net::IpAddress::parse(kServerAddress).value(), kService, now).value();
        }
    }
    void call(std::uint8_t what, Instant now) {
        const std::uint64_t tag = ++calls_;
        std::vector<std::uint8_t>& request = requests_[tag];
        request.assign(what % (kShape.message_max() + 1), what);
        Call call;
        call.type = kEcho;
        call.request = request;
        call.tag = tag;
        call.context = this;
        call.completion = [](void* self, const rpc::CallResult& result) {
            static_cast<HonestClient*>(self)->on_completed(result);
        };
        if (endpoint->post(sessions_[what % kSessions], call, now).verdict != PostVerdict::Posted) {
            requests_.erase(tag);  // too many are under way already
        }
    }
    void turn(Instant now) { (void)worker->turn(now); }
    [[nodiscard]] bool is_waiting() const { return !requests_.empty(); }

private:
    void on_completed(const rpc::CallResult& result) {
        const auto found = requests_.find(result.tag);
        require(found != requests_.end() && result.status == CallStatus::Ok);
        require(std::equal(result.response.begin(), result.response.end(), found->second.begin(), found->second.end()));
        requests_.erase(found);
    }

    std::array<SessionId, kSessions> sessions_{};
    std::uint64_t calls_ = 0;
    std::map<std::uint64_t, std::vector<std::uint8_t>> requests_;
};

}  // namespace cairn::scalerpc
