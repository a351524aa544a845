#include "lib/port/group_sockets.hpp"

#include <fmt/format.h>

namespace cairn::port {

Result<const UdpSocket*> GroupSockets::join(const UdpSocketConfig& config, const net::IpAddress& group) {
    if (entries_.size() == kMost) {
        return Error{fmt::format("there are {} multicast groups already", kMost), "use fewer, or more ports"};
    }
    if (group.is_v4() != config.local.is_v4()) {
        return Error{fmt::format("{} and {} are of two families", group.text(), config.local.text()),
                     "use a group of the port's family"};
    }
    Result<UdpSocket> opened = UdpSocket::open_group(config, group);
    if (!opened.ok()) {
        return opened.error();
    }
    entries_.emplace_back(group, std::move(opened).value());
    return &entries_.back().second;
}

void GroupSockets::leave(const net::IpAddress& group) noexcept {
    std::erase_if(entries_, [&group](const Entry& each) noexcept { return each.first == group; });
}

const net::IpAddress* GroupSockets::receive(msghdr& message, std::int32_t& result) noexcept {
    at_turn_ = !at_turn_ && !entries_.empty();
    for (std::size_t i = at_turn_ ? 0 : entries_.size(); i < entries_.size(); ++i) {
        const ssize_t got = recvmsg(entries_[i].second.fd(), &message, MSG_DONTWAIT);
        if (got >= 0) {
            result = static_cast<std::int32_t>(got);
            return &entries_[i].first;
        }
    }
    return nullptr;
}

}  // namespace cairn::port
