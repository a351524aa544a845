#include "tests/sim/erpc_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace cairn::sim {

namespace {

constexpr std::size_t kBuffers = 512;
constexpr std::size_t kPoolBytes = std::size_t{1} << 20U;
constexpr std::uint32_t kQpn = 0x100;
constexpr std::uint32_t kQkey = 0x205;
constexpr Duration kPeerTimeout = milliseconds(200);
constexpr Duration kHarmful = milliseconds(120);
constexpr Duration kHealing = milliseconds(1500);

// Byte i of a message that belongs to `tag`.
std::uint8_t content_at(const CallTag& tag, std::size_t i, std::uint8_t salt) noexcept {
    return static_cast<std::uint8_t>((tag.serial * 31U + tag.client * 7U + i * 13U) ^ salt);
}

void fill(std::span<std::uint8_t> message, const CallTag& tag, std::uint8_t salt) noexcept {
    for (std::size_t i = 0; i < message.size(); ++i) {
        message[i] = content_at(tag, i, salt);
    }
}

bool holds(std::span<const std::uint8_t> message, const CallTag& tag, std::uint8_t salt) noexcept {
    for (std::size_t i = 0; i < message.size(); ++i) {
        if (message[i] != content_at(tag, i, salt)) {
            return false;
        }
    }
    return true;
}

constexpr std::uint8_t kRequestSalt = 0x11;
constexpr std::uint8_t kResponseSalt = 0xc3;
constexpr std::size_t kTagBytes = sizeof(CallTag) + sizeof(std::uint32_t);  // and the size of the response

}  // namespace

struct ErpcWorld::Node {
    std::size_t index = 0;
    bool is_client = false;
    ErpcWorld* world = nullptr;
    std::unique_ptr<SimPort> port;
    std::vector<std::uint8_t> memory;
    std::optional<rpc::MsgPool> pool;
    std::optional<roce::UdService> service;
    std::optional<roce::Sender> sender;
    std::unique_ptr<erpc::Endpoint> endpoint;
    std::vector<SessionId> sessions;  // alive, as far as the callback told
    std::vector<LateAnswer> late;
    std::map<std::uint64_t, LateAnswer> nested;             // by the number of the inner call
    std::deque<std::vector<std::uint8_t>> nested_requests;  // memory of inner calls, as long as they may be resent
    std::uint64_t nested_serial = 0;
    Instant stalled_until{};
    Instant next_stall = Instant::never();
    Instant next_restart = Instant::never();
    Instant next_partition = Instant::never();
    Instant partition_ends = Instant::never();
    Instant next_call{};
    std::uint32_t outstanding = 0;
};

ErpcWorld::ErpcWorld(std::uint64_t seed, std::size_t clients, std::size_t servers)
    : random_(seed), mix_(FaultMix::from_seed(seed)), network_(clients + servers, seed * 3 + 1), clients_(clients) {
    network_.set_faults(mix_.link, mix_.shape);
    const auto soon = [this](Duration every) {
        return every.ns == 0 ? Instant::never() : now_ + random_.between(Duration{}, every * 2);
    };
    for (std::size_t i = 0; i < clients + servers; ++i) {
        auto node = std::make_unique<Node>();
        node->index = i;
        node->is_client = i < clients;
        node->world = this;
        node->port = std::make_unique<SimPort>(network_, i, kBuffers, random_.next());
        node->port->set_faults(mix_.port);
        node->memory.resize(kPoolBytes);
        node->next_stall = soon(mix_.node.stall_every);
        node->next_restart = soon(mix_.node.restart_every);
        node->next_partition = soon(mix_.node.partition_every);
        nodes_.push_back(std::move(node));
        start(*nodes_.back());
    }
    calls_.reserve(1U << 16U);
}

ErpcWorld::~ErpcWorld() = default;

