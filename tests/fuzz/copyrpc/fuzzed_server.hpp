// The server that a fuzzer of copyrpc tries: it checks the requests that reach its handlers.
#pragma once

#include <array>
#include <set>

#include "tests/fuzz/copyrpc/hosts.hpp"

namespace cairn::copyrpc {

// A server that also calls its peers. They need not answer unless they are the honest client.
class FuzzedServer : public EndpointHost {
public:
    explicit FuzzedServer(const EndpointConfig& its_config) : EndpointHost(kServerAddress, 22, its_config) {
        require(endpoint->listen(kService).ok());
        endpoint->set_guest_callback(
            [](void* self, SessionId session, SessionEvent) {
                static_cast<FuzzedServer*>(self)->names_[session.number() % kSessionsMost] = session;
            },
            this);
        for (const Type type : {kEcho, kKeep, kDrop}) {
            endpoint->set_handler(
                type, [](void* self, const Request& request) { static_cast<FuzzedServer*>(self)->execute(request); },
                this);
        }
    }
    void turn(Instant now) {
        (void)worker->turn(now);
        const Statistics& said = endpoint->statistics();
        require(said.breaches.snapshot().total() <= said.links.peers_lost);
        require(said.answers_given_up == 0);
        // Each request takes two blocks of the promise, or one answer of it. It has one buffer until it is answered; a
        // few answers that were written have one until they are acknowledged.
        const std::uint32_t requests_most = kShape.promise_max() / (config.flow == Flow::Credit ? 2U : 1U);
        require(endpoint->requests_kept() <= kSessionsMost * requests_most);
        constexpr std::uint32_t kOfSession = 3;  // the rings and words of a session
        require(pool.live() <=
                live_at_first + kSessionsMost * (kOfSession + requests_most + kReceives) + 2 * kCallsMost);
    }
    void answer(std::size_t which, std::uint32_t bytes, Instant now) {
        if (kept_.empty()) {
            return;
        }
        const auto at = kept_.begin() + static_cast<std::ptrdiff_t>(which % kept_.size());
        const std::vector<std::uint8_t> message(bytes);
        const bool answered = endpoint->answer(at->request, at->retained ? at->payload : std::span(message), now);
        require(answered || !at->honest);  // another one's session may have ended
        require(!endpoint->answer(at->request, message, now));
        kept_.erase(at);
    }
    void answer_all(Instant now) {
        while (!kept_.empty()) {
            answer(0, 0, now);
        }
    }
    void call(std::uint8_t what, std::uint8_t bytes, Instant now) {
        const SessionId session = names_[what % kSessionsMost];
        Call call;
        call.type = kEcho;
        call.request = std::span(request_).first((what & 0x80U) != 0 ? kLongest : bytes);
        call.tag = ++calls_ * kSessionsMost + session.number();
        call.deadline = (what & 0x40U) != 0 ? now + microseconds(bytes) : Instant::never();
        call.context = this;
        call.completion = [](void* self, const rpc::CallResult& result) {
            static_cast<FuzzedServer*>(self)->on_completed(result);
        };
        if (endpoint->post(session, call, now).verdict == PostVerdict::Posted) {
            pending_.insert(call.tag);
        }
    }

private:
    struct Kept {
        rpc::KeptRequest request;
        std::span<const std::uint8_t> payload;  // readable if it is retained and the session lives
        bool retained;
        bool honest;
    };
    void execute(const Request& request) {
        const std::span<const std::uint8_t> payload = request.payload;
        require(payload.size() <= (config.message_bytes_max != 0 ? kLongest : kShape.message_max() * kBlockBytes));
        require(payload.empty() ||
                (payload.data() >= memory.data() && payload.data() + payload.size() <= memory.data() + memory.size()));
        for (const std::uint8_t octet : payload) {
            sum_ += octet;  // reads all bytes of the span
        }
        const bool honest = request.handle.session.number() < kHonestSessions;
        // Each request is executed once. Calls of a client that keeps to the rules have a trace of their own.
        require(executed_.insert(request.handle.request_number).second);
        require(!honest || (request.trace != 0 && traces_.insert(request.trace).second));
        if (request.type == kEcho) {
            require(endpoint->answer(request.handle, payload, request.now));
            require(!endpoint->answer(request.handle, payload, request.now));
        } else if (request.type == kKeep) {
            const bool retains = honest || payload.size() % 2 == 0;
            kept_.push_back({request.keep(), payload, retains, honest});
            require(!retains || endpoint->retain(request.handle));
        }
    }
    void on_completed(const rpc::CallResult& result) {
        require(pending_.erase(result.tag) == 1);
        require(result.tag % kSessionsMost >= kHonestSessions || result.status == CallStatus::Ok ||
                result.status == CallStatus::DeadlinePassed);
        for (const std::uint8_t octet : result.response) {
            sum_ += octet;
        }
    }

    const std::vector<std::uint8_t> request_ = std::vector<std::uint8_t>(kLongest, 0x5a);
    std::array<SessionId, kSessionsMost> names_{};  // the last session of each number
    std::vector<Kept> kept_;
    std::set<std::uint64_t> executed_;
    std::set<std::uint64_t> traces_;
    std::set<std::uint64_t> pending_;
    std::uint64_t calls_ = 0;
    std::uint64_t sum_ = 0;
};

}  // namespace cairn::copyrpc
