// A registry of counters. Code that counts registers its counters; exporters enumerate them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/telemetry/counter_list.hpp"

namespace cairn::telemetry {

class Registry;

// The place of a group of counters in a registry. The group leaves when this object ends. The counters and the registry
// outlive it.
class Registration {
public:
    Registration() = default;
    Registration(Registration&& other) noexcept;
    Registration& operator=(Registration&& other) noexcept;
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() { leave(); }
    void leave() noexcept;

private:
    friend class Registry;
    Registration(Registry& registry, const CounterList& group) noexcept : registry_(&registry), group_(&group) {}

    Registry* registry_ = nullptr;
    const CounterList* group_ = nullptr;
};

// Any thread may call any function at any time, and end a registration. All of these take a lock, so none is for the
// datapath. Groups are shown in order of registration. Counters of one name, in one group or in several, are added up
// and shown once, at the place of the first.
class Registry {
public:
    Registry() = default;
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;
    // All registrations must have ended (asserted).
    ~Registry();

    // Adds a group of counters.
    [[nodiscard]] Registration add(CounterList group);

    // Calls `visit` with the CounterText and the std::uint64_t value of each counter, zeros included. The values were
    // read before the first call. No lock is held meanwhile: `visit` may use the registry.
    template <class Visit>
    void visit(const Visit& visit) const {
        const CounterReading now = read();
        for (std::size_t i = 0; i < now.texts.size(); ++i) {
            visit(now.texts[i], now.values[i]);
        }
    }
    // Returns the counters that are not zero, a line each, as text_of() does.
    [[nodiscard]] std::string text() const;
    // Returns all counters, including zeros, as json_of() does.
    [[nodiscard]] std::string json() const;

private:
    friend class Registration;
    [[nodiscard]] CounterReading read() const;
    void remove(const CounterList& group) noexcept;

    mutable std::mutex lock_;                           // guards the member below
    std::vector<std::unique_ptr<CounterList>> groups_;  // in order of registration
};

}  // namespace cairn::telemetry
