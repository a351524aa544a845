#include "fs/daemon/peer_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/base/assert.hpp"

namespace cairn::fs {

namespace {

constexpr Duration kSayEvery = seconds(1);

}  // namespace

PeerLinks::PeerLinks(copyrpc::Endpoint& endpoint, worker::Worker& worker, const PeerLinkConfig& config,
                     PeerWatch& watch, PeerCounters& counters)
    : endpoint_(endpoint),
      worker_(worker),
      config_(config),
      prover_(config.cluster_key),
      watch_(watch),
      counters_(counters) {
    for (std::uint32_t shard = 0; shard != config_.cluster.shards(); ++shard) {
        const auto number = static_cast<ShardNumber>(shard);
        if (config_.cluster.is_remote(number)) {
            const bool connects = config_.facts.from < number;
            peers_.push_back({number, nullptr, connects ? Instant{} : Instant::never(), kBackoffLeast});
        }
    }
    endpoint_.set_session_callback(
        [](void* self, SessionId session, rpc::LinkEvent event) {
            static_cast<PeerLinks*>(self)->on_event(session, event, true);
        },
        this);
    endpoint_.set_guest_callback(
        [](void* self, SessionId session, rpc::LinkEvent event) {
            static_cast<PeerLinks*>(self)->on_event(session, event, false);
        },
        this);
    set_handlers();
}

Status PeerLinks::listen() {
    const std::uint32_t port = PeerLinkConfig::kFirstPort + config_.cluster.local_of(config_.facts.from);
    return endpoint_.listen(static_cast<std::uint16_t>(port));
}

void PeerLinks::on_turn(Instant now) {
    for (const auto& link : links_) {
        if (link->step != Step::Proven && link->step != Step::Ended && link->by <= now) {
            refuse(*link, "it proved nothing in time");
        }
    }
    if (std::exchange(any_ended_, false)) {
        for (const auto& link : links_) {
            if (link->step == Step::Ended) {
                endpoint_.disconnect(link->session, now);
            }
        }
        std::erase_if(links_, [](const auto& link) { return link->step == Step::Ended; });
    }
    for (Peer& peer : peers_) {
        if (peer.connect_at <= now) {
            connect(peer, now);
        }
    }
}

Instant PeerLinks::next_deadline() const noexcept {
    Instant due = any_ended_ ? Instant{} : Instant::never();
    for (const auto& link : links_) {
        due = link->step == Step::Proven ? due : std::min(due, link->by);
    }
    for (const Peer& peer : peers_) {
        due = std::min(due, peer.connect_at);
    }
    return due;
}

void PeerLinks::leave(Instant now) {
    for (Peer& peer : peers_) {
        peer.connect_at = Instant::never();
    }
    for (const auto& link : links_) {
        endpoint_.disconnect(link->session, now);
    }
}

std::optional<SessionId> PeerLinks::session_of(ShardNumber number) const noexcept {
    const auto found = std::ranges::find(peers_, number, &Peer::number);
    return found != peers_.end() && found->link != nullptr ? std::optional(found->link->session) : std::nullopt;
}

std::optional<ShardNumber> PeerLinks::peer_of(SessionId session) const noexcept {
    const Link* const link = find(session);
    return link != nullptr && link->step == Step::Proven ? std::optional(link->peer) : std::nullopt;
}

void PeerLinks::on_breach(SessionId session) {
    if (Link* const link = find(session); link != nullptr) {
        counters_.count(link->step == Step::Proven ? PeerCounter::Breaches : PeerCounter::Strangers);
        end(*link);
    }
}

void PeerLinks::lose(ShardNumber number) {
    if (Peer* const lost = peer(number); lost != nullptr && lost->link != nullptr) {
        end(*lost->link);
    }
}

// Puts off the next try here, and not at the failure: however this one ends, another one follows.
void PeerLinks::connect(Peer& peer, Instant now) {
    const Cluster& cluster = config_.cluster;
    const std::uint32_t port = PeerLinkConfig::kFirstPort + cluster.local_of(peer.number);
    const auto session =
        endpoint_.connect(cluster.nodes[cluster.node_of(peer.number)], static_cast<std::uint16_t>(port), now);
    if (!session.ok()) {
        peer.connect_at = now + kBackoffMost;
        return;
    }
    peer.connect_at = Instant::never();
    links_.push_back(std::make_unique<Link>(
        Link{session.value(), true, Step::Connecting, peer.number, {}, 0, now + kConnectMost, {}}));
}

// Ends a link. If the link is ours, another one follows.
void PeerLinks::end(Link& link) {
    if (link.step == Step::Ended) {
        return;
    }
    link.step = Step::Ended;
    any_ended_ = true;
    Peer* const own = peer(link.peer);  // a link without a proof may have named any peer
    if (own != nullptr && link.ours) {
        own->connect_at = worker_.now() + own->backoff;
        own->backoff = std::min(own->backoff * 2, kBackoffMost);
    }
    if (own != nullptr && own->link == &link) {
        own->link = nullptr;
        counters_.count(PeerCounter::Lost);
        watch_.on_lost(own->number);
    }
}

// Admits a connection without a proof. If there are too many, the oldest of them is refused.
void PeerLinks::admit(SessionId session) {
    const auto is_stranger = [](const auto& link) {
        return !link->ours && link->step != Step::Proven && link->step != Step::Ended;
    };
    if (std::ranges::count_if(links_, is_stranger) >= PeerLinkConfig::kMostStrangers) {
        refuse(**std::ranges::find_if(links_, is_stranger), "too many have proved nothing");
    }
    links_.push_back(
        std::make_unique<Link>(Link{session, false, Step::Greeting, 0, {}, 0, worker_.now() + config_.patience, {}}));
}

void PeerLinks::on_event(SessionId session, rpc::LinkEvent event, bool ours) {
    Link* const link = find(session);
    if (event != rpc::LinkEvent::Connected) {
        if (link != nullptr) {
            end(*link);
        }
    } else if (!ours) {
        admit(session);
    } else if (link != nullptr && link->step == Step::Connecting) {
        greet(*link);
    }
}

// Makes the link the peer's connection. It replaces the connection of the peer's earlier life.
void PeerLinks::become_proven(Link& link) {
    Peer& own = *peer(link.peer);
    if (own.link != nullptr) {
        end(*own.link);
    }
    link.step = Step::Proven;
    own.link = &link;
    own.connect_at = Instant::never();
    own.backoff = kBackoffLeast;
    counters_.count(PeerCounter::Found);
    watch_.on_found(own.number, link.life);
}

// Refuses a link. differs() bounds its log lines, so unknown peers do not fill the log.
void PeerLinks::refuse(Link& link, const std::string& why) {
    if (link.step != Step::Connecting) {
        counters_.count(PeerCounter::Strangers);
        differs(link, why);
    }
    end(link);
}

void PeerLinks::differs(const Link& link, const std::string& what) {
    const Instant now = worker_.now();
    if (config_.say == nullptr || now < said_at_) {
        return;
    }
    said_at_ = now + kSayEvery;
    const std::string who =
        link.ours || link.step != Step::Greeting
            ? fmt::format("shard {} at {}", link.peer, config_.cluster.nodes[config_.cluster.node_of(link.peer)].text())
            : "a stranger";
    config_.say(fmt::format("shard {} does not go together with {}: {}", config_.facts.from, who, what));
}

PeerLinks::Link* PeerLinks::find(SessionId session) const noexcept {
    const auto found = std::ranges::find_if(
        links_, [session](const auto& link) { return link->session == session && link->step != Step::Ended; });
    return found == links_.end() ? nullptr : found->get();
}

PeerLinks::Peer* PeerLinks::peer(ShardNumber number) noexcept {
    const auto found = std::ranges::find(peers_, number, &Peer::number);
    return found == peers_.end() ? nullptr : &*found;
}

}  // namespace cairn::fs
