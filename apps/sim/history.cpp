#include "apps/sim/history.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "apps/sim/fs_trace.hpp"
#include "apps/sim/trace.hpp"
#include "fs/sim/world.hpp"
#include "lib/sim/cm/cm_world.hpp"
#include "lib/sim/rc/rc_world.hpp"
#include "lib/sim/ud/ud_scenario.hpp"
#include "lib/sim/verbs/verbs_scenario.hpp"
#include "rpc/sim/copyrpc_scenario.hpp"
#include "rpc/sim/erpc_scenario.hpp"
#include "rpc/sim/mixed_world.hpp"
#include "rpc/sim/scalerpc_scenario.hpp"

namespace cairn::simulate {

namespace {

std::uint64_t acts_of(const sim::ErpcWorld& world) {
    return world.counters().calls;
}
std::uint64_t acts_of(const sim::UdWorld& world) {
    return world.counters().posted;
}
std::uint64_t acts_of(const sim::VerbsWorld& world) {
    return world.users().counters().requests;
}
std::uint64_t acts_of(const sim::CopyrpcWorld& world) {
    return world.users().counters().calls;
}
std::uint64_t acts_of(const sim::ScalerpcWorld& world) {
    return world.users().counters().calls;
}
std::uint64_t acts_of(const sim::MixedWorld& world) {
    return world.acts();
}

// The history of a world of nodes on a network.
template <class Nodes>
class NodeHistory final : public History {
public:
    using Line = std::function<std::string(const sim::Network::Passage& passage, const sim::Frame& frame)>;

    // Makes the world. `line` returns a trace's line about a frame.
    template <class... Arguments>
    explicit NodeHistory(Line line, Arguments&&... arguments)
        : line_(std::move(line)), world_(std::forward<Arguments>(arguments)...) {}

    void trace() override {
        world_.set_witness([this](const sim::Network::Passage& passage, const sim::Frame& frame) {
            fmt::print("{}\n", line_(passage, frame));
        });
    }
    [[nodiscard]] std::optional<std::string> run() override { return world_.run(); }
    [[nodiscard]] std::string text() const override { return world_.text(); }
    [[nodiscard]] Instant now() const override { return world_.now(); }
    [[nodiscard]] std::uint64_t acts() const override { return acts_of(world_); }
    [[nodiscard]] std::uint64_t parcels() const override { return world_.network().totals().offered; }
    [[nodiscard]] const sim::Capture* capture() const override { return &world_.network().capture(); }

private:
    Line line_;
    Nodes world_;
};

std::string line_of_datagram(const sim::Network::Passage& passage, const sim::Frame& frame) {
    return trace_line(passage, frame);
}

std::uint64_t acts_of(const sim::RcWorld& world) {
    return world.requests();
}
std::uint64_t acts_of(const sim::CmWorld& world) {
    return world.counters().asked;
}

// The history of a world whose hosts exchange datagrams without a network of frames.
template <class Datagrams>
class DatagramHistory final : public History {
public:
    explicit DatagramHistory(std::uint64_t seed) : world_(seed) {}

    void trace() override {
        world_.log().set_witness([](const sim::DatagramLog::Passage& passage, std::span<const std::uint8_t> datagram) {
            fmt::print("{}\n", trace_line(passage, datagram));
        });
    }
    [[nodiscard]] std::optional<std::string> run() override { return world_.run(); }
    [[nodiscard]] std::string text() const override { return world_.text(); }
    [[nodiscard]] Instant now() const override { return world_.now(); }
    [[nodiscard]] std::uint64_t acts() const override { return acts_of(world_); }
    [[nodiscard]] std::uint64_t parcels() const override { return world_.log().datagrams(); }
    [[nodiscard]] const sim::Capture* capture() const override { return &world_.log().capture(); }

private:
    Datagrams world_;
};

// The history of a file system.
class FsHistory final : public History {
public:
    explicit FsHistory(std::uint64_t seed) : world_(seed) {}

    void trace() override {
        world_.set_witness([](const fs::ClusterEvent& event) { fmt::print("{}\n", trace_line(event)); });
    }
    [[nodiscard]] std::optional<std::string> run() override {
        const std::vector<std::string> faults = world_.run().faults;
        return faults.empty() ? std::nullopt : std::optional(faults.front());
    }
    [[nodiscard]] std::string text() const override { return world_.text(); }
    [[nodiscard]] Instant now() const override { return world_.now(); }
    [[nodiscard]] std::uint64_t acts() const override { return world_.result().counts.operations; }
    [[nodiscard]] std::uint64_t parcels() const override { return world_.result().messages; }
    [[nodiscard]] const sim::Capture* capture() const override { return nullptr; }

private:
    fs::FsWorld world_;
};

}  // namespace

std::unique_ptr<History> make_history(const Options& options, std::uint64_t seed) {
    switch (options.world) {
        case WorldKind::Erpc: {
            const sim::WorldPlan plan = options.plan_of(seed);
            return std::make_unique<NodeHistory<sim::ErpcWorld>>(
                [plan](const sim::Network::Passage& passage, const sim::Frame& frame) {
                    return trace_line(plan, passage, frame);
                },
                seed, plan);
        }
        case WorldKind::Rc:
            return std::make_unique<DatagramHistory<sim::RcWorld>>(seed);
        case WorldKind::Cm:
            return std::make_unique<DatagramHistory<sim::CmWorld>>(seed);
        case WorldKind::Ud:
            return std::make_unique<NodeHistory<sim::UdWorld>>(line_of_datagram, seed);
        case WorldKind::Verbs:
            return std::make_unique<NodeHistory<sim::VerbsWorld>>(line_of_datagram, seed);
        case WorldKind::Copyrpc:
            return std::make_unique<NodeHistory<sim::CopyrpcWorld>>(line_of_datagram, seed);
        case WorldKind::Scalerpc:
            return std::make_unique<NodeHistory<sim::ScalerpcWorld>>(line_of_datagram, seed);
        case WorldKind::Mixed:
            return std::make_unique<NodeHistory<sim::MixedWorld>>(line_of_datagram, seed);
        case WorldKind::Fs:
            return std::make_unique<FsHistory>(seed);
    }
    return nullptr;
}

}  // namespace cairn::simulate
