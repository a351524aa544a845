// Maps each service at each of our addresses to its listener.
#pragma once

#include <map>
#include <utility>

#include "lib/cm/types.hpp"

namespace cairn::cm {

// A listener at one address goes before a listener at any address (the unspecified one).
template <class Listener>
class ServiceMap {
public:
    // Adds a listener. Returns false if there is such a listener already.
    [[nodiscard]] bool try_add(wire::ServiceId service, const net::IpAddress& local, const Listener& listener) {
        return listeners_.emplace(std::pair(service, local), listener).second;
    }
    [[nodiscard]] bool remove(wire::ServiceId service, const net::IpAddress& local) {
        return listeners_.erase({service, local}) != 0;
    }
    [[nodiscard]] Listener* find_exactly(wire::ServiceId service, const net::IpAddress& local) noexcept {
        const auto found = listeners_.find({service, local});
        return found == listeners_.end() ? nullptr : &found->second;
    }
    // Removes the listeners for which which(listener) is true.
    template <class Which>
    void remove_if(const Which& which) {
        std::erase_if(listeners_, [&which](const auto& each) { return which(each.second); });
    }
    // Returns the listener for a request that came to `local`.
    [[nodiscard]] Listener* find(wire::ServiceId service, const net::IpAddress& local) noexcept {
        Listener* const exact = find_exactly(service, local);
        return exact != nullptr ? exact : find_exactly(service, net::IpAddress{});
    }

private:
    std::map<std::pair<wire::ServiceId, net::IpAddress>, Listener> listeners_;
};

}  // namespace cairn::cm
