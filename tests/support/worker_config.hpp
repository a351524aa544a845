// The engine configuration of a worker that shares an address with other workers.
#pragma once

#include "lib/roce/engine.hpp"

namespace cairn::test {

[[nodiscard]] inline roce::EngineConfig worker_config(std::uint8_t owner_bits, std::uint32_t number,
                                                      std::uint64_t seed) {
    roce::EngineConfig config;
    config.max_queue_pairs = 64;
    config.max_regions = 16;
    config.owner_bits = owner_bits;
    config.owner = number;
    config.seed = {seed, number};
    return config;
}

}  // namespace cairn::test
