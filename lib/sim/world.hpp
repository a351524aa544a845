// World: nodes on a simulated network in virtual time, the faults that hit them, and the scenarios that run on them
// together. The whole history follows from the seed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/sim/host.hpp"
#include "lib/sim/scenario.hpp"

namespace cairn::sim {

// The size of a world and the length of its phases.
struct WorldShape {
    std::size_t hosts = 2;
    std::vector<std::uint16_t> workers{};  // of each host; empty: one each
    std::size_t guests = 0;                // places in the network after the hosts', for hostile peers
    Family family = Family::V4;
    std::size_t buffers = 512;  // of each port
    std::size_t paths = 0;      // paths of each port; 0: a few to each node
    std::uint16_t most_bytes = port::kMaxUdpPayloadBytes;
    roce::EngineConfig engine{};  // all but its seed and owner
    Duration harmful = milliseconds(120);
    Duration healing = milliseconds(1500);  // the world has to fulfil no promise for this long

    // Draws one to three workers for each host, and at most `most` in all.
    [[nodiscard]] static std::vector<std::uint16_t> workers_from_seed(std::uint64_t seed, std::size_t hosts,
                                                                      std::size_t most);
};

// The faults that hit the nodes, and the counters of their processes that ended.
struct NodeTotals {
    std::uint64_t restarts = 0;
    std::uint64_t refused = 0;  // packets that a full ring did not take
    std::uint64_t starved = 0;  // buffers that an empty pool did not give
    std::uint64_t unheard = 0;  // frames that found no buffer
    std::uint64_t clock_went_back = 0;
    std::uint64_t clock_leapt = 0;
    telemetry::CounterSnapshot<roce::Drop> drops{};

    NodeTotals& operator+=(const NodeTotals& other) noexcept;
    friend bool operator==(const NodeTotals&, const NodeTotals&) = default;
};

class World {
public:
    World(std::uint64_t seed, const WorldShape& shape, const FaultMix& mix);
    World(const World&) = delete;  // nodes and network point to the world
    World& operator=(const World&) = delete;

    // add() and set_witness() are called before run(). The scenario outlives the world's run. The witness gets the fate
    // of every frame.
    void add(Scenario& scenario) { scenarios_.push_back(&scenario); }
    void set_witness(Network::Witness witness) { network_.set_witness(std::move(witness)); }
    // Runs with faults, heals, and requires progress. Returns the first promise that was broken; nullopt if all held.
    [[nodiscard]] std::optional<std::string> run();

    [[nodiscard]] Instant now() const noexcept { return now_; }
    [[nodiscard]] Random& random() noexcept { return random_; }
    [[nodiscard]] Network& network() noexcept { return network_; }
    [[nodiscard]] const Network& network() const noexcept { return network_; }
    [[nodiscard]] const WorldShape& shape() const noexcept { return shape_; }
    [[nodiscard]] const FaultMix& mix() const noexcept { return mix_; }
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
    [[nodiscard]] std::span<Scenario* const> scenarios() const noexcept { return scenarios_; }
    [[nodiscard]] std::size_t hosts() const noexcept { return shape_.hosts; }
    [[nodiscard]] std::span<const std::unique_ptr<Node>> workers_of(std::size_t host) const noexcept {
        return hosts_[host].workers();
    }
    // The nodes are all workers of all hosts, in the order of hosts and numbers.
    [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size(); }
    [[nodiscard]] Node& node(std::size_t index) const noexcept { return *nodes_[index]; }
    // Returns the index of the node whose turns take long, also after healing. If there is none, returns a number that
    // no node has.
    [[nodiscard]] std::size_t slow_node() const noexcept { return slow_; }
    [[nodiscard]] bool has_slow_node() const noexcept { return slow_ < nodes(); }
    [[nodiscard]] bool healed() const noexcept { return healed_; }
    [[nodiscard]] NodeTotals node_totals() const;

    // These are for scenarios, down to broken(). soon() returns a time within [0, 2 * every] from now; never if `every`
    // is 0.
    [[nodiscard]] Instant soon(Duration every);
    void run_until(Instant end);
    // Breaks the world if `holds` is false. The first broken promise is kept.
    void check(bool holds, std::string_view promise, const Node* node = nullptr);
    [[nodiscard]] bool broken() const noexcept { return broken_.has_value(); }

    // These are for nodes.
    void restart(std::size_t host);

    // Returns a text on the faults, the scenarios and the network.
    [[nodiscard]] std::string text() const;

private:
    void step();
    void heal();
    void receive_for_guests();
    [[nodiscard]] Instant next_event() const;

    const std::uint64_t seed_;
    const WorldShape shape_;
    const FaultMix mix_;
    Instant now_{};
    Random random_;
    Network network_;
    std::size_t slow_ = ~std::size_t{0};
    std::vector<Scenario*> scenarios_;
    std::vector<Host> hosts_;
    std::vector<Node*> nodes_;
    std::uint64_t processes_ = 0;
    std::uint64_t restarts_ = 0;
    bool healed_ = false;
    std::optional<std::string> broken_;
};

}  // namespace cairn::sim