void ErpcWorld::start(Node& node) {
    node.pool.emplace(node.memory);
    node.service.emplace(*node.port);
    node.sender.emplace(*node.port);
    erpc::EndpointConfig config;
    config.qp.qpn = Qpn{kQpn};
    config.qp.qkey = Qkey{kQkey};
    config.qp.path_mtu_bytes = 4096;
    config.sessions_max = 64;
    config.calls_max = 512;
    config.credits = static_cast<std::uint16_t>(random_.between(1, 10));
    config.seed = random_.next();
    config.peer_timeout = kPeerTimeout;
    node.endpoint = erpc::Endpoint::create(config, *node.service, *node.sender, *node.pool).value();
    node.endpoint->set_session_callback(session_changed, &node);
    for (const std::uint8_t type : {kAtOnce, kLater, kNested}) {
        node.endpoint->set_handler(type, handle, &node);
    }
}

// As a killed process: what it had under way is forgotten, and every buffer comes back.
void ErpcWorld::stop(Node& node) {
    node.endpoint.reset();
    node.sender.reset();
    node.service.reset();
    node.sessions.clear();
    node.late.clear();
    node.nested.clear();
    node.nested_requests.clear();
    node.outstanding = 0;
    check(node.pool->live() == 0, "an endpoint that ends gives its message buffers back", &node);
    check(node.port->buffers_in_use() == 0, "an endpoint that ends gives its packet buffers back", &node);
    for (CallRecord& call : calls_) {
        CallTag tag{};
        std::memcpy(&tag, call.request.data(), sizeof(tag));
        call.abandoned = call.abandoned || (tag.client == node.index && call.completions == 0);
    }
}

void ErpcWorld::check(bool condition, const char* promise, const Node* node) {
    if (!condition && !broken_) {
        broken_ = fmt::format("at {} ns, node {}: {}", now_.ns, node != nullptr ? static_cast<int>(node->index) : -1,
                              promise);
    }
}

void ErpcWorld::turn(Node& node) {
    if (now_ < node.stalled_until) {
        return;
    }
    std::array<port::PacketRef, 16> burst;
    for (std::size_t got = burst.size(); got == burst.size();) {
        got = node.port->receive_burst(burst, now_);
        node.service->on_packets(std::span(burst).first(got), now_);
        node.endpoint->check_invariants();
    }
    node.endpoint->on_timeout(now_);
    answer_late(node);
    if (calling_ && now_ >= node.next_call) {
        node.next_call = now_ + random_.between(microseconds(1), microseconds(400));
        if (node.is_client) {
            call_something(node);
        }
    }
    node.sender->flush(now_);
    node.endpoint->check_invariants();
}

