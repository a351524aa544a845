#include "tests/interop/peer/peer.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>

namespace cairn::interop {

namespace {

roce::EngineConfig engine_config() {
    std::random_device entropy;
    const auto word = [&entropy] { return (std::uint64_t{entropy()} << 32U) | entropy(); };
    roce::EngineConfig config;
    config.max_queue_pairs = 64;
    config.max_regions = 64;
    config.seed = {word(), word()};
    return config;
}

}  // namespace

void require(bool so, std::string_view what) {
    if (!so) {
        std::fprintf(stderr, "verbs-peer: not so: %.*s\n", static_cast<int>(what.size()), what.data());
        std::exit(1);
    }
}

Peer::Peer(port::Port& port)
    : worker_(take(worker::Worker::create(port, engine_config(), clock_.now()))),
      device_(*worker_),
      pd_(device_.create_pd()) {
    connections::HomeConfig config;
    config.cm.max_retries = wire::CmRetries{7};
    home_ = take(connections::Home::create(connections::Agent::create(), *worker_, config));
    connector_ = std::make_unique<verbs::Connector>(device_, *home_);
}

void Peer::listen(std::uint16_t service_port, std::uint32_t backlog) {
    (void)take(connector_->listen(service_port, backlog));
    tell_ready();
}

void Peer::tell_ready() {
    std::puts("ready");
    std::fflush(stdout);
}

void Peer::turn() {
    const Instant time = now();
    if (!worker_->turn(time)) {
        worker_->wait(time, time + milliseconds(1));
    }
}

verbs::Completion Peer::await_completion(verbs::Cq& queue, std::string_view what) {
    std::array<verbs::Completion, 1> done{};
    await(what, [&] { return queue.poll(done) == 1; });
    return done[0];
}

std::unique_ptr<verbs::Ah> Peer::open_way(const net::IpAddress& remote) {
    auto way = take(device_.create_ah(remote, port::kFirstUdpSourcePort, now()));
    linger(milliseconds(20));
    return way;
}

void Peer::linger(Duration time) {
    const Instant end = now() + time;
    while (now() < end) {
        turn();
    }
}

Queues::Queues(Peer& peer, std::size_t bytes)
    : memory_(take(pmd::HeapBlock::allocate(bytes, "memory of a queue pair"))),
      mr_(take(peer.device().register_memory(peer.pd(), memory_.bytes(),
                                             kRemoteRights | verbs::Right::LocalWrite | verbs::Right::BindWindow))),
      sends_(take(peer.device().create_cq(64))),
      receives_(take(peer.device().create_cq(64))) {}

End::End(Peer& peer, std::size_t bytes, verbs::Service service) : Queues(peer, bytes) {
    verbs::QpCapacity capacity;
    capacity.service = service;
    qp_ = take(peer.device().create_qp(peer.pd(), capacity, {sends(), receives()}));
}

DatagramEnd::DatagramEnd(Peer& peer, std::size_t bytes)
    : Queues(peer, bytes),
      qp_(take(peer.device().create_datagram_qp(peer.pd(), verbs::QpCapacity{}, {sends(), receives()}))) {
    require(qp_->bring_up(verbs::kRdmaCmQkey) == std::nullopt, "a queue pair of datagrams comes up");
}

}  // namespace cairn::interop
