#include "lib/ibverbs/port_notices.hpp"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "lib/ibverbs/objects.hpp"
#include "lib/ibverbs/of_process.hpp"
#include "lib/port/udp_socket.hpp"

namespace cairn::ibverbs {

namespace {

OwnedFd open_route_socket() noexcept {
    OwnedFd made(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    sockaddr_nl wanted{};
    wanted.nl_family = AF_NETLINK;
    wanted.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
    const bool bound = made.is_open() && bind(made.get(), reinterpret_cast<sockaddr*>(&wanted), sizeof(wanted)) == 0;
    return bound ? std::move(made) : OwnedFd();
}

bool is_up(unsigned interface) noexcept {
    const OwnedFd any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    return if_indextoname(interface, request.ifr_name) == nullptr || ioctl(any.get(), SIOCGIFFLAGS, &request) != 0 ||
           (request.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

ibv_async_event describe_port_event(AsyncSource&, ibv_event_type type) noexcept {
    ibv_async_event event{};
    event.element.port_num = 1;
    event.event_type = type;
    return event;
}

// Adds an event. The last one of a kind counts, and comes after those of other kinds.
void tell_context(Context& context, AsyncSource& source, ibv_event_type type) noexcept {
    source.describe = describe_port_event;
    context.events.put_last(source);
    if (context.events.add(source, type)) {
        context.adapter->events().add(context.events.count);
    }
}

}  // namespace

std::shared_ptr<PortNotices> PortNotices::of(const std::shared_ptr<Adapter>& adapter, const net::IpAddress& address) {
    return OfProcess<OfAdapters<PortNotices>>::get().of(
        *adapter, [&] { return std::make_shared<PortNotices>(adapter, address); });
}

// The socket is opened first: changes after that bring notices.
PortNotices::PortNotices(std::shared_ptr<Adapter> adapter, const net::IpAddress& address)
    : adapter_(std::move(adapter)), address_(address), socket_(open_route_socket()), watch_(address) {
    const std::lock_guard hold(adapter_->lock());
    on_notices_lost();  // none came yet
    adapter_->watch(this);
}

PortNotices::~PortNotices() {
    const std::lock_guard hold(adapter_->lock());
    adapter_->unwatch(*this);
}

void PortNotices::add(Context& context) {
    const std::lock_guard hold(adapter_->lock());
    contexts_.push_back(&context);
}

void PortNotices::remove(Context& context) noexcept {
    const std::lock_guard hold(adapter_->lock());
    std::erase(contexts_, &context);
}

void PortNotices::on_readable() noexcept {
    std::array<std::uint8_t, 8192> room;
    if (is_behind_) {
        on_notices_lost();
    }
    for (;;) {
        const ssize_t bytes = recv(socket_.get(), room.data(), room.size(), MSG_DONTWAIT);
        if (bytes > 0) {
            on_messages({room.data(), static_cast<std::size_t>(bytes)});
        } else if (bytes < 0 && errno == ENOBUFS) {
            on_notices_lost();
        } else {
            return;
        }
    }
}

void PortNotices::on_messages(std::span<const std::uint8_t> bytes) noexcept {
    NoticeReader reader(bytes);
    for (auto notice = reader.next(); notice; notice = reader.next()) {
        tell(watch_.take(*notice));
    }
}

// If the kernel cannot be asked now, it is when the next notice comes.
void PortNotices::on_notices_lost() noexcept {
    try {
        const std::optional<unsigned> interface = port::interface_index(address_);
        is_behind_ = !interface.has_value();
        if (interface) {
            tell(watch_.set(*interface, is_up(*interface)));
        }
    } catch (...) {  // no memory
        is_behind_ = true;
    }
}

void PortNotices::tell(const PortWatch::News& news) noexcept {
    for (Context* const each : contexts_) {
        if (news.gids) {
            tell_context(*each, each->gid_change, IBV_EVENT_GID_CHANGE);
        }
        if (news.port == IBV_EVENT_PORT_ACTIVE) {
            tell_context(*each, each->port_active, IBV_EVENT_PORT_ACTIVE);
        } else if (news.port == IBV_EVENT_PORT_ERR) {
            tell_context(*each, each->port_error, IBV_EVENT_PORT_ERR);
        }
    }
}

}  // namespace cairn::ibverbs
