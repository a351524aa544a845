// Events of the port, as programs get them. The kernel's messages are made by hand.
#include <net/if.h>
#include <poll.h>
#include <sys/resource.h>

#include "lib/ibverbs/objects.hpp"
#include "lib/port/udp_socket.hpp"
#include "tests/unit/ibverbs/link_messages.hpp"
#include "tests/unit/ibverbs/verbs_rig.hpp"

namespace cairn::ibverbs {
namespace {

class PortEventsTest : public VerbsTest {
protected:
    void bring(const std::vector<std::uint8_t>& message) const {
        Context& of = Context::of(context);
        const std::lock_guard hold(of.adapter->lock());
        of.port->on_messages(message);
        of.adapter->settle();
    }
    const net::IpAddress& address() const { return Context::of(context).of_device->config.address; }
    void bring_link(unsigned flags) const {
        bring(link_message(RTM_NEWLINK, static_cast<int>(port::interface_index(address()).value_or(0)), flags));
    }
    static ibv_event_type next(ibv_context* of) {
        ibv_async_event event{};
        EXPECT_EQ(ibv_get_async_event(of, &event), 0);
        EXPECT_EQ(event.element.port_num, 1);
        ibv_ack_async_event(&event);
        return event.event_type;
    }
    static bool any(ibv_context* of) {
        pollfd waiting{of->async_fd, POLLIN, 0};
        return poll(&waiting, 1, 0) == 1;
    }
    ibv_port_state state() const {
        ibv_port_attr attributes{};
        EXPECT_EQ(ibv_query_port(context, 1, &attributes), 0);
        return attributes.state;
    }
};

TEST_F(PortEventsTest, AllContextsHearOfALinkThatGoesDown) {
    ibv_context* const other = ibv_open_device(test_device());
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(state(), IBV_PORT_ACTIVE);
    bring_link(IFF_UP | IFF_RUNNING);
    EXPECT_FALSE(any(context));
    bring_link(0);
    EXPECT_EQ(state(), IBV_PORT_DOWN);
    EXPECT_EQ(next(context), IBV_EVENT_PORT_ERR);
    EXPECT_EQ(next(other), IBV_EVENT_PORT_ERR);
    EXPECT_FALSE(any(context));
    EXPECT_EQ(ibv_close_device(other), 0);
    bring_link(IFF_UP | IFF_RUNNING);
    EXPECT_EQ(next(context), IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(state(), IBV_PORT_ACTIVE);
}

// The state of the port cannot be read from the kernel.
TEST_F(PortEventsTest, WithoutADescriptorThePortStaysAsItIs) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{0, before.rlim_max};
    Context& of = Context::of(context);
    {
        const std::lock_guard hold(of.adapter->lock());
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        EXPECT_EQ(port::interface_index(address()), std::nullopt);
        of.port->on_notices_lost();
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        EXPECT_EQ(port::interface_index(address()), if_nametoindex("lo"));
        of.adapter->settle();
    }
    EXPECT_EQ(state(), IBV_PORT_ACTIVE);
    EXPECT_FALSE(any(context));
}

TEST_F(PortEventsTest, TheLastEventIsTheState) {
    const int interface = static_cast<int>(port::interface_index(address()).value_or(0));
    std::vector<std::uint8_t> at_once;
    for (const unsigned flags : {0U, unsigned{IFF_UP | IFF_RUNNING}, 0U}) {
        append(at_once, link_message(RTM_NEWLINK, interface, flags));
    }
    bring(at_once);
    EXPECT_EQ(next(context), IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(next(context), IBV_EVENT_PORT_ERR);
    EXPECT_FALSE(any(context));
    bring_link(IFF_UP | IFF_RUNNING);
    bring_link(0);
    bring_link(IFF_UP | IFF_RUNNING);
    EXPECT_EQ(next(context), IBV_EVENT_PORT_ERR);
    EXPECT_EQ(next(context), IBV_EVENT_PORT_ACTIVE);
    EXPECT_FALSE(any(context));
}

TEST_F(PortEventsTest, AnAddressThatGoesIsAChangeOfTheTable) {
    const unsigned interface = port::interface_index(address()).value_or(0);
    bring(address_message(RTM_DELADDR, interface, address()));
    EXPECT_EQ(next(context), IBV_EVENT_GID_CHANGE);
    EXPECT_EQ(next(context), IBV_EVENT_PORT_ERR);
    ibv_gid_entry entry{};
    EXPECT_EQ(ibv_query_gid_ex(context, 1, 1, &entry, 0), ENODATA);
    EXPECT_EQ(ibv_query_gid_table(context, &entry, 1, 0), 0);
    bring(address_message(RTM_NEWADDR, interface, address()));
    EXPECT_EQ(next(context), IBV_EVENT_GID_CHANGE);
    EXPECT_EQ(next(context), IBV_EVENT_PORT_ACTIVE);
    EXPECT_EQ(ibv_query_gid_ex(context, 1, 1, &entry, 0), 0);
}

}  // namespace
}  // namespace cairn::ibverbs
