// What a server registers per request type: the handler, and how much room its answers need.
#pragma once

#include <array>
#include <cstdint>

#include "rpc/common/request.hpp"

namespace cairn::rpc {

constexpr std::uint32_t kRequestTypes = 256;

// The part of an endpoint that its application fills in. Not thread-safe: the worker's thread calls it.
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

    // Of set_handler() and set_background_handler() the later call holds. Before a request of the type is executed,
    // room for a response of `response_bytes_max` is taken: reserve() does not fail for so many. Without room the
    // request is put off, and executed when its client asks again.
    void set_handler(std::uint8_t type, Handler<Endpoint> handler, void* context,
                     std::uint32_t response_bytes_max = 0) noexcept {
        serves_ = serves_ || handler != nullptr;
        entries_[type] = {handler, nullptr, context, response_bytes_max};
    }
    // The handler runs on the endpoint's BackgroundPool, which must be there. Room for a response of that size is taken
    // beforehand for each request. Without room or a free job the request is put off, and executed when its client asks
    // again.
    void set_background_handler(std::uint8_t type, BackgroundHandler handler, void* context,
                                std::uint32_t response_bytes_max) noexcept {
        serves_ = serves_ || handler != nullptr;
        entries_[type] = {nullptr, handler, context, response_bytes_max};
    }

protected:
    RequestTypes() = default;
    ~RequestTypes() = default;

    // Whether a handler was ever registered: an endpoint without one takes no sessions.
    // mutants: rpc-request-types-serves
    [[nodiscard]] bool serves() const noexcept { return serves_; }
    [[nodiscard]] const std::array<Entry, kRequestTypes>& handlers() const noexcept { return entries_; }

private:
    std::array<Entry, kRequestTypes> entries_{};
    bool serves_ = false;
};

}  // namespace cairn::rpc
