#include "fs/daemon/peer_network.hpp"

#include <utility>

namespace cairn::fs {

namespace {

constexpr std::uint16_t kReceives = 16;

// Returns the number of connections to peers. Connections of peers' earlier lives and of unknown peers come in
// addition.
std::uint32_t peers_of(const Cluster& cluster) noexcept {
    return cluster.shards() - cluster.local_shards;
}

std::uint16_t sessions_of(const Cluster& cluster) noexcept {
    return static_cast<std::uint16_t>(2 * peers_of(cluster) + 2 * PeerLinkConfig::kMostStrangers);
}

copyrpc::EndpointConfig endpoint_of(const PeerNetworkConfig& config) {
    const Cluster& cluster = config.links.cluster;
    copyrpc::EndpointConfig endpoint;
    endpoint.ring_bytes = PeerNetwork::kRingBytes;
    endpoint.peer_ring_bytes_max = PeerNetwork::kRingBytes;
    endpoint.receives = kReceives;
    endpoint.sessions_max = sessions_of(cluster);
    endpoint.own_sessions = static_cast<std::uint16_t>(peers_of(cluster));
    endpoint.host_sessions_max = endpoint.sessions_max;  // a host has many shards; PeerLinks limits the unproven
    endpoint.calls_max = PeerMail::kMostCalls + cluster.shards() * (Gateway::kMostUnderWay + 1);
    endpoint.answer_bytes = 256;
    endpoint.message_bytes_max = 0;  // connections without a proof get no memory
    endpoint.path_mtu_bytes = config.path_mtu_bytes;
    return endpoint;
}

}  // namespace

std::size_t PeerNetwork::bytes_for(const Cluster& cluster) noexcept {
    return (std::size_t{sessions_of(cluster)} * 2 + 8) * rpc::MsgPool::bytes_for(kRingBytes);
}

Result<std::unique_ptr<PeerNetwork>> PeerNetwork::create(std::shared_ptr<connections::Agent> agent,
                                                         worker::Worker& worker, const PeerNetworkConfig& config) {
    std::unique_ptr<PeerNetwork> network(new PeerNetwork(worker, config));
    if (const Status opened = network->open(std::move(agent)); !opened.ok()) {
        return opened.error();
    }
    return network;
}

PeerNetwork::~PeerNetwork() {
    endpoint_.reset();  // ends before the objects that its callbacks use
}

Status PeerNetwork::open(std::shared_ptr<connections::Agent> agent) {
    connections::HomeConfig connections;
    connections.udp_source_port = static_cast<std::uint16_t>(connections.udp_source_port + worker_.config().owner);
    auto home = connections::Home::create(std::move(agent), worker_, connections);
    if (!home.ok()) {
        return home.error();
    }
    home_ = std::move(home).value();
    device_ = std::make_unique<verbs::Device>(worker_);
    auto endpoint = copyrpc::Endpoint::create(endpoint_of(config_), *device_, *home_, pool_);
    if (!endpoint.ok()) {
        return endpoint.error();
    }
    endpoint_ = std::move(endpoint).value();
    PeerWatch& watch = *this;
    links_ = std::make_unique<PeerLinks>(*endpoint_, worker_, config_.links, watch, counters_);
    mail_ = std::make_unique<PeerMail>(*endpoint_, *links_, worker_, counters_);
    foreign_ = std::make_unique<ForeignCalls>(*endpoint_, *links_, worker_, counters_);
    endpoint_->set_handler(
        static_cast<std::uint8_t>(PeerCall::Tell),
        [](void* self, const copyrpc::Request& request) { static_cast<PeerNetwork*>(self)->on_message(request); },
        this);
    find_nodes();
    return links_->listen();
}

// Asks for the paths to all nodes. The next life of a node may have another Ethernet address. Shards that connect to it
// would use the old address for half a minute. They learn the new one from this node's question for their addresses.
void PeerNetwork::find_nodes() {
    for (std::uint32_t node = 0; node != cluster().node_count(); ++node) {
        if (node != cluster().node) {
            (void)home_->own_path(cluster().nodes[node], worker_.now());  // asked again and again
        }
    }
}

void PeerNetwork::serve(ShardHost& clients) {
    gateway_ = std::make_unique<Gateway>(*endpoint_, *links_, *mail_, worker_, clients, counters_);
    for (std::uint32_t shard = 0; shard != cluster().shards(); ++shard) {
        if (cluster().is_remote(static_cast<ShardNumber>(shard))) {
            events_.emplace_back(Lost{static_cast<ShardNumber>(shard)});
        }
    }
}

void PeerNetwork::on_found(ShardNumber peer, std::uint64_t life) {
    events_.emplace_back(Found{peer});
    foreign_->on_found(peer, life, worker_.now());
    gateway_->on_found(peer);
}

void PeerNetwork::on_lost(ShardNumber peer) {
    events_.emplace_back(Lost{peer});
    foreign_->on_lost(peer, worker_.now());
    gateway_->on_lost(peer, worker_.now());
}

void PeerNetwork::on_message(const copyrpc::Request& request) {
    const std::optional<ShardNumber> from = links_->peer_of(request.handle.session);
    if (!from) {
        links_->on_breach(request.handle.session);
        return;
    }
    (void)endpoint_->answer(request.handle, {}, request.now);
    events_.emplace_back(Message{*from, request.handle.session, {request.payload.begin(), request.payload.end()}});
}

void PeerNetwork::begin_turn(Shard& shard, Instant now) {
    links_->on_turn(now);
    for (const auto& event : std::exchange(events_, {})) {
        if (const auto* const found = std::get_if<Found>(&event)) {
            shard.find(found->peer);
        } else if (const auto* const lost = std::get_if<Lost>(&event)) {
            shard.lose(lost->peer);
        } else if (const auto& message = std::get<Message>(event); !shard.take_message(message.from, message.bytes)) {
            links_->on_breach(message.session);
        }
    }
    gateway_->on_turn(now);
}

Instant PeerNetwork::next_deadline() const noexcept {
    if (!events_.empty()) {
        return Instant{};
    }
    return std::min({links_->next_deadline(), gateway_->next_deadline(), foreign_->next_deadline()});
}

}  // namespace cairn::fs
