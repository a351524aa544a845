// How an endpoint is made and ended.
#include "rpc/scalerpc/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cairn::scalerpc {

namespace {

constexpr std::uint16_t kMostSessions = 4096;
constexpr std::uint32_t kLeastGroup = 2;
constexpr std::uint32_t kMostGroup = 1024;

Status judge(const EndpointConfig& config) {
    if (!config.shape.is_valid()) {
        return Error{fmt::format("{} blocks of {} bytes are out of range", config.shape.blocks, config.shape.bytes),
                     fmt::format("choose powers of two, up to {} blocks of {} to {} bytes", BlockShape::kMostBlocks,
                                 BlockShape::kLeastBytes, BlockShape::kMostBytes)};
    }
    if (config.sessions_max == 0 || config.sessions_max > kMostSessions) {
        return Error{fmt::format("{} sessions are out of range", config.sessions_max),
                     fmt::format("choose 1 to {}", kMostSessions)};
    }
    if (config.groups.size < kLeastGroup || config.groups.size > kMostGroup) {
        return Error{fmt::format("groups of {} are out of range", config.groups.size),
                     fmt::format("choose {} to {}", kLeastGroup, kMostGroup)};
    }
    if (config.groups.slice < microseconds(1) || config.groups.slice > seconds(1)) {
        return Error{fmt::format("slices of {} us are out of range", config.groups.slice.ns / 1000),
                     "choose 1 us to 1 s"};
    }
    if (config.slice_clock != nullptr && !config.features.grouping) {
        return Error{"a server without groups has no slices to be synchronised", "leave the clock or choose groups"};
    }
    if (config.calls_max == 0 || config.calls_max > rpc::kCallsMax) {
        return Error{fmt::format("{} outstanding calls are out of range", config.calls_max),
                     fmt::format("choose 1 to {}", rpc::kCallsMax)};
    }
    if (config.peer_timeout < kLeastPeerTimeout) {
        return Error{fmt::format("a peer timeout of {} ms is too short", config.peer_timeout.ns / 1'000'000),
                     fmt::format("choose {} ms or more", kLeastPeerTimeout.ns / 1'000'000)};
    }
    return Nothing{};
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::create(const EndpointConfig& config, verbs::Device& device,
                                                   connections::Home& home, rpc::MsgPool& pool) {
    if (Status good = judge(config); !good.ok()) {
        return good.error();
    }
    std::unique_ptr<Endpoint> endpoint(new Endpoint(config, device, pool));
    if (Status opened = endpoint->open(home); !opened.ok()) {
        return opened.error();
    }
    return endpoint;
}

std::size_t Endpoint::memory_for(const EndpointConfig& config) noexcept {
    const auto bytes = [](std::size_t wanted) { return rpc::MsgPool::bytes_for(static_cast<std::uint32_t>(wanted)); };
    return std::size_t{bytes(Pools::bytes_for(config))} + bytes(std::size_t{config.sessions_max} * kEntryBytes) +
           bytes(std::size_t{long_answers_of(config)} * config.shape.bytes);
}

Endpoint::Endpoint(const EndpointConfig& config, verbs::Device& device, rpc::MsgPool& pool)
    : RequestTypes({std::min(config.shape.message_max(), pool.longest_message()), "give both ends larger blocks"},
                   config.background),
      config_(config),
      device_(device),
      pool_(pool),
      sessions_(config.sessions_max),
      client_(config_, sessions_, statistics_),
      server_(config_, *this, handlers(), sessions_, pool, statistics_),
      slices_(config_, sessions_, server_, statistics_),
      peers_(config_, device, pool, sessions_, client_, server_, slices_),
      probes_(config.peer_timeout),
      registration_(device.worker().counters().add(statistics_.list_counters())) {}

Status Endpoint::open(connections::Home& home) {
    Status opened = peers_.open();
    if (opened.ok()) {
        opened = slices_.open(device_, peers_.guests_pd(), pool_);
    }
    if (opened.ok()) {
        opened = server_.answers().open(device_, peers_.guests_pd());
    }
    if (!opened.ok()) {
        server_.answers().close();
        slices_.close();
        return opened;
    }
    rpc::LinkConfig links;
    links.access = verbs::Rights{verbs::Right::RemoteWrite} | verbs::Right::RemoteRead;
    links.path_mtu_bytes = config_.path_mtu_bytes;
    links.sessions_max = config_.sessions_max;
    links.own_sessions = config_.own_sessions;
    links.host_sessions_max = config_.host_sessions_max;
    links_ = std::make_unique<rpc::Links>(links, device_, home, peers_, statistics_.links);
    tenancy_ = device_.worker().add(*this);
    return Nothing{};
}

Endpoint::~Endpoint() {
    if (links_ == nullptr) {
        return;  // the session was never connected
    }
    guard_.assert_outside();
    links_->take_no_more();
    client_.end_awaited(device_.worker().now());
    tenancy_.leave();
    links_->end_all();
    links_.reset();
    server_.answers().close();
    slices_.close();
}

void Endpoint::disconnect(SessionId id, Instant now) noexcept {
    const auto inside = guard_.enter();
    if (Session* const session = sessions_.find(id); session != nullptr) {
        links_->end(*session, now);
    }
}

Posted Endpoint::post(SessionId id, const Call& call, Instant now) noexcept {
    Session* const session = sessions_.find(id);
    if (session == nullptr || session->state == rpc::LinkState::Ending || !session->caller) {
        return {PostVerdict::NoSuchSession, 0};
    }
    return client_.post(*session, call, now);
}

}  // namespace cairn::scalerpc
