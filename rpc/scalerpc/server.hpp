// The answering half of an endpoint: requests from their blocks to their handlers, and answers to the clients' blocks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "rpc/common/request_jobs.hpp"
#include "rpc/common/request_types.hpp"
#include "rpc/scalerpc/legacy.hpp"
#include "rpc/scalerpc/long_answers.hpp"
#include "rpc/scalerpc/sessions.hpp"
#include "rpc/scalerpc/statistics.hpp"

namespace cairn::scalerpc {

class Endpoint;

// What the kinds of signalled work requests have as their highest byte.
enum class Work : std::uint8_t { LongAnswer = 1, Fetch = 2 };
[[nodiscard]] constexpr std::uint64_t work_id(Work kind, std::uint64_t number) noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 56U | number;
}

class Server final : public rpc::RequestKeeper {
public:
    using Types = std::array<rpc::RequestTypes<Endpoint>::Entry, rpc::kRequestTypes>;
    using Jobs = rpc::RequestJobs<Server>;

    // All references outlive the object.
    Server(const EndpointConfig& config, Endpoint& endpoint, const Types& types, Sessions& sessions, rpc::MsgPool& pool,
           Statistics& statistics);
    Status open(verbs::Device& device, verbs::Pd& pd) { return long_.open(device, pd, long_answers_of(config_)); }

    void close() noexcept { long_.close(); }

    // Takes the next request of a session's client from its block. Returns nothing unless the client broke a rule.
    std::optional<Breach> on_request(Session& session, const Request& request, Instant now) noexcept;
    // Sends the answers and the control word of a session. Answers that do not fit wait for another turn.
    void flush(Session& session) noexcept;
    // Tells news by the last answer of the turn, or by the control word.
    void tell(Session& session, const News& news) noexcept;
    // A signalled WRITE is complete.
    void on_written(std::uint64_t number) noexcept { long_.on_written(number); }
    // Forgets the requests and answers of a session that ends.
    void forget(Session& session) noexcept;

    // See Endpoint.
    [[nodiscard]] std::span<std::uint8_t> reserve(const RequestHandle& handle, std::uint32_t bytes) noexcept;
    bool respond(const RequestHandle& handle) noexcept;
    bool answer(const RequestHandle& handle, std::span<const std::uint8_t> message) noexcept;
    void keep(const RequestHandle& request) noexcept override;
    // As Endpoint::refuse().
    bool drop(const RequestHandle& request) noexcept override;

    [[nodiscard]] Legacy<Types::value_type>& legacy() noexcept { return legacy_; }
    void keep_time(Instant now) noexcept { now_ = now; }

    // For the jobs.
    [[nodiscard]] std::optional<std::span<const std::uint8_t>> lasting(const RequestHandle& handle,
                                                                       std::span<const std::uint8_t> payload) noexcept;
    void hand_over(const RequestHandle& handle, rpc::BackgroundJob& job) noexcept;
    bool expire(const RequestHandle& handle) noexcept;
    [[nodiscard]] bool keeps(const RequestHandle& handle) noexcept { return find(handle).kept != nullptr; }
    [[nodiscard]] const Types::value_type& type_of(std::uint8_t type) const noexcept {
        return legacy_.of(type, types_[type]);
    }
    [[nodiscard]] Jobs& jobs() noexcept { return jobs_; }
    [[nodiscard]] const Jobs& jobs() const noexcept { return jobs_; }
    [[nodiscard]] std::size_t requests_kept() const noexcept { return open_; }

private:
    void execute(const Types::value_type& type, const rpc::Request<Endpoint>& request) noexcept;
    struct Found {
        Session* session = nullptr;
        Guest::Kept* kept = nullptr;
    };
    [[nodiscard]] Found find(const RequestHandle& handle) noexcept;
    void end(const Found& request, Outcome outcome, std::span<const std::uint8_t> message) noexcept;
    void put(Session& session, const Answer& answer) noexcept;
    [[nodiscard]] bool send_run(Session& session, std::size_t count) noexcept;
    [[nodiscard]] std::size_t run_of(Session& session) const noexcept;
    [[nodiscard]] static bool send_control(Session& session, std::optional<Control>& control) noexcept;

    const EndpointConfig& config_;
    Endpoint& endpoint_;
    const Types& types_;
    Sessions& sessions_;
    rpc::MsgPool& pool_;
    Statistics& statistics_;
    Legacy<Types::value_type> legacy_{};
    LongAnswers long_;
    std::size_t open_ = 0;  // requests that are kept
    Instant now_{};
    Jobs jobs_;  // answers through the above
};

}  // namespace cairn::scalerpc
