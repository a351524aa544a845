// A simulated world of any kind, as the swarm runs it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/sim/options.hpp"
#include "lib/sim/capture.hpp"

namespace cairn::simulate {

class History {
public:
    History() = default;
    History(const History&) = delete;
    History& operator=(const History&) = delete;
    virtual ~History() = default;

    // Makes it print a line for each frame, or for each other event. Called before run().
    virtual void trace() = 0;
    // Runs it. Returns the first promise that was broken; nullopt if all held.
    [[nodiscard]] virtual std::optional<std::string> run() = 0;

    [[nodiscard]] virtual std::string text() const = 0;
    [[nodiscard]] virtual Instant now() const = 0;
    [[nodiscard]] virtual std::uint64_t acts() const = 0;           // in Options::acts_name()
    [[nodiscard]] virtual std::uint64_t parcels() const = 0;        // in Options::parcels_name()
    [[nodiscard]] virtual const sim::Capture* capture() const = 0;  // nullptr: it has no frames
};

[[nodiscard]] std::unique_ptr<History> make_history(const Options& options, std::uint64_t seed);

}  // namespace cairn::simulate
