// How an endpoint is made and ended.
#include "rpc/copyrpc/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "rpc/copyrpc/ring_choice.hpp"

namespace cairn::copyrpc {

namespace {

constexpr std::uint16_t kMostSessions = 4096;
constexpr Duration kLongestHold = milliseconds(1);
constexpr std::uint32_t kMostBatches = roce::kMaxQueueSlots / 3 * 2;  // the shared receive queue has half as many more

constexpr std::uint32_t kLongAtATime = 4;  // messages for which the pool has room: see kLongestOfPool

// Returns how much of the pool the sessions take, if each peer's ring is as long as the longest one that is used.
std::uint64_t bytes_of_sessions(const EndpointConfig& config) noexcept {
    const std::uint64_t rings =
        std::uint64_t{rpc::MsgPool::bytes_for(config.ring_bytes)} + rpc::MsgPool::bytes_for(longest_mirror_of(config));
    const std::uint64_t words = config.flow == Flow::Read ? rpc::MsgPool::bytes_for(Peers::kWordBytes) : 0;
    return config.sessions_max * (rings + words);
}

// Judges the longest message. A message that no memory can hold is not promised.
Status judge_messages(const EndpointConfig& config, const rpc::MsgPool& pool) {
    const std::uint32_t bytes = config.message_bytes_max;
    if (bytes > rpc::kMaxMessageBytes && bytes != kLongestOfPool) {
        return Error{fmt::format("messages of {} bytes are too long", bytes),
                     fmt::format("choose at most {}", rpc::kMaxMessageBytes)};
    }
    const std::uint32_t longest = pool.longest_message(kLongAtATime, bytes_of_sessions(config));
    if (bytes > longest && bytes != kLongestOfPool) {
        return Error{
            fmt::format("a pool of {} bytes is too small for messages of {} beside the rings of {} sessions",
                        pool.capacity_bytes(), bytes, config.sessions_max),
            fmt::format("choose message_bytes_max of at most {}, lower sessions_max, or give the pool {} bytes",
                        longest,
                        std::uint64_t{kLongAtATime} * rpc::MsgPool::bytes_for(bytes) + bytes_of_sessions(config))};
    }
    return Nothing{};
}

// Returns the configuration with a number for `message_bytes_max`.
EndpointConfig resolve(EndpointConfig config, const rpc::MsgPool& pool) noexcept {
    if (config.message_bytes_max == kLongestOfPool) {
        config.message_bytes_max = pool.longest_message(kLongAtATime, bytes_of_sessions(config));
    }
    return config;
}

Status judge(const EndpointConfig& config, const rpc::MsgPool& pool) {
    if (!Hello::is_valid_ring(config.ring_bytes)) {
        return Error{fmt::format("a ring of {} bytes is out of range", config.ring_bytes),
                     fmt::format("choose a power of two from {} to {}", RingShape::kLeastBytes, RingShape::kMostBytes)};
    }
    if (config.receives < Hello::kLeastReceives || config.receives > Hello::kMostReceives) {
        return Error{fmt::format("{} receive requests of a session are out of range", config.receives),
                     fmt::format("choose {} to {}", Hello::kLeastReceives, Hello::kMostReceives)};
    }
    if (config.sessions_max == 0 || config.sessions_max > kMostSessions) {
        return Error{fmt::format("{} sessions are out of range", config.sessions_max),
                     fmt::format("choose 1 to {}", kMostSessions)};
    }
    if (std::uint32_t{config.sessions_max} * config.receives > kMostBatches) {
        return Error{
            fmt::format("{} sessions of {} receive requests are too many", config.sessions_max, config.receives),
            fmt::format("choose less of one: their product is at most {}", kMostBatches)};
    }
    if (config.calls_max == 0 || config.calls_max > rpc::kCallsMax) {
        return Error{fmt::format("{} outstanding calls are out of range", config.calls_max),
                     fmt::format("choose 1 to {}", rpc::kCallsMax)};
    }
    if (config.peer_timeout < kLeastPeerTimeout) {
        return Error{fmt::format("a peer timeout of {} ms is too short", config.peer_timeout.ns / 1'000'000),
                     fmt::format("choose {} ms or more", kLeastPeerTimeout.ns / 1'000'000)};
    }
    if (config.hold.messages != 0 && (config.hold.most < Duration{} || config.hold.most > kLongestHold)) {
        return Error{fmt::format("batches held for {} ns are out of range", config.hold.most.ns),
                     "choose 1 ms at most"};
    }
    if (Status good = judge_messages(config, pool); !good.ok()) {
        return good;
    }
    const RingShape ring(config.ring_bytes / kBlockBytes);
    const std::uint32_t longest =
        std::max(Message::answer_max(ring.charge_max()), resolve(config, pool).message_bytes_max);
    if (config.answer_bytes > longest) {
        return Error{
            fmt::format("answers of {} bytes are too long for a ring of {}", config.answer_bytes, config.ring_bytes),
            fmt::format("choose at most {}, a larger ring or a larger pool", longest)};
    }
    return Nothing{};
}

// Returns the limit of answers. They lie in the largest ring of a caller, or are WRITTEN by themselves. An answer of a
// thread waits in the pool.
rpc::AnswerLimit answer_limit_of(const EndpointConfig& config, const rpc::MsgPool& pool) noexcept {
    const std::uint32_t in_ring = Message::answer_max(RingShape(longest_mirror_of(config) / kBlockBytes).charge_max());
    return {std::min(std::max(in_ring, config.message_bytes_max), pool.longest_message()),
            "raise message_bytes_max, and give the pool as much memory"};
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::create(const EndpointConfig& config, verbs::Device& device,
                                                   connections::Home& home, rpc::MsgPool& pool) {
    if (Status good = judge(config, pool); !good.ok()) {
        return good.error();
    }
    std::unique_ptr<Endpoint> endpoint(new Endpoint(resolve(config, pool), device, pool));
    if (Status opened = endpoint->open(home); !opened.ok()) {
        return opened.error();
    }
    return endpoint;
}

Endpoint::Endpoint(const EndpointConfig& config, verbs::Device& device, rpc::MsgPool& pool)
    : RequestTypes(answer_limit_of(config, pool), config.background),
      config_(config),
      device_(device),
      sessions_(config.sessions_max),
      client_(config_, device, sessions_, pool, statistics_),
      server_(*this, config_, handlers(), device, sessions_, pool, statistics_),
      one_sided_(device, sessions_, config.receives, statistics_),
      peers_(config_, device, queues_, pool, sessions_, client_, server_, one_sided_),
      probes_(config.peer_timeout),
      registration_(device.worker().counters().add(statistics_.list_counters())) {}

Status Endpoint::open(connections::Home& home) {
    auto queues = Queues::create(config_, device_);
    if (!queues.ok()) {
        return queues.error();
    }
    queues_ = std::move(queues).value();
    rpc::LinkConfig links;
    links.access = verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::RemoteRead;
    links.path_mtu_bytes = config_.path_mtu_bytes;
    links.sessions_max = config_.sessions_max;
    links.own_sessions = config_.own_sessions;
    links.host_sessions_max = config_.host_sessions_max;
    links_ = std::make_unique<rpc::Links>(links, device_, home, peers_, statistics_.links);
    exchange_.emplace(queues_, sessions_, peers_, *links_, client_, server_, one_sided_, config_.hold, statistics_);
    tenancy_ = device_.worker().add(*this);
    return Nothing{};
}

Endpoint::~Endpoint() {
    if (links_ == nullptr) {
        return;  // the session was never connected
    }
    guard_.assert_outside();
    links_->take_no_more();
    const Instant now = device_.worker().now();
    one_sided_.end_awaited(now);
    client_.end_awaited(now);
    tenancy_.leave();
    links_->end_all();
    links_.reset();
}

void Endpoint::disconnect(SessionId id, Instant now) noexcept {
    const auto inside = guard_.enter();
    if (Session* const session = sessions_.find(id); session != nullptr) {
        links_->end(*session, now);
    }
}

Posted Endpoint::post(SessionId id, const Call& call, Instant now) noexcept {
    Session* const session = sessions_.find(id);
    if (session == nullptr || session->state == SessionState::Ending) {
        return {PostVerdict::NoSuchSession, 0};
    }
    const auto inside = guard_.enter();  // earlier calls may turn out to be too long
    return client_.post(*session, call, now);
}

Tried Endpoint::try_post(SessionId id, const Call& call, Instant now) noexcept {
    Session* const session = sessions_.find(id);
    if (session == nullptr || session->state == SessionState::Ending) {
        return {Attempt::NoSuchSession, 0};
    }
    const auto inside = guard_.enter();
    return client_.try_post(*session, call, now);
}

}  // namespace cairn::copyrpc
