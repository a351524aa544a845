// Who listens to which service, over all workers of a host address.
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

// Alone: nobody else may listen to the service. Shared: several workers may, each with what is Shared; requests of one
// peer queue pair go to the same one.
enum class Sharing : std::uint8_t { Alone, Shared };

// Used by all workers' threads: for what is set up and asked for, not for packets.
class Registry {
public:
    Registry() = default;
    Registry(const Registry&) = delete;
    Registry& operator=(const Registry&) = delete;

    // Errors: somebody listens to it, alone, or the worker does already.
    Status claim(cm::ServiceKind kind, wire::ServiceId service, WorkerNumber worker, Sharing sharing);
    void release(cm::ServiceKind kind, wire::ServiceId service, WorkerNumber worker) noexcept;
    // The worker that takes this request. Copies of a request, which come from one host with one name, go to the same
    // one as long as the same workers listen. Nothing: nobody listens.
    [[nodiscard]] std::optional<WorkerNumber> find(const cm::ToListener& wanted, const net::IpAddress& peer) const;

private:
    struct Service {
        Sharing sharing = Sharing::Alone;
        std::vector<WorkerNumber> workers;  // in order
    };

    const SipKey key_ = draw_secret();  // no peer chooses its worker
    mutable std::mutex lock_;
    std::map<std::pair<cm::ServiceKind, wire::ServiceId>, Service> services_;
};

}  // namespace cairn::connections
