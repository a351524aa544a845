#include "apps/rpcbench/time_keeper.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace cairn::rpcbench {

namespace {

constexpr std::uint8_t kAsksTime = 1;              // type of request
constexpr Duration kTryEvery = milliseconds(500);  // to reach the time server
constexpr Duration kOverdue = seconds(1);          // answers, of which there are ten in it
constexpr Duration kWarnEvery = seconds(5);

scalerpc::SliceClockConfig clock_of(const ScalerpcOptions& options) {
    scalerpc::SliceClockConfig config;
    config.slice = microseconds(options.slice_us);
    config.cohorts = options.cohorts;
    return config;
}

}  // namespace

scalerpc::EndpointConfig TimeKeeper::config_of(const Options& options) {
    scalerpc::EndpointConfig config;
    config.shape = {64, 4};
    config.features = {false, false, false, false, false, false};
    config.sessions_max = config.host_sessions_max = kTimeSessions;  // one of each lcore
    config.calls_max = kTimeSessions;
    config.long_answers = 1;
    config.peer_timeout = milliseconds(options.peer_timeout_ms);
    config.path_mtu_bytes = options.ports.path_mtu_bytes;
    return config;
}

// Makes a time keeper. All workers of a time server have slots that begin at the same times.
TimeKeeper::TimeKeeper(const Stage& stage) : stage_(stage), clock_(clock_of(stage.options.scalerpc), Instant{}) {}

TimeKeeper::~TimeKeeper() {
    endpoint_.reset();  // before the follower: its calls end
}

Result<std::unique_ptr<TimeKeeper>> TimeKeeper::create(const Stage& stage, verbs::Device& device,
                                                       connections::Home& home) {
    std::unique_ptr<TimeKeeper> keeper(new TimeKeeper(stage));
    const ScalerpcOptions& own = stage.options.scalerpc;
    if (!own.time_server.empty()) {
        const Result<net::IpAddress> server = net::IpAddress::parse(own.time_server);
        if (!server.ok()) {
            return server.error();
        }
        keeper->server_ = server.value();
    }
    auto made = scalerpc::Endpoint::create(config_of(stage.options), device, home, stage.pool);
    if (!made.ok()) {
        return made.error();
    }
    keeper->endpoint_ = std::move(made).value();
    keeper->endpoint_->set_session_callback(
        [](void* context, SessionId session, scalerpc::SessionEvent event) {
            auto& self = *static_cast<TimeKeeper*>(context);
            self.connected_ = event == scalerpc::SessionEvent::Connected;
            if (!self.connected_ && self.session_ == session) {
                self.session_.reset();
            }
        },
        keeper.get());
    if (own.serves_time) {
        const Status set = scalerpc::serve_time(*keeper->endpoint_, kAsksTime, keeper->clock_);
        const Status listening = set.ok() ? keeper->endpoint_->listen(own.time_service) : set;
        if (!listening.ok()) {
            return listening.error();
        }
    }
    return keeper;
}

void TimeKeeper::look(Instant now) {
    if (!server_) {
        return;
    }
    if (!session_ && now >= next_try_) {
        connect(now);
    }
    keep_step(now);
}

void TimeKeeper::connect(Instant now) {
    if (last_taken_ == Instant{}) {
        last_taken_ = now;
    }
    next_try_ = now + kTryEvery;
    follower_.reset();
    taken_ = 0;
    const Result<SessionId> session = endpoint_->connect(*server_, stage_.options.scalerpc.time_service, now);
    if (session.ok()) {
        session_ = session.value();
        follower_ = std::make_unique<Follower>(stage_.worker, *endpoint_, *session_, kAsksTime, clock_);
    }
}

void TimeKeeper::keep_step(Instant now) {
    if (follower_ != nullptr && follower_->taken() != taken_) {
        taken_ = follower_->taken();
        last_taken_ = now;
        if (!in_step_) {
            in_step_ = true;
            next_warning_ = now;
            fmt::print(stderr, "cairn-rpcbench: worker {}: slices are in step with the time server {}\n", stage_.number,
                       server_->text());
        }
    }
    if (now - last_taken_ <= kOverdue || now < next_warning_) {
        return;
    }
    next_warning_ = now + kWarnEvery;
    fmt::print(stderr,
               "cairn-rpcbench: warning: worker {}: {} the time server {}: the clock is {} in step, and slices begin "
               "when this server likes; is the other one running, with --serve-time and --time-service {}, and the "
               "same --slice?\n",
               stage_.number, connected_ ? "no answer from" : "can not reach", server_->text(),
               in_step_ ? "no more" : "not yet", stage_.options.scalerpc.time_service);
    in_step_ = false;
}

}  // namespace cairn::rpcbench
