#include "lib/connections/registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/assert.hpp"
#include "lib/base/sip_hash.hpp"
#include "lib/wire/ip_cm.hpp"

namespace cairn::connections {

namespace {

std::string name_of(cm::ServiceKind kind, wire::ServiceId service) {
    const char* const what = kind == cm::ServiceKind::Connections ? "connections to" : "datagrams to";
    if (wire::is_ip_service(service)) {
        return fmt::format("{} port {}", what, service.value & 0xffffU);
    }
    return fmt::format("{} service {:#x}", what, service.value);
}

}  // namespace

Status Registry::claim(cm::ServiceKind kind, wire::ServiceId service, WorkerNumber worker, Sharing sharing) {
    const std::lock_guard hold(lock_);
    Service& claimed = services_[{kind, service}];
    const auto place = std::lower_bound(claimed.workers.begin(), claimed.workers.end(), worker);
    const bool here = place != claimed.workers.end() && *place == worker;
    const bool shares = claimed.sharing == Sharing::Shared && sharing == Sharing::Shared;
    if (here || (!claimed.workers.empty() && !shares)) {
        return Error{
            fmt::format("worker {} takes {} already", here ? worker : claimed.workers.front(), name_of(kind, service)),
            "choose another service number, or end its listener first"};
    }
    claimed.sharing = sharing;
    claimed.workers.insert(place, worker);
    return Nothing{};
}

void Registry::release(cm::ServiceKind kind, wire::ServiceId service, WorkerNumber worker) noexcept {
    const std::lock_guard hold(lock_);
    const auto found = services_.find({kind, service});
    CAIRN_ASSERT(found != services_.end());
    const auto erased = std::erase(found->second.workers, worker);
    CAIRN_ASSERT(erased == 1);
    if (found->second.workers.empty()) {
        services_.erase(found);
    }
}

std::optional<WorkerNumber> Registry::find(const cm::ToListener& wanted, const net::IpAddress& peer) const {
    const std::lock_guard hold(lock_);
    const auto found = services_.find({wanted.kind, wanted.service});
    if (found == services_.end()) {
        return std::nullopt;
    }
    const std::vector<WorkerNumber>& workers = found->second.workers;
    if (workers.size() == 1) {
        return workers.front();
    }
    const auto address = peer.words();
    const std::uint64_t hash = sip_hash(key_, address[0], address[1], std::uint64_t{wanted.peer_name});
    return workers[hash % workers.size()];
}

}  // namespace cairn::connections
