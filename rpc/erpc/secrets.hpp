// Numbers of an endpoint that must be hard to guess: tokens, request numbers, cookies.
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

// A client returns a cookie to prove that it receives what is sent to its address. The server keeps nothing for it.
class Cookies {
public:
    explicit Cookies(const SipKey& key) noexcept : key_(derive_key(key, Purpose::SessionCookies)) {}

    // Returns the cookie for a Connect with this token from this address. It is never 0, which stands for no cookie.
    [[nodiscard]] std::uint64_t bake(const roce::UdAddress& from, std::uint64_t token, Instant now) const noexcept {
        return hash(from, token, period_of(now));
    }
    // True if the cookie was baked for the same address and token in this period or the last one. So a cookie is valid
    // for at least kCookieLife and less than twice that.
    [[nodiscard]] bool fits(std::uint64_t cookie, const roce::UdAddress& from, std::uint64_t token,
                            Instant now) const noexcept {
        const std::uint64_t period = period_of(now);
        return cookie == hash(from, token, period) || cookie == hash(from, token, period - 1);
    }

private:
    [[nodiscard]] static std::uint64_t period_of(Instant now) noexcept {
        return static_cast<std::uint64_t>(now.ns / kCookieLife.ns);
    }
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
    SecretNumbers request_numbers;  // first request numbers of sessions
    Cookies cookies;
};

}  // namespace cairn::erpc
