// The answering half of an endpoint: requests from their blocks to their handlers, and answers to the clients' blocks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "rpc/common/request_jobs.hpp"
#include "rpc/common/request_types.hpp"
#include "rpc/scalerpc/answers.hpp"
#include "rpc/scalerpc/legacy.hpp"

namespace cairn::scalerpc {

class Endpoint;

class Server final : public rpc::RequestKeeper {
public:
    using Types = std::array<rpc::RequestTypes<Endpoint>::Entry, rpc::kRequestTypes>;
    using Jobs = rpc::RequestJobs<Server>;

    // All references outlive the object.
    Server(const EndpointConfig& config, Endpoint& endpoint, const Types& types, Sessions& sessions, rpc::MsgPool& pool,
           Statistics& statistics);

    // The result of taking the next request. Waits: it is for a thread, and there is neither a job nor memory; it and
    // later requests wait in their blocks. Overdrawn: the client broke a rule.
    enum class Taking : std::uint8_t { Taken, Waits, Overdrawn };
    // Takes the next request of a session's client from its block.
    Taking on_request(Session& session, const Request& request, Instant now) noexcept;
    // Forgets the requests and answers of a session that ends.
    void forget(Session& session) noexcept;

    // See Endpoint for these functions.
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept;
    bool respond(const RequestHandle& handle) noexcept;
    bool answer(const RequestHandle& handle, std::span<const std::uint8_t> message) noexcept;
    void keep(const RequestHandle& request) noexcept override;
    // Refuses the request, as Endpoint::refuse().
    bool drop(const RequestHandle& request) noexcept override;
    bool decline(const RequestHandle& request) noexcept override;

    [[nodiscard]] Answers& answers() noexcept { return answers_; }
    [[nodiscard]] Legacy<Types::value_type>& legacy() noexcept { return legacy_; }
    // Begins a turn. Requests that wait in their blocks are tried again in it.
    void keep_time(Instant now) noexcept {
        now_ = now;
        holds_back_ = false;
    }
    // True if requests wait for threads, or threads may have finished without a notification.
    [[nodiscard]] bool wants_polling() const noexcept { return holds_back_ || jobs_.wants_polling(); }

    // The functions below are for the jobs.
    [[nodiscard]] std::optional<std::span<const std::uint8_t>> lasting(const RequestHandle& handle,
                                                                       std::span<const std::uint8_t> payload) noexcept;
    void hand_over(const RequestHandle& handle, rpc::BackgroundJob& job) noexcept;
    bool expire(const RequestHandle& handle) noexcept;
    [[nodiscard]] bool keeps(const RequestHandle& handle) noexcept { return find(handle).kept != nullptr; }
    [[nodiscard]] const Types::value_type& type_of(std::uint8_t type) const noexcept {
        return types_[type].background != nullptr ? types_[type] : legacy_.on_thread(type);
    }
    [[nodiscard]] Jobs& jobs() noexcept { return jobs_; }
    [[nodiscard]] const Jobs& jobs() const noexcept { return jobs_; }
    [[nodiscard]] std::size_t requests_kept() const noexcept { return open_; }

private:
    void execute(const Types::value_type& type, const rpc::Request<Endpoint>& request) noexcept;
    void note_executed(std::uint8_t type, bool was_long) noexcept;
    struct Found {
        Session* session = nullptr;
        Guest::Kept* kept = nullptr;
    };
    [[nodiscard]] Found find(const RequestHandle& handle) noexcept;
    void end(const Found& request, Outcome outcome, std::span<const std::uint8_t> message) noexcept;

    const EndpointConfig& config_;
    Endpoint& endpoint_;
    const Types& types_;
    Sessions& sessions_;
    rpc::MsgPool& pool_;
    Statistics& statistics_;
    Legacy<Types::value_type> legacy_{};
    Answers answers_;
    std::size_t open_ = 0;  // number of kept requests
    Instant now_{};
    bool holds_back_ = false;  // requests wait in their blocks
    bool declined_ = false;    // the running handler has declined a request
    Jobs jobs_;                // answers through the functions above
};

}  // namespace cairn::scalerpc
