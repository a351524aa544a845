// What a server registers for each request type: the handler, and the room for its answers.
#pragma once

#include <array>
#include <cstdint>

#include "rpc/common/request.hpp"

namespace cairn::rpc {

constexpr std::uint32_t kRequestTypes = 256;

// The part of an endpoint that the application fills in. Only the worker's thread may call it.
template <class Endpoint>
class RequestTypes {
public:
    struct Entry {
        Handler<Endpoint> function = nullptr;
        BackgroundHandler background = nullptr;  // instead of `function`
        void* context = nullptr;
        std::uint32_t response_bytes_max = 0;

        [[nodiscard]] bool registered() const noexcept { return function != nullptr || background != nullptr; }
    };

    // Sets the handler of a type, and replaces an earlier one of either kind. The endpoint takes room for a response of
    // `response_bytes_max` before it executes a request of the type, so reserve() does not fail for so many bytes.
    // Without room the request is put off until its client asks again.
    void set_handler(std::uint8_t type, Handler<Endpoint> handler, void* context,
                     std::uint32_t response_bytes_max = 0) noexcept {
        serves_ = serves_ || handler != nullptr;
        entries_[type] = {handler, nullptr, context, response_bytes_max};
    }
    // Sets a handler that runs on the endpoint's BackgroundPool. The endpoint must have a pool. It takes room for a
    // response of `response_bytes_max` before it hands a request over. Without room or a free job the request is put
    // off until its client asks again.
    void set_background_handler(std::uint8_t type, BackgroundHandler handler, void* context,
                                std::uint32_t response_bytes_max) noexcept {
        serves_ = serves_ || handler != nullptr;
        entries_[type] = {nullptr, handler, context, response_bytes_max};
    }

protected:
    RequestTypes() = default;
    ~RequestTypes() = default;

    // True if a handler was ever registered. An endpoint without handlers takes no sessions.
    // mutants: rpc-request-types-serves
    [[nodiscard]] bool serves() const noexcept { return serves_; }
    [[nodiscard]] const std::array<Entry, kRequestTypes>& handlers() const noexcept { return entries_; }

private:
    std::array<Entry, kRequestTypes> entries_{};
    bool serves_ = false;
};

}  // namespace cairn::rpc
