// Keeps the slices of a ScaleRPC server of cairn-rpcbench in step with those of others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "apps/rpcbench/system.hpp"
#include "lib/connections/home.hpp"
#include "lib/verbs/device.hpp"
#include "rpc/scalerpc/endpoint.hpp"
#include "rpc/scalerpc/time_sync.hpp"

namespace cairn::rpcbench {

// Has an endpoint of its own, since messages about the time must not wait for a slice.
class TimeKeeper {
public:
    // Returns the configuration of its endpoint.
    [[nodiscard]] static scalerpc::EndpointConfig config_of(const Options& options);

    // Serves the time, or asks for it, as the options choose. Errors: those of the endpoint; the service is taken.
    static Result<std::unique_ptr<TimeKeeper>> create(const Stage& stage, verbs::Device& device,
                                                      connections::Home& home);
    TimeKeeper(const TimeKeeper&) = delete;
    TimeKeeper& operator=(const TimeKeeper&) = delete;
    ~TimeKeeper();

    [[nodiscard]] scalerpc::SliceClock& clock() noexcept { return clock_; }
    // Connects a follower, again if need be, and reports on stderr whether its clock is in step.
    void look(Instant now);

private:
    using Follower = scalerpc::TimeFollower<scalerpc::Endpoint>;

    explicit TimeKeeper(const Stage& stage);
    void connect(Instant now);
    void keep_step(Instant now);

    const Stage stage_;
    scalerpc::SliceClock clock_;
    std::optional<net::IpAddress> server_{};  // that is followed
    std::unique_ptr<scalerpc::Endpoint> endpoint_;
    std::optional<SessionId> session_{};
    std::unique_ptr<Follower> follower_;
    bool connected_ = false;
    bool in_step_ = false;
    std::uint64_t taken_ = 0;  // answers at the last look
    Instant last_taken_{};     // time of the last answer; before the first one, of the first try to connect
    Instant next_try_{};
    Instant next_warning_{};
};

}  // namespace cairn::rpcbench
