// Multicast groups of endpoints.
#include <algorithm>
#include <cerrno>

#include "lib/rdmacm/endpoint.hpp"

namespace cairn::rdmacm {

int join(Endpoint& endpoint, const End& group, bool sends_only, void* context) {
    constexpr std::uint32_t kAllMembers = 0xffffff;
    const Held held(endpoint);
    if (judge_call(endpoint.state, Call::Join) != Answer::Go || endpoint.device == nullptr ||
        !endpoint.is_datagrams() || !group.address.is_group() ||
        group.address.is_v4() != endpoint.device->address().is_v4()) {
        return EINVAL;
    }
    Group& joined = endpoint.groups.emplace_back(Group{&endpoint, group, sends_only, context});
    auto event = std::make_unique<Event>(endpoint, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
    event->group = &joined;
    event->param.ud.ah_attr = way_to(endpoint, group.address);
    event->param.ud.ah_attr.grh.hop_limit = 1;
    event->param.ud.qp_num = kAllMembers;
    event->param.ud.qkey = RDMA_UDP_QKEY;
    event->param.ud.private_data = context;
    tell(std::move(event));
    return 0;
}

Group* find_group(Endpoint& endpoint, const End& group) {
    const Held held(endpoint);
    const auto found = std::find_if(endpoint.groups.begin(), endpoint.groups.end(),
                                    [&group](const Group& each) { return each.end == group; });
    return found == endpoint.groups.end() ? nullptr : &*found;
}

void leave(Endpoint& endpoint, Group& group) {
    const std::vector<std::unique_ptr<Event>> dropped = forget_events(group);
    {
        EventLock hold;
        while (group.acknowledged != group.given) {
            hold.await_acknowledgement();
        }
    }
    const Held held(endpoint);
    endpoint.groups.remove_if([&group](const Group& each) { return &each == &group; });
}

}  // namespace cairn::rdmacm
