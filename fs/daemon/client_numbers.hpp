// The numbers of clients. A number proves its user: a client that lost its daemon can name its own number, but no other
// user's.
#pragma once

#include <bit>
#include <cstdint>

#include "lib/base/sip_hash.hpp"

namespace cairn::fs {

// Returns how many upper bits of a number name the node: enough for all nodes. So numbers of different nodes differ.
[[nodiscard]] constexpr unsigned node_bits(std::uint32_t nodes) noexcept {
    return static_cast<unsigned>(std::bit_width(nodes - 1));
}
[[nodiscard]] constexpr std::uint32_t node_of_client(std::uint64_t number, std::uint32_t nodes) noexcept {
    return nodes == 1 ? 0 : static_cast<std::uint32_t>(number >> (64 - node_bits(nodes)));
}
// Returns the random half of a number of this node.
[[nodiscard]] constexpr std::uint32_t chance_of_node(std::uint32_t chance, std::uint32_t node,
                                                     std::uint32_t nodes) noexcept {
    const unsigned bits = node_bits(nodes);
    return nodes == 1 ? chance : node << (32 - bits) | chance >> bits;
}

// Makes and checks numbers. The upper half of a number is random. The lower half is a proof, under a key that clients
// do not know, that this user got the number. 0 is no number.
class ClientNumbers {
public:
    explicit constexpr ClientNumbers(const SipKey& key) noexcept : key_(key) {}

    [[nodiscard]] constexpr std::uint64_t make(std::uint32_t uid, std::uint32_t chance) const noexcept {
        return std::uint64_t{chance} << 32U | proof(uid, chance);
    }
    // True if make() gave the number to this user.
    [[nodiscard]] constexpr bool is_of(std::uint32_t uid, std::uint64_t number) const noexcept {
        return number != 0 && number == make(uid, static_cast<std::uint32_t>(number >> 32U));
    }

private:
    [[nodiscard]] constexpr std::uint32_t proof(std::uint32_t uid, std::uint32_t chance) const noexcept {
        return static_cast<std::uint32_t>(sip_hash(key_, std::uint64_t{uid}, std::uint64_t{chance}));
    }

    SipKey key_;
};

static_assert(ClientNumbers({1, 2}).is_of(1000, ClientNumbers({1, 2}).make(1000, 5)));
static_assert(!ClientNumbers({1, 2}).is_of(1001, ClientNumbers({1, 2}).make(1000, 5)));
static_assert(!ClientNumbers({1, 3}).is_of(1000, ClientNumbers({1, 2}).make(1000, 5)));
static_assert(!ClientNumbers({1, 2}).is_of(1000, 0));
static_assert(node_of_client(ClientNumbers({1, 2}).make(1000, chance_of_node(~0U, 2, 3)), 3) == 2);

}  // namespace cairn::fs
