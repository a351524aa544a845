#include "lib/sim/cm/cm_world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/cm/timeouts.hpp"
#include "lib/wire/bth.hpp"
#include "lib/wire/icrc.hpp"
#include "lib/wire/opcode.hpp"

namespace cairn::sim {

namespace {

constexpr Duration kTurn = milliseconds(20);       // between two turns of a host
constexpr Duration kLateCopy = milliseconds(100);  // less than TIMEWAIT: a later copy is new to every host
constexpr Duration kPatience = seconds(200);       // all retries and service timeouts of what is under way

constexpr std::uint64_t kBesideFlood = 64;  // places of a backlog, for requests that come while a user thinks

Qkey qkey_of(std::size_t host) {
    return Qkey{static_cast<std::uint32_t>(0x1000 + host)};
}

}  // namespace

CmWorld::CmWorld(std::uint64_t seed) : random_(seed), nodes_(2 + seed % 2), log_(nodes_.size()) {
    choose_faults();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        nodes_[i].address = net::IpAddress::from_v4(static_cast<std::uint32_t>(0x0a000001 + i));
        start_life(nodes_[i]);
    }
    to_connect_ = random_.between(5, 30);
}

void CmWorld::choose_faults() {
    const auto in_half = [this](std::uint32_t most) {
        return random_.below(2) == 0 ? 0U : static_cast<std::uint32_t>(random_.below(most));
    };
    faults_.loss_per_million = in_half(400'000);
    faults_.double_per_million = in_half(300'000);
    faults_.late_per_million = in_half(200'000);
    faults_.jitter = milliseconds(in_half(50));
    faults_.restart_per_million = in_half(16'000);
    faults_.nonsense_per_million = in_half(100'000);
    faults_.fewest_retries = random_.below(2) == 0 ? 0 : 15;
    faults_.slow_users = random_.below(2) == 0;
    faults_.same_queue_pairs = random_.below(2) == 0;
    faults_.flood_per_turn = in_half(8);
    faults_.slow_users = faults_.slow_users && faults_.flood_per_turn == 0;  // in a flood, users cannot tell whose
                                                                             // request waits
}

// Begins a life, in which the host has forgotten everything. Messages under way still arrive.
void CmWorld::start_life(Node& node) {
    if (node.manager != nullptr) {
        counters_.manager += node.manager->counters().snapshot();
        ++counters_.restarts;
        const auto index = static_cast<std::size_t>(&node - nodes_.data());
        for (auto& [cookie, deal] : deals_) {
            deal.restarted |= deal.client == index || deal.server_life == node.life;
        }
    }
    cm::Config config;
    config.seed = {random_.next(), 0};
    config.max_connections = 512;
    config.max_retries = wire::CmRetries{static_cast<std::uint8_t>(random_.between(faults_.fewest_retries, 15))};
    node.manager = std::make_unique<cm::Manager>(config);
    node.life = ++last_life_;
    node.locals.clear();
    node.gone.clear();
    node.drawn_again = 0;
    node.forged.clear();
    node.questions.clear();
    if (!faults_.same_queue_pairs || node.next_qpn == 0) {
        node.next_qpn += 0x1000;
    } else {
        node.next_qpn &= 0xfff000U;
    }
    const std::uint64_t others = faults_.flood_per_turn != 0 ? kBesideFlood : 0;
    const auto backlog = static_cast<std::uint32_t>(random_.between(others + 1, others + 8));
    const Qpn serving{static_cast<std::uint32_t>(0x800000 + (&node - nodes_.data()))};
    (void)node.manager->listen(kCmService, backlog);
    (void)node.manager->listen(kCmIpService, backlog, node.address);
    const Qkey key = qkey_of(static_cast<std::size_t>(&node - nodes_.data()));
    (void)node.manager->datagrams().listen(kCmService, {}, cm::DatagramService{serving, key, {}});
    (void)node.manager->datagrams().listen(kCmIpService, {}, std::nullopt);
}

void CmWorld::require(bool holds, const std::string& what) {
    if (!holds && !broken_) {
        broken_ = what + " at " + std::to_string(now_.ns / 1000) + " us";
    }
}

std::size_t CmWorld::host_of(const net::IpAddress& address) const {
    const auto found =
        std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.address == address; });
    return static_cast<std::size_t>(found - nodes_.begin());
}

std::optional<std::string> CmWorld::run() {
    while (!broken_ && (to_connect_ > 0 || now_ < Instant{} + seconds(5))) {
        step();
    }
    const std::uint64_t flood_per_turn = faults_.flood_per_turn;
    faults_ = {};
    healed_ = true;
    require(run_until_quiet(now_ + kPatience), "connections that never end once the network is well");
    faults_.flood_per_turn = flood_per_turn;
    connect_once_more();
    faults_ = {};
    require(run_until_quiet(now_ + kPatience), "connections that never end in a quiet world");
    for (const Node& node : nodes_) {
        counters_.manager += node.manager->counters().snapshot();
        require(node.manager->connections() == 0, "connections that nobody has");
        require(node.locals.empty(), "connections that are never released");
    }
    for (const auto& [cookie, deal] : deals_) {
        require(deal.restarted || !deal.ready || deal.server_saw_it || deal.server_gave_up,
                "a connection of which the server was told nothing");
    }
    return broken_;
}

// Connects each host to each other: nothing of the past may prevent it.
void CmWorld::connect_once_more() {
    for (std::size_t from = 0; from < nodes_.size(); ++from) {
        for (std::size_t to = 0; to < nodes_.size(); ++to) {
            const std::uint64_t wanted = counters_.established + (from == to ? 0U : 1U);
            if (from != to) {
                connect(from, to);
            }
            const Instant limit = now_ + seconds(5);
            while (!broken_ && now_ < limit && counters_.established < wanted) {
                step();
            }
            require(counters_.established == wanted, "no connection in a quiet world");
        }
    }
}

bool CmWorld::all_quiet() const {
    return flying_.empty() && std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
               return node.locals.empty() && node.questions.empty() && node.manager->connections() == 0;
           });
}

bool CmWorld::run_until_quiet(Instant limit) {
    for (Node& node : nodes_) {
        for (auto& [id, local] : node.locals) {
            local.act_at = local.phase == Phase::Asked ? Instant::never() : std::min(local.act_at, now_ + kTurn);
        }
    }
    while (!broken_ && !all_quiet() && now_ < limit) {
        step();
    }
    return all_quiet();
}

Instant CmWorld::next_time() const {
    Instant next = now_ + kTurn;
    if (!flying_.empty()) {
        next = std::min(next, flying_.begin()->first);
    }
    for (const Node& node : nodes_) {
        next = std::min(next, node.manager->next_deadline());
    }
    return std::max(next, now_);
}

void CmWorld::step() {
    now_ = next_time();
    while (!flying_.empty() && flying_.begin()->first <= now_) {
        const Flying arrived = flying_.begin()->second;
        flying_.erase(flying_.begin());
        const cm::Route route{arrived.mad.route.remote, arrived.mad.route.local};
        nodes_[arrived.to].manager->on_mad(route, arrived.mad.bytes, now_);
        poll_all(arrived.to);
        send_all(arrived.to);
    }
    flood();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        nodes_[i].manager->on_timeout(now_);
        poll_all(i);
        turn(i);
        send_all(i);
    }
}

