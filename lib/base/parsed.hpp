// The result of a parser: a value, or the reason why there is none. Also helpers that copy raw headers from and to
// bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lib/base/assert.hpp"

namespace cairn {

// Holds a T or a Reason; T is small. Reading the one that is absent is a bug (asserted).
template <class T, class Reason>
class [[nodiscard]] Parsed {
public:
    Parsed(const T& value) noexcept : value_(value), ok_(true) {}  // NOLINT(google-explicit-constructor)
    Parsed(Reason reason) noexcept : reason_(reason) {}            // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool ok() const noexcept { return ok_; }
    [[nodiscard]] const T& value() const noexcept {
        CAIRN_ASSERT(ok_);
        return value_;
    }
    [[nodiscard]] Reason reason() const noexcept {
        CAIRN_ASSERT(!ok_);
        return reason_;
    }

private:
    T value_{};
    Reason reason_{};
    bool ok_ = false;
};

// Returns the raw header that starts at `at`; sizeof(Raw) bytes must be there.
template <class Raw>
[[nodiscard]] Raw read_raw(const std::uint8_t* at) noexcept {
    static_assert(std::is_trivially_copyable_v<Raw> && alignof(Raw) == 1);
    Raw raw;
    std::memcpy(&raw, at, sizeof(Raw));
    return raw;
}

// Writes the sizeof(Header::Raw) bytes of a header to `at`.
template <class Header>
void emit_at(std::uint8_t* at, const Header& header) noexcept {
    typename Header::Raw raw;
    static_assert(std::is_trivially_copyable_v<typename Header::Raw> && alignof(typename Header::Raw) == 1);
    header.emit(raw);
    std::memcpy(at, &raw, sizeof(raw));
}

}  // namespace cairn
