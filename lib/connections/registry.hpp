// Knows which workers of a host address listen to which service.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/base/secret.hpp"
#include "lib/cm/steering.hpp"
#include "lib/net/address.hpp"

namespace cairn::connections {

using WorkerNumber = std::uint32_t;

// Alone: no other worker may listen to the service. Shared: several workers may listen, if each chooses Shared. All
// copies of a request go to the same worker.
enum class Sharing : std::uint8_t { Alone, Shared };

// All workers' threads use the registry, for set-up and requests but not for packets.
class Registry {
public:
    // Makes a registry. `key` is a secret, so that no peer can choose its worker.
    explicit Registry(const SipKey& key = draw_secret()) noexcept : key_(key) {}
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;

    // Makes the worker a listener. Errors: another worker listens to the service alone; this worker listens to it
    // already.
    Status claim(cm::ServiceKind kind, wire::ServiceId service, WorkerNumber worker, Sharing sharing);
    void release(cm::ServiceKind kind, wire::ServiceId service, WorkerNumber worker) noexcept;
    // Returns the worker that takes this request, or nullopt if no worker listens. Copies of a request come from one
    // host with one name. They go to the same worker as long as the same workers listen.
    [[nodiscard]] std::optional<WorkerNumber> find(const cm::ToListener& wanted, const net::IpAddress& peer) const;

private:
    struct Service {
        Sharing sharing = Sharing::Alone;
        std::vector<WorkerNumber> workers;  // in ascending order
    };

    const SipKey key_;
    mutable std::mutex lock_;
    std::map<std::pair<cm::ServiceKind, wire::ServiceId>, Service> services_;
};

}  // namespace cairn::connections
