// Notices of the kernel about interfaces and addresses, and the state of a device's port that follows from them: pure.
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

// Reads the messages of a route socket (rtnetlink), one after the other. It skips messages of other kinds.
class NoticeReader {
public:
    explicit NoticeReader(std::span<const std::uint8_t> bytes) noexcept : left_(bytes) {}
    // Returns the next notice; nullopt if there are no more, or the rest is damaged.
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

    // Begins with an address that is there, at an interface that is up. `interface` has the address; 0: that is not
    // known.
    explicit PortWatch(const net::IpAddress& address, unsigned interface = 0, bool is_up = true) noexcept
        : address_(address), interface_(interface), is_up_(is_up), has_address_(true) {}

    [[nodiscard]] News take(const LinkNotice& notice) noexcept;
    // Sets the present state, after notices were lost. `interface`: 0, none has the address.
    [[nodiscard]] News set(unsigned interface, bool is_up) noexcept;
    // Makes the port fail on purpose, whatever the kernel says, or work again.
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
