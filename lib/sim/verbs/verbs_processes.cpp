#include "lib/sim/verbs/verbs_processes.hpp"

namespace cairn::sim {

using connections::AgentCounter;
using connections::Sharing;

std::shared_ptr<connections::Agent> VerbsProcesses::agent_of(const Node& node) {
    Process& process = processes_[node.host()];
    if (process.number != node.process()) {
        count(process);
        Random& random = world_.random();
        process = {node.process(), connections::Agent::create({random.next(), random.next()})};
        const std::size_t workers = world_.workers_of(node.host()).size();
        if (workers > 1) {
            process.listener = random.chance(kMillion / 2) ? kAll : random.below(workers);
        }
    }
    return process.agent;
}

std::optional<Sharing> VerbsProcesses::listens(const Node& node) const {
    const std::size_t listener = processes_[node.host()].listener;
    if (listener == kAll) {
        return Sharing::Shared;
    }
    return listener == node.number() ? std::optional(Sharing::Alone) : std::nullopt;
}

void VerbsProcesses::end() {
    for (const Process& process : processes_) {
        count(process);
    }
    processes_.clear();
}

void VerbsProcesses::count(const Process& process) {
    if (process.agent != nullptr) {
        mail_.letters += process.agent->counters().of(AgentCounter::HandedOver);
        mail_.homeless += process.agent->counters().of(AgentCounter::NoHome);
    }
}

}  // namespace cairn::sim
