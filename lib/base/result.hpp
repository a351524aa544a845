// The result of something that the environment can refuse (configuration, EAL, files, sockets): a value, or an Error
// that names the thing and the remedy. A peer's packet never makes an Error; a bug of this program is an assertion.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "lib/base/assert.hpp"

namespace cairn {

// One line for the operator: the name of the thing that failed, and the remedy.
struct Error {
    std::string what;
    std::string remedy;

    [[nodiscard]] std::string text() const { return remedy.empty() ? what : what + "; " + remedy; }
};

// Holds a T or an Error. Reading the one that is absent is a bug (asserted).
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
    [[nodiscard]] explicit operator bool() const noexcept { return ok(); }

    [[nodiscard]] T& value() & noexcept {
        CAIRN_ASSERT(ok());
        return *std::get_if<0>(&state_);
    }
    [[nodiscard]] const T& value() const& noexcept {
        CAIRN_ASSERT(ok());
        return *std::get_if<0>(&state_);
    }
    [[nodiscard]] T&& value() && noexcept {
        CAIRN_ASSERT(ok());
        return std::move(*std::get_if<0>(&state_));
    }
    [[nodiscard]] const Error& error() const noexcept {
        CAIRN_ASSERT(!ok());
        return *std::get_if<1>(&state_);
    }

private:
    std::variant<T, Error> state_;
};

struct Nothing {};
using Status = Result<Nothing>;

}  // namespace cairn