void CmWorld::turn(std::size_t index) {
    Node& node = nodes_[index];
    if (random_.chance(faults_.restart_per_million)) {
        start_life(node);
        return;
    }
    if (to_connect_ > 0 && random_.chance(200'000)) {
        --to_connect_;
        const std::size_t to = (index + random_.between(1, nodes_.size() - 1)) % nodes_.size();
        connect(index, to);
        resolve(index, to);
    }
    std::vector<cm::ConnectionId> due;
    for (const auto& [id, local] : node.locals) {
        if (local.act_at <= now_) {
            due.push_back(id);
        }
    }
    for (const cm::ConnectionId id : due) {
        act(node, id, node.locals.at(id));
        poll_all(index);
    }
}

void CmWorld::send_all(std::size_t index) {
    while (const std::optional<cm::OutMad> mad = nodes_[index].manager->poll_transmit()) {
        require(mad->route.local == nodes_[index].address, "a message with a foreign source");
        send(index, *mad);
    }
}

void CmWorld::send(std::size_t from, const cm::OutMad& mad) {
    const std::size_t to = host_of(mad.route.remote);
    if (to == nodes_.size()) {
        Account& account = accounts_[mad.route.remote];
        require(++account.sent <= 3 * account.asked, "more than three messages for each of one that never answered");
        return;
    }
    for (const std::uint8_t octet : mad.bytes) {
        note(octet);
    }
    note(static_cast<std::uint64_t>(now_.ns));
    if (random_.chance(faults_.nonsense_per_million)) {
        make_up(from, to);
    }
    if (random_.chance(faults_.loss_per_million)) {
        ++counters_.lost;
        log(from, {to, mad}, "lost");
        return;
    }
    const auto fly = [&](Duration at_most, std::string_view fate) {
        flying_.emplace(now_ + microseconds(50) + random_.between({}, at_most), Flying{to, mad});
        log(from, {to, mad}, fate);
    };
    fly(faults_.jitter, "delivered");
    if (random_.chance(faults_.double_per_million)) {
        ++counters_.doubled;
        fly(faults_.jitter, "doubled");
    }
    if (random_.chance(faults_.late_per_million)) {
        ++counters_.doubled;
        fly(kLateCopy, "late");
    }
}

// Sends a message with a right header and a body that is noise.
void CmWorld::make_up(std::size_t from, std::size_t to) {
    cm::OutMad mad{{nodes_[from].address, nodes_[to].address}, {}};
    for (std::uint8_t& octet : mad.bytes) {
        octet = static_cast<std::uint8_t>(random_.next());
    }
    const auto attribute = static_cast<std::uint16_t>(random_.between(0x0f, 0x1b));
    emit_at(mad.bytes.data(), wire::MadHeader{random_.next(), attribute});
    flying_.emplace(now_ + microseconds(10), Flying{to, mad});
    log(from, {to, mad}, "made up");
}

void CmWorld::flood() {
    if (now_ < flood_at_) {
        return;
    }
    flood_at_ = now_ + kTurn;
    for (std::uint64_t i = 0; i < faults_.flood_per_turn && !broken_; ++i) {
        forge_request();
    }
}

// Forges a request. It names the queue pair that the host in whose name it is sent will use next, if there is such a
// host.
void CmWorld::forge_request() {
    const std::size_t to = random_.below(nodes_.size());
    const Node& other = nodes_[(to + 1) % nodes_.size()];
    const bool in_others_name = random_.below(4) == 0;
    const std::uint64_t made_up = random_.below(2) == 0 ? 0 : random_.below(1U << 24U);
    const net::IpAddress source =
        in_others_name ? other.address : net::IpAddress::from_v4(static_cast<std::uint32_t>(0x0b000000 + made_up));
    wire::Req req;
    req.local_comm_id = wire::CommId{static_cast<std::uint32_t>(random_.next())};
    req.local_qpn = Qpn{static_cast<std::uint32_t>(other.next_qpn + random_.below(4))};
    req.service_id = kCmService;
    req.path_mtu = wire::path_mtu_of(1024);
    req.primary.local_gid = source.octets();
    req.primary.remote_gid = nodes_[to].address.octets();
    req.local_response_timeout = wire::CmTimeout{static_cast<std::uint8_t>(random_.below(32))};
    req.remote_response_timeout = wire::CmTimeout{static_cast<std::uint8_t>(random_.below(32))};
    req.max_cm_retries = wire::CmRetries{15};
    req.private_data.fill(kForged);
    ++counters_.forged;
    accounts_[source].asked += in_others_name ? 0 : 1;
    nodes_[to].manager->on_mad({nodes_[to].address, source}, wire::CmMad{random_.next(), req}.bytes(), now_);
    poll_all(to);
    send_all(to);
}

// Logs the message as a datagram between two queue pairs 1.
void CmWorld::log(std::size_t from, const Flying& flying, std::string_view fate) {
    wire::Bth bth;
    bth.opcode = wire::opcode_of(wire::Service::Ud, wire::Operation::SendOnly);
    bth.dest_qpn = wire::kGeneralServicesQpn;
    const wire::Deth deth{wire::kGeneralServicesQkey, wire::kGeneralServicesQpn};
    constexpr std::size_t kHeaders = wire::Bth::kBytes + wire::Deth::kBytes;
    std::array<std::uint8_t, kHeaders + wire::kMadBytes + wire::kIcrcBytes> datagram{};
    emit_at(datagram.data(), bth);
    emit_at(datagram.data() + wire::Bth::kBytes, deth);
    std::copy(flying.mad.bytes.begin(), flying.mad.bytes.end(), datagram.begin() + kHeaders);
    log_.add({now_, from, flying.to, fate}, datagram);
}

std::string CmWorld::text() const {
    return fmt::format(
        "{} hosts; {} connections asked for, {} established, {} rejected, {} unreachable, {} services resolved; {} "
        "messages, {} lost, {} doubled, {} restarts",
        nodes_.size(), counters_.asked, counters_.established, counters_.rejected, counters_.unreachable,
        counters_.resolved, log_.datagrams(), counters_.lost, counters_.doubled, counters_.restarts);
}

}  // namespace cairn::sim
