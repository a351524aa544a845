#include "rpc/sim/incast_world.hpp"

#include <algorithm>

#include "lib/port/ecn.hpp"
#include "lib/port/path.hpp"
#include "rpc/erpc/header.hpp"

namespace cairn::sim {

namespace {

constexpr Qpn kQpn{0x20};
constexpr Qkey kQkey{0x1234};
constexpr std::uint8_t kType = 1;
constexpr std::uint32_t kResponseBytes = 32;
constexpr std::size_t kBuffers = 8192;
constexpr std::size_t kClientPoolBytes = std::size_t{1} << 20U;
constexpr std::size_t kRequestRoomBytes = std::size_t{16} << 20U;  // size of the pool's buffer for 8 MB

}  // namespace

std::string_view text_of(erpc::CongestionAlgorithm algorithm) noexcept {
    switch (algorithm) {
        case erpc::CongestionAlgorithm::None:
            return "none";
        case erpc::CongestionAlgorithm::Timely:
            return "timely";
        case erpc::CongestionAlgorithm::Dcqcn:
            return "dcqcn";
    }
    return "";
}

// The server is the last node.
IncastWorld::IncastWorld(const IncastPlan& plan)
    : plan_(plan),
      network_(plan.clients + 1, plan.seed),
      request_(plan.request_bytes),
      wakes_(plan.clients + 1),
      arrivals_(plan.clients) {
    CAIRN_ASSERT(plan.clients > 0 && plan.clients <= kMaxClients);
    network_.join(plan.shape, plan.seed * 3 + 1);
    network_.set_tap([this](std::size_t to, const Frame& frame) {
        if (to == plan_.clients) {
            count_arrival(frame);
        }
    });
    for (std::size_t i = 0; i <= plan.clients; ++i) {
        nodes_.push_back(std::make_unique<Node>());
        nodes_.back()->world = this;
        nodes_.back()->index = i;
        start(*nodes_.back(), i < plan.clients ? kClientPoolBytes : (plan.clients + 1) * kRequestRoomBytes);
    }
    nodes_.back()->endpoint->set_handler(
        kType, [](void* context, const erpc::Request& request) { static_cast<IncastWorld*>(context)->answer(request); },
        this);
    for (std::size_t i = 0; i < plan.clients; ++i) {
        connect(*nodes_[i]);
    }
}

void IncastWorld::start(Node& node, std::size_t pool_bytes) {
    const bool client = node.index < plan_.clients;
    node.port = std::make_unique<SimPort>(network_, node.index, kBuffers, plan_.seed + node.index);
    node.port->set_traffic_class(port::kEct0);
    node.memory = AlignedMemory(pool_bytes);
    node.pool.emplace(node.memory.span());
    node.worker = worker::Worker::create(*node.port, roce::kDatagramsOnly, {}).value();
    erpc::EndpointConfig config;
    config.qp.qpn = kQpn;
    config.qp.qkey = kQkey;
    config.qp.path_mtu_bytes = plan_.path_mtu_bytes;
    config.sessions_max = static_cast<std::uint16_t>(client ? 1 : plan_.clients);
    config.max_message_bytes = plan_.request_bytes;
    config.calls_max = 8;
    config.transfers_max = static_cast<std::uint32_t>(client ? 1 : plan_.clients);
    config.credits = plan_.credits;
    config.seed = {plan_.seed, node.index};
    config.congestion.algorithm = plan_.algorithm;
    config.congestion.link_bits_per_s = static_cast<double>(plan_.shape.bits_per_second);
    config.round_trips = client ? &round_trips_ : nullptr;
    node.endpoint = erpc::Endpoint::create(config, *node.worker, *node.pool).value();
}

void IncastWorld::connect(Node& client) {
    const port::PathKey key{network_.address_of(client.index), network_.address_of(plan_.clients),
                            port::kFirstUdpSourcePort, 0};
    const roce::UdAddress server{client.port->open_path(key, now_), kQpn, kQkey};
    client.session = client.endpoint->connect(server, now_).value();
    post(client);
}

void IncastWorld::post(Node& client) {
    erpc::Call call;
    call.type = kType;
    call.request = request_;
    call.context = &client;
    call.completion = [](void* context, const erpc::CallResult& result) {
        auto& self = *static_cast<Node*>(context);
        ++self.world->calls_;
        self.world->calls_failed_ += result.status == erpc::CallStatus::Ok ? 0 : 1;
        self.world->post(self);
    };
    static_cast<void>(client.endpoint->post(client.session, call, now_));
}

void IncastWorld::answer(const erpc::Request& request) {
    CAIRN_ASSERT(request.payload.size() == plan_.request_bytes);
    const std::span<std::uint8_t> room = request.endpoint.reserve(request.handle, kResponseBytes);
    std::fill(room.begin(), room.end(), std::uint8_t{0});
    request.endpoint.respond(request.handle, now_);
}

void IncastWorld::count_arrival(const Frame& frame) {
    const std::span<const std::uint8_t> packet = std::span(frame.bytes).subspan(frame.lower_bytes());
    const auto& raw = *reinterpret_cast<const erpc::RawHeader*>(packet.data() + sizeof(wire::RawUd));
    const erpc::Header header = erpc::Header::parse(raw);
    if (header.kind != erpc::Kind::Data || header.type != erpc::PacketType::Request) {
        return;
    }
    Arrivals& arrivals = arrivals_[network_.node_of(frame.source())];
    if (arrivals.request_number != header.request_number) {
        arrivals.request_number = header.request_number;
        arrivals.seen.assign(erpc::kPacketNumberMask + 1, false);
    }
    if (!arrivals.seen[header.packet_number]) {
        arrivals.seen[header.packet_number] = true;
        arrivals.bytes += packet.size() - sizeof(wire::RawUd) - sizeof(erpc::RawHeader) - port::kIcrcBytes;
    }
}

void IncastWorld::turn(Node& node) {
    const bool slow = node.index == plan_.clients && plan_.server_turn > Duration{};
    server_free_ = slow ? now_ + plan_.server_turn : server_free_;
    while (node.worker->turn(now_) && !slow) {
    }
    wakes_[node.index] = node.worker->next_deadline();
}

bool IncastWorld::is_due(std::size_t node) const noexcept {
    const bool free = node != plan_.clients || server_free_ <= now_;
    return free && (wakes_[node] <= now_ || network_.next_arrival(node) <= now_);
}

void IncastWorld::run_until(Instant end) {
    const Duration step = plan_.server_turn > Duration{} ? nanoseconds(100) : nanoseconds(1);
    while (now_ < end) {
        network_.advance(now_);
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            if (is_due(i)) {
                turn(*nodes_[i]);
            }
        }
        const Instant wake = *std::min_element(wakes_.begin(), wakes_.end());
        now_ = std::min(end, std::max(std::min(wake, network_.next_arrival()), now_ + step));
    }
}

