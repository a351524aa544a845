#include "lib/ibverbs/port_watch.hpp"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace cairn::ibverbs {

namespace {

using NoticeBytes = std::span<const std::uint8_t>;

template <class Header>
[[nodiscard]] std::optional<Header> header_at(NoticeBytes from) noexcept {
    Header header;
    if (from.size() < sizeof(header)) {
        return std::nullopt;
    }
    std::memcpy(&header, from.data(), sizeof(header));
    return header;
}

// Messages and attributes begin at words.
[[nodiscard]] NoticeBytes behind(NoticeBytes from, std::size_t length) noexcept {
    return from.subspan(std::min((length + 3) / 4 * 4, from.size()));
}

[[nodiscard]] std::optional<net::IpAddress> to_ip(NoticeBytes value) noexcept {
    if (value.size() == 4) {
        const auto v4 = header_at<std::uint32_t>(value);
        return net::IpAddress::from_v4(ntohl(*v4));
    }
    const auto v6 = header_at<std::array<std::uint8_t, 16>>(value);
    return v6 && value.size() == v6->size() ? std::optional(net::IpAddress::from_v6(*v6)) : std::nullopt;
}

// Finds the address. An interface between two points gives its own address as local, and the peer's as the address.
[[nodiscard]] std::optional<net::IpAddress> find_address(NoticeBytes attributes) noexcept {
    std::optional<net::IpAddress> found;
    while (const auto header = header_at<rtattr>(attributes)) {
        if (header->rta_len < sizeof(rtattr) || header->rta_len > attributes.size()) {
            break;
        }
        const NoticeBytes value = attributes.subspan(sizeof(rtattr), header->rta_len - sizeof(rtattr));
        if (header->rta_type == IFA_LOCAL || (header->rta_type == IFA_ADDRESS && !found)) {
            found = to_ip(value);
        }
        attributes = behind(attributes, header->rta_len);
    }
    return found;
}

[[nodiscard]] std::optional<LinkNotice> to_notice(std::uint16_t type, NoticeBytes body) noexcept {
    if (type == RTM_NEWLINK || type == RTM_DELLINK) {
        const auto link = header_at<ifinfomsg>(body);
        if (!link || link->ifi_family != AF_UNSPEC) {
            return std::nullopt;
        }
        const bool is_up =
            type == RTM_NEWLINK && (link->ifi_flags & IFF_UP) != 0 && (link->ifi_flags & IFF_RUNNING) != 0;
        return LinkNotice{is_up ? LinkNotice::Kind::Up : LinkNotice::Kind::Down,
                          static_cast<unsigned>(link->ifi_index)};
    }
    if (type != RTM_NEWADDR && type != RTM_DELADDR) {
        return std::nullopt;
    }
    const auto header = header_at<ifaddrmsg>(body);
    const auto address = header ? find_address(behind(body, sizeof(ifaddrmsg))) : std::nullopt;
    if (!address) {
        return std::nullopt;
    }
    return LinkNotice{type == RTM_NEWADDR ? LinkNotice::Kind::AddressCame : LinkNotice::Kind::AddressWent,
                      header->ifa_index, *address};
}

}  // namespace

std::optional<LinkNotice> NoticeReader::next() noexcept {
    while (const auto header = header_at<nlmsghdr>(left_)) {
        if (header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > left_.size()) {
            break;
        }
        const NoticeBytes body = left_.subspan(sizeof(nlmsghdr), header->nlmsg_len - sizeof(nlmsghdr));
        left_ = behind(left_, header->nlmsg_len);
        if (const auto notice = to_notice(header->nlmsg_type, body)) {
            return notice;
        }
    }
    left_ = {};
    return std::nullopt;
}

PortWatch::News PortWatch::become(unsigned interface, bool is_up, bool has_address) noexcept {
    const bool was_active = is_active();
    News news;
    news.gids = has_address != has_address_;
    interface_ = interface;
    is_up_ = is_up;
    has_address_ = has_address;
    news.port = change_since(was_active);
    return news;
}

std::optional<ibv_event_type> PortWatch::change_since(bool was_active) const noexcept {
    if (is_active() == was_active) {
        return std::nullopt;
    }
    return was_active ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE;
}

PortWatch::News PortWatch::set_failing(bool fails) noexcept {
    const bool was_active = is_active();
    fails_ = fails;
    return {false, change_since(was_active)};
}

// Takes in a notice. An address that comes shows an interface that is up, or one whose coming up brings a notice of its
// own.
PortWatch::News PortWatch::take(const LinkNotice& notice) noexcept {
    const bool is_address = notice.address == address_;
    const bool is_ours = notice.interface == interface_;
    switch (notice.kind) {
        case LinkNotice::Kind::Up:
        case LinkNotice::Kind::Down:
            return is_ours ? become(interface_, notice.kind == LinkNotice::Kind::Up, has_address_) : News{};
        case LinkNotice::Kind::AddressCame:
            return is_address ? become(notice.interface, is_ours ? is_up_ : true, true) : News{};
        case LinkNotice::Kind::AddressWent:
            return is_address && is_ours ? become(interface_, is_up_, false) : News{};
    }
    return {};
}

PortWatch::News PortWatch::set(unsigned interface, bool is_up) noexcept {
    const bool was_known = interface_ != 0;
    return interface != 0 ? become(interface, is_up, true) : become(interface_, is_up, !was_known && has_address_);
}

}  // namespace cairn::ibverbs
