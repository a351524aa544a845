// What is registered per request type: its handler, and what is kept about its calls.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "lib/telemetry/histogram.hpp"
#include "rpc/erpc/call.hpp"
#include "rpc/erpc/limits.hpp"

namespace cairn::erpc {

struct BackgroundJob;

struct TypeEntry {
    Handler function = nullptr;
    void* context = nullptr;
    std::unique_ptr<telemetry::Histogram> latency_ns;
    BackgroundHandler background = nullptr;  // instead of `function`
    std::uint32_t response_bytes_max = 0;

    [[nodiscard]] bool registered() const noexcept { return function != nullptr || background != nullptr; }
};

// The part of an endpoint that its application fills in.
class RequestTypes {
public:
    // The one of these two that was called last holds. Before a request of the type is executed room for a response of
    // `response_bytes_max` is taken: reserve() does not fail for so many. No room: the request is put off, and executed
    // when its client asks again.
    void set_handler(std::uint8_t type, Handler handler, void* context, std::uint32_t response_bytes_max = 0) noexcept {
        serves_ = serves_ || handler != nullptr;
        handlers_[type].function = handler;
        handlers_[type].background = nullptr;
        handlers_[type].context = context;
        handlers_[type].response_bytes_max = response_bytes_max;
    }
    // Runs on EndpointConfig::background, which must be there. For each request room for a response of that size is
    // taken beforehand. Nothing to take, or no job: the request is put off, and executed when its client asks again.
    void set_background_handler(std::uint8_t type, BackgroundHandler handler, void* context,
                                std::uint32_t response_bytes_max) noexcept {
        handlers_[type].function = nullptr;
        serves_ = serves_ || handler != nullptr;
        handlers_[type].background = handler;
        handlers_[type].context = context;
        handlers_[type].response_bytes_max = response_bytes_max;
    }

    // Keeps a histogram of the latencies (ns) of calls of this type from now on; allocates it.
    void keep_latency(std::uint8_t type) { handlers_[type].latency_ns = std::make_unique<telemetry::Histogram>(); }
    // nullptr: not kept.
    [[nodiscard]] const telemetry::Histogram* latency_ns(std::uint8_t type) const noexcept {
        return handlers_[type].latency_ns.get();
    }

protected:
    // Whether a handler was ever registered: who has none takes no sessions.
    [[nodiscard]] bool serves() const noexcept { return serves_; }

    RequestTypes() = default;
    ~RequestTypes() = default;

    std::array<TypeEntry, kRequestTypes> handlers_{};

private:
    bool serves_ = false;
};

}  // namespace cairn::erpc
