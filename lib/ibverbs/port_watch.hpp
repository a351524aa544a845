// What the kernel says of interfaces and addresses, and what that is to the port of a device: pure.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>

#include "lib/net/address.hpp"

namespace cairn::ibverbs {

struct LinkNotice {
    enum class Kind : std::uint8_t { Up, Down, AddressCame, AddressWent };

    Kind kind{};
    unsigned interface = 0;
    net::IpAddress address{};  // of the last two
};

// Reads the messages of a route socket (rtnetlink), one after the other. What else they say is left out.
class NoticeReader {
public:
    explicit NoticeReader(std::span<const std::uint8_t> bytes) noexcept : left_(bytes) {}
    // nullopt: there are no more, or what is left is damaged.
    [[nodiscard]] std::optional<LinkNotice> next() noexcept;

private:
    std::span<const std::uint8_t> left_;
};

// The port of a device: it is active while the device's address is there, at an interface that is up.
class PortWatch {
public:
    struct News {
        bool gids = false;                     // the table has changed
        std::optional<ibv_event_type> port{};  // IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR
        friend bool operator==(const News&, const News&) = default;
    };

    // The address is there, at an interface that is up. `interface` has it; 0: that is not known.
    explicit PortWatch(const net::IpAddress& address, unsigned interface = 0, bool is_up = true) noexcept
        : address_(address), interface_(interface), is_up_(is_up), has_address_(true) {}

    [[nodiscard]] News take(const LinkNotice& notice) noexcept;
    // Notices were lost: how it is now. `interface`: 0, none has the address.
    [[nodiscard]] News set(unsigned interface, bool is_up) noexcept;
    // It fails on purpose, whatever the kernel says.
    [[nodiscard]] News set_failing(bool fails) noexcept;
    [[nodiscard]] bool is_active() const noexcept { return has_address_ && is_up_ && !fails_; }
    [[nodiscard]] bool has_address() const noexcept { return has_address_; }

private:
    [[nodiscard]] News become(unsigned interface, bool is_up, bool has_address) noexcept;
    [[nodiscard]] std::optional<ibv_event_type> change_since(bool was_active) const noexcept;

    net::IpAddress address_;
    unsigned interface_;
    bool is_up_;
    bool has_address_;
    bool fails_ = false;
};

}  // namespace cairn::ibverbs
