// The answering half of an endpoint: requests from the ring to their answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rpc/common/request_jobs.hpp"
#include "rpc/copyrpc/endpoint_config.hpp"
#include "rpc/copyrpc/sessions.hpp"
#include "rpc/copyrpc/statistics.hpp"
#include "rpc/copyrpc/transfers.hpp"

namespace cairn::copyrpc {

class Endpoint;

// A request lies in the ring until its handler returns, or longer if the handler wants that. Its handle names it until
// it is answered. An answer always has room.
class Server final : public rpc::RequestKeeper {
public:
    using Types = std::array<rpc::RequestTypes<Endpoint>::Entry, rpc::kRequestTypes>;

    Server(Endpoint& endpoint, const EndpointConfig& config, const Types& types, verbs::Device& device,
           Sessions& sessions, rpc::MsgPool& pool, Statistics& statistics);

    // Sessions came whose promises pay for so many requests. A negative number: such sessions left. Allocates for
    // sessions that came.
    void expect(std::int64_t requests) {
        expected_ = static_cast<std::size_t>(static_cast<std::int64_t>(expected_) + requests);
        requests_.reserve(expected_);
    }
    // Returns nothing, or why the request is none.
    [[nodiscard]] std::optional<Breach> on_request(Session& session, const RingEnd::Taken& taken, Instant now) noexcept;
    // A request that lay at its caller is here. Takes its memory.
    void on_fetched(Fetch& fetched, Instant now) noexcept;
    // Hands a request that is kept to its handler, which may end the session.
    void execute(const rpc::JobRequest& work, Instant now) noexcept;
    // See Endpoint.
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept;
    bool respond(const RequestHandle& handle) noexcept;
    bool answer(const RequestHandle& handle, std::span<const std::uint8_t> message) noexcept;
    [[nodiscard]] bool retain(const RequestHandle& handle) noexcept;
    void keep(const RequestHandle& request) noexcept override;
    // As Endpoint::refuse().
    bool drop(const RequestHandle& request) noexcept override;
    bool decline(const RequestHandle& request) noexcept override;
    // Nobody needs the request's bytes any more. Its blocks are the peer's again; its answer is still owed. Does
    // nothing if the request was answered.
    void has_read(const RequestHandle& handle) noexcept;
    // Puts the answer to a request of this charge into the ring, or behind those that wait.
    void put(Session& session, const Message& answer, std::uint16_t charge) noexcept;
    // With Flow::Read: puts answers that waited into the ring, in order, and takes requests that waited for memory.
    // Returns false if answers still wait. Handlers may run, and may end the session.
    [[nodiscard]] bool serve_late(Session& session, Instant now) noexcept;
    // Forgets the requests of a session that ends.
    void forget(Session& session) noexcept;
    // Answers that the caller's deadline has passed. The handle is not stale.
    bool expire(const RequestHandle& handle) noexcept;
    [[nodiscard]] bool keeps(const RequestHandle& handle) noexcept { return find(handle) != nullptr; }
    [[nodiscard]] const Types::value_type& type_of(std::uint8_t type) const noexcept { return types_[type]; }
    [[nodiscard]] rpc::RequestJobs<Server>& jobs() noexcept { return jobs_; }
    [[nodiscard]] bool wants_polling() const noexcept { return jobs_.wants_polling() || transfers_.wants_polling(); }
    [[nodiscard]] Transfers& transfers() noexcept { return transfers_; }
    [[nodiscard]] std::size_t requests_kept() const noexcept { return kept_; }

private:
    struct Kept {
        std::uint32_t generation = 0;
        std::uint32_t next = rpc::kNone;  // of its session's, or of the free ones
        std::uint32_t previous = rpc::kNone;
        std::uint32_t call = 0;
        Session* session = nullptr;  // it forgets its requests before it ends
        std::uint16_t charge = 0;    // 0: the place is free
        Held held{};                 // no blocks: has_read()
        bool kept = false;           // it is answered after its handler has returned; else it is refused then
        bool retained = false;       // its bytes stay where they are until then
        bool lacks_room = false;     // the last reserve() found none
        rpc::MsgBuffer answer{};     // of reserve()
        rpc::MsgBuffer fetched{};    // the request, if it lay at its caller
        Place room{};                // at the caller, for a long answer; no bytes: none
    };
    [[nodiscard]] std::uint32_t take_place();
    void take(Session& session, const RingEnd::Taken& taken, Instant came, Instant now) noexcept;
    [[nodiscard]] Kept* find(const RequestHandle& handle) noexcept;
    void give(Kept& request, std::span<const std::uint8_t> message) noexcept;
    void give_long(Kept& request, std::span<const std::uint8_t> message) noexcept;
    void end(Kept& request, Outcome outcome, std::span<const std::uint8_t> message) noexcept;
    void free(Kept& request) noexcept;

    Endpoint& endpoint_;
    const EndpointConfig& config_;
    const Types& types_;
    Sessions& sessions_;
    rpc::MsgPool& pool_;
    Statistics& statistics_;
    std::vector<Kept> requests_;
    std::uint32_t free_ = rpc::kNone;  // the first place that is free
    std::size_t kept_ = 0;             // requests
    std::size_t expected_ = 0;         // at most so many requests are kept
    bool declined_ = false;            // the handler that runs has declined a request
    // Answers through the above. A request that waits for a thread stays in the ring, or where it was READ to, which is
    // a part of the memory only (Transfers): either takes nothing from the jobs before it.
    rpc::RequestJobs<Server> jobs_;
    Transfers transfers_;
    LateAnswers late_;
};

}  // namespace cairn::copyrpc
