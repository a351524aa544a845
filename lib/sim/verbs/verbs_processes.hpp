// The common state of the workers of a host: the agent of its address, and which of them listen.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/connections/agent.hpp"
#include "lib/sim/world.hpp"

namespace cairn::sim {

// Counters of the agents of all processes that ended.
struct VerbsMail {
    std::uint64_t letters = 0;   // messages that came to workers without queue pair 1
    std::uint64_t homeless = 0;  // messages for workers that do not exist

    friend bool operator==(const VerbsMail&, const VerbsMail&) = default;
};

class VerbsProcesses {
public:
    explicit VerbsProcesses(World& world) : world_(world), processes_(world.hosts()) {}

    // Returns the agent of the node's process. It is called when each worker of a process begins. The first call makes
    // the agent.
    [[nodiscard]] std::shared_ptr<connections::Agent> agent_of(const Node& node);
    // Returns how the worker listens; nullopt if only others do.
    [[nodiscard]] std::optional<connections::Sharing> listens(const Node& node) const;
    // Counts the last agents. All processes have ended.
    void end();
    [[nodiscard]] const VerbsMail& mail() const noexcept { return mail_; }

private:
    static constexpr std::size_t kAll = ~std::size_t{0};
    struct Process {
        std::uint64_t number = 0;
        std::shared_ptr<connections::Agent> agent;
        std::size_t listener = 0;  // the worker that listens; kAll: each does
    };
    void count(const Process& process);

    World& world_;
    std::vector<Process> processes_;  // by host
    VerbsMail mail_;
};

}  // namespace cairn::sim
