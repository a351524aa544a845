// One host of the devices' fuzzer.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/verbs/connector.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/support/guarded_pages.hpp"
#include "tests/support/wire_port.hpp"

namespace cairn::verbs {

constexpr Rights kRemote = Rights{Right::RemoteWrite} | Right::RemoteRead | Right::RemoteAtomic;
constexpr std::uint16_t kService = 7471;
constexpr Qkey kQkey{7};
constexpr const char* kGroup = "224.0.0.77";
constexpr std::size_t kBuffers = 512;

using test::require;

struct Host {
    Host(const char* address, std::uint64_t seed) : port(address, kBuffers), address_text(address) {
        roce::EngineConfig config;
        config.seed = {seed, 1};
        config.max_queue_pairs = 8;
        worker = worker::Worker::create(port, config, Instant{}).value();
        device = std::make_unique<Device>(*worker);
        pd = device->create_pd();
        home = connections::Home::create(connections::Agent::create(), *worker, {}).value();
        connector = std::make_unique<Connector>(*device, *home);
        require(connector->listen(kService, 2).ok());
        completions = device->create_cq(64).value();
        register_memory();
        make_datagram_qp();
        group = device->create_ah(net::IpAddress::parse(kGroup).value(), 0xc000, Instant{}).value();
    }
    void make_datagram_qp() {
        datagrams.reset();
        QpCapacity capacity;
        capacity.send_slots = 4;
        capacity.receive_slots = 4;
        datagrams = device->create_datagram_qp(*pd, capacity, {*completions, *completions}).value();
        require(datagrams->bring_up(kQkey) == std::nullopt);
    }
    void register_memory() {
        mr.reset();
        mr = device->register_memory(*pd, pages.span(), kRemote | Right::LocalWrite).value();
    }
    [[nodiscard]] Qp* choose(std::uint8_t which) const { return qps.empty() ? nullptr : qps[which % qps.size()].get(); }

    Qp* make_qp(std::uint8_t bits) {
        QpCapacity capacity;
        capacity.send_slots = 4;
        capacity.receive_slots = 4;
        capacity.window_packets = 8;
        capacity.service = (bits & 1U) != 0 ? wire::Service::Uc : wire::Service::Rc;
        auto made = device->create_qp(*pd, capacity, {*completions, *completions});
        if (!made.ok()) {
            return nullptr;
        }
        return qps.emplace_back(std::move(made).value()).get();
    }
    void take_events() {
        while (const std::optional<cm::Event> event = connector->poll_event()) {
            if (const auto* const requested = std::get_if<cm::Requested>(&*event)) {
                asked.push_back(requested->id);
            }
            std::erase_if(links, [](const auto& link) { return !link.second->in_use(); });
        }
    }
    // Returns the connection of a queue pair, if it has one.
    [[nodiscard]] std::optional<ConnectionId> link_of(const Qp* qp) const {
        const auto found = std::find_if(links.begin(), links.end(), [qp](const auto& one) { return one.second == qp; });
        return found == links.end() ? std::nullopt : std::optional(found->first);
    }

    test::GuardedPages pages{1};
    test::WirePort port;
    const char* address_text;
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<Device> device;
    std::unique_ptr<Pd> pd;
    std::unique_ptr<Mr> mr;
    std::unique_ptr<Cq> completions;
    std::vector<std::unique_ptr<Qp>> qps;
    std::unique_ptr<UdQp> datagrams;
    std::unique_ptr<Ah> group;
    std::unique_ptr<connections::Home> home;
    std::unique_ptr<Connector> connector;  // ends before the queue pairs
    std::vector<ConnectionId> asked;
    std::map<ConnectionId, Qp*> links;
};

}  // namespace cairn::verbs
