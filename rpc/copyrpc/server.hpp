// The answering half of an endpoint: requests from the ring to the answer.
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

    // Notes that sessions came whose promises pay for this many requests. A negative number means that such sessions
    // left. Allocates for sessions that came.
    void expect(std::int64_t requests) {
        expected_ = static_cast<std::size_t>(static_cast<std::int64_t>(expected_) + requests);
        requests_.reserve(expected_);
    }
    // Takes a request. Returns the breach if the request is invalid.
    [[nodiscard]] std::optional<Breach> on_request(Session& session, const RingEnd::Taken& taken, Instant now) noexcept;
    // Takes a request that was READ at its caller, with its memory.
    void on_fetched(Fetch& fetched, Instant now) noexcept;
    // Hands a kept request to its handler, which may end the session.
    void execute(const rpc::JobRequest& work, Instant now) noexcept;
    // See Endpoint for these functions.
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept;
    bool respond(const RequestHandle& handle) noexcept;
    bool answer(const RequestHandle& handle, std::span<const std::uint8_t> message) noexcept;
    [[nodiscard]] bool retain(const RequestHandle& handle) noexcept;
    void keep(const RequestHandle& request) noexcept override;
    // Refuses the request, as Endpoint::refuse().
    bool drop(const RequestHandle& request) noexcept override;
    bool decline(const RequestHandle& request) noexcept override;
    // Gives the request's blocks back to the peer: its bytes are not needed any more. Its answer is still owed. Does
    // nothing if the request was answered.
    void has_read(const RequestHandle& handle) noexcept;
    // Puts the answer to a request of this charge into the ring, or after the answers that wait.
    void put(Session& session, const Message& answer, std::uint16_t charge) noexcept;
    // With Flow::Read: puts waiting answers into the ring, in order, and takes requests that waited for memory. Returns
    // false if answers still wait. Handlers may run, and may end the session.
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
        std::uint32_t next = rpc::kNone;  // in the session's list, or in the free list
        std::uint32_t previous = rpc::kNone;
        std::uint32_t call = 0;
        Session* session = nullptr;  // forgets its requests before it ends
        std::uint16_t charge = 0;    // 0 if the place is free
        Held held{};                 // no blocks after has_read()
        bool kept = false;           // answered after its handler has returned; otherwise it is refused then
        bool retained = false;       // its bytes stay where they are until then
        bool lacks_room = false;     // the last reserve() found no room
        rpc::MsgBuffer answer{};     // from reserve()
        rpc::MsgBuffer fetched{};    // the request, if it was READ at its caller
        Place room{};                // at the caller, for a long answer; no bytes if there is none
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
    std::uint32_t free_ = rpc::kNone;  // the first free place
    std::size_t kept_ = 0;             // number of kept requests
    std::size_t expected_ = 0;         // most requests that are kept
    bool declined_ = false;            // the running handler has declined a request
    // Answers through the functions above. A request that waits for a thread stays in the ring, or in the memory to
    // which it was READ. Transfers limits that memory to a part of the pool. So neither takes memory from earlier jobs.
    rpc::RequestJobs<Server> jobs_;
    Transfers transfers_;
    LateAnswers late_;
};

}  // namespace cairn::copyrpc
