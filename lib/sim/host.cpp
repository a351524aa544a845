#include "lib/sim/host.hpp"

#include "lib/sim/world.hpp"

namespace cairn::sim {

namespace {

constexpr std::uint32_t kTurnsMost = 100'000;  // of a host's workers at one moment; histories have hundreds

}  // namespace

void Host::start(std::uint64_t process) {
    for (const auto& worker : workers_) {
        worker->start(process);
    }
}

void Host::stop(bool is_killed) {
    for (const auto& worker : workers_) {
        worker->stop(is_killed);
    }
}

void Host::turn() {
    busy_.clear();
    for (const auto& worker : workers_) {
        if (worker->begin_turns()) {
            busy_.push_back(worker.get());
        }
    }
    for (std::uint32_t turns = 0; !busy_.empty() && !world_.broken(); ++turns) {
        world_.check(turns < kTurnsMost, "a worker that only waits goes to sleep");
        const std::size_t next = busy_.size() == 1 ? 0 : world_.random().below(busy_.size());
        if (!busy_[next]->turn()) {
            busy_[next]->end_turns();
            busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(next));
        }
    }
}

}  // namespace cairn::sim