void ErpcWorld::call_something(Node& node) {
    if (node.sessions.size() < 4 && node.endpoint->sessions_open() < 16) {
        const std::size_t server = clients_ + random_.below(nodes_.size() - clients_);
        const roce::UdAddress peer{
            node.port->open_path({network_.address_of(node.index), network_.address_of(server), 0xc000, 0}, now_),
            Qpn{kQpn}, Qkey{kQkey}};
        if (const auto session = node.endpoint->connect(peer, now_); session.ok()) {
            node.sessions.push_back(session.value());
        }
    }
    if (!healed_ && random_.chance(3'000) && !node.sessions.empty()) {
        const SessionId session = node.sessions[random_.below(node.sessions.size())];
        std::erase(node.sessions, session);
        node.endpoint->disconnect(session, now_);
    }
    if (!healed_ && random_.chance(30'000) && !calls_.empty()) {  // perhaps over, perhaps another client's: harmless
        node.endpoint->cancel(calls_[random_.below(calls_.size())].id, now_);
    }
    if (node.sessions.empty()) {
        return;
    }
    const CallTag tag{static_cast<std::uint32_t>(node.index), static_cast<std::uint32_t>(calls_.size())};
    CallRecord record;
    const std::uint32_t most = node.endpoint->max_message_bytes();
    const bool small = random_.chance(800'000);
    record.request.resize(kTagBytes + random_.below(small ? 100 : most - kTagBytes + 1));
    record.response_bytes = static_cast<std::uint32_t>(random_.below(small ? 100 : most + 1));
    fill(record.request, tag, kRequestSalt);
    std::memcpy(record.request.data(), &tag, sizeof(tag));
    std::memcpy(record.request.data() + sizeof(tag), &record.response_bytes, sizeof(record.response_bytes));
    record.posted = now_;
    if (!healed_ && random_.chance(100'000)) {
        record.deadline = now_ + random_.between(microseconds(10), milliseconds(20));
    }
    calls_.push_back(std::move(record));
    erpc::Call call;
    call.type = static_cast<std::uint8_t>(random_.between(kAtOnce, kNested));
    call.request = calls_.back().request;
    call.completion = completed;
    call.context = &node;
    call.tag = tag.serial;
    call.deadline = calls_.back().deadline;
    const std::size_t index = calls_.size() - 1;
    const erpc::Posted posted = node.endpoint->post(node.sessions[random_.below(node.sessions.size())], call, now_);
    if (posted.verdict == erpc::PostVerdict::Posted) {
        ++node.outstanding;
        calls_[index].id = posted.id;
    } else {
        check(posted.verdict == erpc::PostVerdict::Full, "a live session takes calls until the table is full", &node);
        calls_[index].abandoned = true;
    }
}

void ErpcWorld::completed(void* context, const erpc::CallResult& result) {
    Node& node = *static_cast<Node*>(context);
    ErpcWorld& world = *node.world;
    CallRecord& call = world.calls_[result.tag];
    const CallTag tag{static_cast<std::uint32_t>(node.index), static_cast<std::uint32_t>(result.tag)};
    --node.outstanding;
    ++call.completions;
    world.check(call.completions == 1, "a call completes once", &node);
    world.check(!call.abandoned, "a call of a restarted client does not complete", &node);
    if (result.status == erpc::CallStatus::Ok) {
        ++world.calls_ok_;
        world.check(call.executions == 1, "an answered call was executed once", &node);
        world.check(result.response.size() == call.response_bytes, "the response is the request's, by its size", &node);
        world.check(holds(result.response, tag, kResponseSalt), "the response is the request's, by its content", &node);
    } else if (result.status == erpc::CallStatus::DeadlinePassed) {
        world.check(call.deadline <= world.now_, "a deadline that passes was there", &node);
    }
}

void ErpcWorld::handle(void* context, const erpc::Request& request) {
    Node& node = *static_cast<Node*>(context);
    ErpcWorld& world = *node.world;
    CallTag tag{};
    std::uint32_t response_bytes = 0;
    world.check(request.payload.size() >= kTagBytes, "a request arrives whole", &node);
    if (request.payload.size() < kTagBytes) {
        return;
    }
    std::memcpy(&tag, request.payload.data(), sizeof(tag));
    std::memcpy(&response_bytes, request.payload.data() + sizeof(tag), sizeof(response_bytes));
    const bool inner = tag.serial >= world.calls_.size();
    if (!inner) {
        CallRecord& call = world.calls_[tag.serial];
        world.check(
            std::equal(request.payload.begin(), request.payload.end(), call.request.begin(), call.request.end()),
            "a request arrives as it was sent", &node);
        ++call.executions;
        world.check(call.executions == 1, "a request is executed at most once", &node);
    }
    if (request.type == kLater) {
        std::vector<std::uint8_t> content(response_bytes);
        fill(content, tag, kResponseSalt);
        node.late.push_back({world.now_ + world.random_.between(Duration{}, milliseconds(2)), request.handle, content});
        return;
    }
    if (request.type == kNested && node.sessions.empty() && world.nodes_.size() > world.clients_ + 1) {
        const std::size_t other =
            world.clients_ + (node.index - world.clients_ + 1) % (world.nodes_.size() - world.clients_);
        const roce::UdAddress peer{
            node.port->open_path({world.network_.address_of(node.index), world.network_.address_of(other), 0xc100, 0},
                                 world.now_),
            Qpn{kQpn}, Qkey{kQkey}};
        if (const auto session = node.endpoint->connect(peer, world.now_); session.ok()) {
            node.sessions.push_back(session.value());
        }
    }
    if (request.type == kNested && !node.sessions.empty()) {
        std::vector<std::uint8_t> content(response_bytes);
        fill(content, tag, kResponseSalt);
        const CallTag inner_tag{static_cast<std::uint32_t>(node.index), 0xffffffffU};
        const std::uint32_t inner_bytes = 16;
        std::vector<std::uint8_t> bytes(kTagBytes);
        std::memcpy(bytes.data(), &inner_tag, sizeof(inner_tag));
        std::memcpy(bytes.data() + sizeof(inner_tag), &inner_bytes, sizeof(inner_bytes));
        node.nested_requests.push_back(std::move(bytes));
        erpc::Call call;
        call.type = kAtOnce;
        call.request = node.nested_requests.back();
        call.completion = nested_completed;
        call.context = &node;
        call.tag = node.nested_serial++;
        if (node.endpoint->post(node.sessions.front(), call, world.now_).verdict == erpc::PostVerdict::Posted) {
            node.nested[call.tag] = {world.now_, request.handle, std::move(content)};
            return;
        }
    }
    const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, response_bytes);
    if (answer.size() == response_bytes) {
        fill(answer, tag, kResponseSalt);
        request.endpoint.respond(request.handle, request.now);
    }
}

// However the inner call ended, the outer one gets its answer.
void ErpcWorld::nested_completed(void* context, const erpc::CallResult& result) {
    Node& node = *static_cast<Node*>(context);
    const auto found = node.nested.find(result.tag);
    node.world->check(found != node.nested.end(), "a nested call completes once", &node);
    if (found != node.nested.end()) {
        node.late.push_back(std::move(found->second));
        node.nested.erase(found);
    }
}

void ErpcWorld::answer_late(Node& node) {
    for (std::size_t i = 0; i < node.late.size();) {
        if (node.late[i].due > now_) {
            ++i;
            continue;
        }
        const LateAnswer answer = std::move(node.late[i]);
        node.late.erase(node.late.begin() + static_cast<std::ptrdiff_t>(i));
        const auto bytes = static_cast<std::uint32_t>(answer.content.size());
        const std::span<std::uint8_t> room = node.endpoint->reserve(answer.handle, bytes);
        if (room.size() == bytes) {
            std::copy(answer.content.begin(), answer.content.end(), room.begin());
            node.endpoint->respond(answer.handle, now_);
        }
    }
}

void ErpcWorld::session_changed(void* context, SessionId session, erpc::SessionEvent event, erpc::RefuseReason) {
    Node& node = *static_cast<Node*>(context);
    if (event != erpc::SessionEvent::Connected) {
        std::erase(node.sessions, session);
    }
    // Who died before the network healed is found out within a while; then no one is missed who is there.
    const bool settled = node.world->healed_ && node.world->now_ > node.world->healed_at_ + kPeerTimeout * 2;
    node.world->check(!settled || event != erpc::SessionEvent::PeerLost, "an idle session stays alive", &node);
}

void ErpcWorld::do_harm() {
    for (auto& node : nodes_) {
        harm(*node);
    }
}

void ErpcWorld::harm(Node& node) {
    if (now_ >= node.next_stall) {
        node.stalled_until = now_ + random_.between(Duration{}, mix_.node.stall_max);
        node.next_stall = node.stalled_until + random_.between(Duration{}, mix_.node.stall_every * 2);
    }
    if (now_ >= node.next_restart) {
        stop(node);
        start(node);
        node.next_restart = now_ + random_.between(Duration{}, mix_.node.restart_every * 2);
    }
    const auto part = [this, &node](bool apart) {
        const std::size_t other = (node.index + 1) % nodes_.size();
        network_.link(node.index, other).set_partitioned(apart);
        network_.link(other, node.index).set_partitioned(apart && node.index % 2 == 0);
    };
    if (now_ >= node.next_partition) {
        part(true);
        node.next_partition = Instant::never();
        node.partition_ends = now_ + random_.between(Duration{}, mix_.node.partition_max);
    }
    if (now_ >= node.partition_ends) {
        part(false);
        node.partition_ends = Instant::never();
        node.next_partition = now_ + random_.between(Duration{}, mix_.node.partition_every * 2);
    }
}

Instant ErpcWorld::next_event() const {
    Instant next = network_.next_arrival();
    for (const auto& node : nodes_) {
        const Instant wake = std::max(node->stalled_until, std::min(node->endpoint->next_deadline(),
                                                                    calling_ ? node->next_call : Instant::never()));
        next = std::min({next, wake, node->next_stall, node->next_restart, node->next_partition, node->partition_ends});
        for (const LateAnswer& answer : node->late) {
            next = std::min(next, std::max(answer.due, node->stalled_until));
        }
        if (node->sender->queued() != 0) {
            next = std::min(next, std::max(now_, node->stalled_until));
        }
    }
    return std::max(next, now_ + microseconds(1));
}

void ErpcWorld::run_until(Instant end) {
    while (now_ < end && !broken_) {
        if (!healed_) {
            do_harm();
        }
        for (auto& node : nodes_) {
            turn(*node);
        }
        now_ = std::min(next_event(), end);
    }
}

void ErpcWorld::heal() {
    healed_ = true;
    healed_at_ = now_;
    const FaultMix whole = mix_.healed();
    network_.set_faults(whole.link, whole.shape);
    for (auto& node : nodes_) {
        node->port->set_faults({});
        node->stalled_until = std::min(node->stalled_until, now_);
        node->next_stall = node->next_restart = node->next_partition = node->partition_ends = Instant::never();
    }
    for (std::size_t from = 0; from < nodes_.size(); ++from) {
        for (std::size_t to = 0; to < nodes_.size(); ++to) {
            network_.link(from, to).set_partitioned(false);
        }
    }
}

std::optional<std::string> ErpcWorld::run() {
    run_until(now_ + kHarmful);
    heal();
    calling_ = false;
    run_until(now_ + kHealing);
    check_progress();
    check_end();
    return broken_;
}

// Whatever happened before: every call has ended, and new ones are answered.
void ErpcWorld::check_progress() {
    for (const auto& node : nodes_) {
        check(node->endpoint->calls_pending() == 0, "no call stays pending once the network healed", node.get());
    }
    for (const CallRecord& call : calls_) {
        check(call.completions == 1 || call.abandoned, "every call completes");
    }
    const std::uint64_t before = calls_ok_;
    const std::size_t first = calls_.size();
    calling_ = true;
    run_until(now_ + milliseconds(20));
    calling_ = false;
    run_until(now_ + milliseconds(50));
    check(calls_.size() > first + 10, "healed clients can post");
    check(calls_ok_ - before == calls_.size() - first, "every call after healing is answered");
    run_until(now_ + kPeerTimeout * 3);  // idle: pings alone keep the sessions
}

void ErpcWorld::check_end() {
    for (auto& node : nodes_) {
        for (const SessionId session : std::vector<SessionId>(node->sessions)) {
            node->endpoint->disconnect(session, now_);
        }
    }
    run_until(now_ + kPeerTimeout * 3);
    for (auto& node : nodes_) {
        check(node->endpoint->sessions_open() == 0, "every session ends", node.get());
        check(node->pool->live() == 0, "without sessions no message buffer is kept", node.get());
        stop(*node);
    }
}

std::string ErpcWorld::text() const {
    const LinkCounters totals = network_.totals();
    return fmt::format("{}; {} calls, {} answered; {} frames, {} lost, {} doubled, {} corrupted", mix_.text(),
                       calls_.size(), calls_ok_, totals.offered,
                       totals.lost + totals.burst_lost + totals.tail_dropped + totals.partitioned, totals.duplicated,
                       totals.corrupted);
}

}  // namespace cairn::sim
