#include "pmd_glue/link_wait.hpp"

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "pmd_glue/control_thread.hpp"

namespace cairn::pmd {

namespace {

constexpr unsigned kLookEveryMs = 1;
constexpr unsigned kAskEveryMs = 50;
constexpr unsigned kPatienceMs = 2000;

bool is_up(std::uint16_t port_id) noexcept {
    rte_eth_link link{};
    return rte_eth_link_get_nowait(port_id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

struct Request {
    std::uint16_t port_id;
    int code = 0;
};

// Runs on the control thread, which also handles the peer's messages: the two are ordered there.
void ask_again(void* argument) {
    Request& request = *static_cast<Request*>(argument);
    if (request.code != 0 || !is_up(request.port_id)) {
        rte_eth_dev_stop(request.port_id);
        request.code = rte_eth_dev_start(request.port_id);
    }
}

}  // namespace

int await_link(std::uint16_t port_id) noexcept {
    Request request{port_id};
    for (unsigned ms = 0; ms < kPatienceMs && !is_up(port_id); ms += kLookEveryMs) {
        rte_delay_us_sleep(kLookEveryMs * 1000);
        if (ms % kAskEveryMs == kAskEveryMs - kLookEveryMs) {
            run_on_control_thread(ask_again, &request);
        }
    }
    return request.code;
}

}  // namespace cairn::pmd
