#include "apps/sim/world.hpp"

#include <fmt/format.h>

#include "apps/sim/trace.hpp"
#include "tests/sim/cm_world.hpp"
#include "tests/sim/erpc_world.hpp"
#include "tests/sim/rc_world.hpp"
#include "tests/sim/ud_world.hpp"

namespace cairn::simulate {

namespace {

class ErpcHistory final : public World {
public:
    ErpcHistory(std::uint64_t seed, const sim::WorldPlan& plan) : plan_(plan), world_(seed, plan) {}

    void trace() override {
        world_.set_witness([this](const sim::Network::Passage& passage, const sim::Frame& frame) {
            fmt::print("{}\n", trace_line(plan_, passage, frame));
        });
    }
    [[nodiscard]] std::optional<std::string> run() override { return world_.run(); }
    [[nodiscard]] std::string text() const override { return world_.text(); }
    [[nodiscard]] Instant now() const override { return world_.now(); }
    [[nodiscard]] std::uint64_t acts() const override { return world_.counters().calls; }
    [[nodiscard]] std::uint64_t frames() const override { return world_.network().totals().offered; }
    [[nodiscard]] const sim::Capture& capture() const override { return world_.network().capture(); }

private:
    sim::WorldPlan plan_;
    sim::ErpcWorld world_;
};

class UdHistory final : public World {
public:
    explicit UdHistory(std::uint64_t seed) : world_(seed) {}

    void trace() override {
        world_.set_witness([](const sim::Network::Passage& passage, const sim::Frame& frame) {
            fmt::print("{}\n", trace_line(passage, frame));
        });
    }
    [[nodiscard]] std::optional<std::string> run() override { return world_.run(); }
    [[nodiscard]] std::string text() const override { return world_.text(); }
    [[nodiscard]] Instant now() const override { return world_.now(); }
    [[nodiscard]] std::uint64_t acts() const override { return world_.counters().posted; }
    [[nodiscard]] std::uint64_t frames() const override { return world_.network().totals().offered; }
    [[nodiscard]] const sim::Capture& capture() const override { return world_.network().capture(); }

private:
    sim::UdWorld world_;
};

std::uint64_t acts_of(const sim::RcWorld& world) {
    return world.requests();
}
std::uint64_t acts_of(const sim::CmWorld& world) {
    return world.counters().asked;
}

// Of a world whose hosts exchange datagrams without a network of frames.
template <class Datagrams>
class DatagramHistory final : public World {
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
    [[nodiscard]] std::uint64_t frames() const override { return world_.log().datagrams(); }
    [[nodiscard]] const sim::Capture& capture() const override { return world_.log().capture(); }

private:
    Datagrams world_;
};

}  // namespace

std::unique_ptr<World> make_world(const Options& options, std::uint64_t seed) {
    switch (options.world) {
        case WorldKind::Erpc:
            return std::make_unique<ErpcHistory>(seed, options.plan_of(seed));
        case WorldKind::Rc:
            return std::make_unique<DatagramHistory<sim::RcWorld>>(seed);
        case WorldKind::Cm:
            return std::make_unique<DatagramHistory<sim::CmWorld>>(seed);
        case WorldKind::Ud:
            return std::make_unique<UdHistory>(seed);
    }
    return nullptr;
}

}  // namespace cairn::simulate