std::uint64_t IncastWorld::retransmits() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& node : nodes_) {
        sum += node->endpoint->statistics().retransmits;
    }
    return sum;
}

// Returns the counters.
IncastResult IncastWorld::counted() const {
    IncastResult all;
    all.retransmits = retransmits();
    all.calls = calls_;
    all.calls_failed = calls_failed_;
    all.take_totals(network_.totals());
    return all;
}

void IncastWorld::begin_measuring() {
    before_ = counted();
    for (Arrivals& each : arrivals_) {
        each.bytes = 0;
    }
    round_trips_.clear();
}

IncastResult IncastWorld::result() const {
    std::vector<double> bytes;
    for (const Arrivals& each : arrivals_) {
        bytes.push_back(static_cast<double>(each.bytes));
    }
    IncastResult all = counted();
    all.subtract(before_);
    all.take_shares(bytes, plan_.measured, plan_.shape.bits_per_second);
    all.take_round_trips(round_trips_);
    return all;
}

IncastResult IncastWorld::run() {
    run_until(now_ + plan_.warm_up);
    begin_measuring();
    run_until(now_ + plan_.measured);
    IncastResult all = result();
    all.queue_most_bytes = network_.joint()->queued_bytes_most();
    return all;
}

}  // namespace cairn::sim
