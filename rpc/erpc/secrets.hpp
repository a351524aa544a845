// What an endpoint draws that nobody may guess.
#pragma once

#include <array>
#include <cstdint>

#include "lib/base/endian.hpp"
#include "lib/base/secret_numbers.hpp"
#include "lib/base/time.hpp"
#include "lib/port/path.hpp"
#include "lib/roce/ud/mux.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::erpc {

// What a client gives back to prove that it hears what its address is sent. The server keeps nothing for it.
class Cookies {
public:
    explicit Cookies(const SipKey& key) noexcept : key_(derive_key(key, Purpose::SessionCookies)) {}

    // For a Connect with this token from there. Never 0, which stands for none.
    [[nodiscard]] std::uint64_t bake(const roce::UdAddress& from, std::uint64_t token, Instant now) const noexcept {
        return hash(from, token, period_of(now));
    }
    // Baked for the same in this period or the last: kCookieLife old, or up to twice that.
    [[nodiscard]] bool fits(std::uint64_t cookie, const roce::UdAddress& from, std::uint64_t token,
                            Instant now) const noexcept {
        const std::uint64_t period = period_of(now);
        return cookie == hash(from, token, period) || cookie == hash(from, token, period - 1);
    }

private:
    // mutants: erpc-cookies-period-of
    [[nodiscard]] static std::uint64_t period_of(Instant now) noexcept {
        return static_cast<std::uint64_t>(now.ns / kCookieLife.ns);
    }
    // mutants: erpc-cookies-hash
    [[nodiscard]] std::uint64_t hash(const roce::UdAddress& from, std::uint64_t token,
                                     std::uint64_t period) const noexcept {
        const port::PathKey& path = from.path->key();
        const std::array<std::uint64_t, 2> address = path.remote.words();
        const std::uint64_t ends = std::uint64_t{path.udp_source_port} << 32U | from.qpn.value;
        return sip_hash(key_, address[0], address[1], ends, token, period) | 1U;
    }

    SipKey key_;
};

struct Secrets {
    explicit Secrets(const SipKey& key) noexcept
        : tokens(key, Purpose::SessionTokens), request_numbers(key, Purpose::RequestNumbers), cookies(key) {}

    SecretNumbers tokens;
    SecretNumbers request_numbers;  // where those of sessions begin
    Cookies cookies;
};

}  // namespace cairn::erpc
