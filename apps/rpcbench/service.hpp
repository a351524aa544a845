// The service of cairn-rpcbench, the same on all RPC systems.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "apps/common/pattern.hpp"
#include "apps/rpcbench/load.hpp"
#include "apps/rpcbench/stage_watch.hpp"
#include "lib/base/monotonic_clock.hpp"
#include "rpc/common/background.hpp"
#include "rpc/common/request_types.hpp"

namespace cairn::rpcbench {

template <class Endpoint>
class Service {
public:
    // Makes the service. `watch`, if there is one, gets the times of handlers.
    explicit Service(const Options& options, HandlerWatch* watch = nullptr) noexcept
        : response_bytes_(options.response_bytes), work_(microseconds(options.scalerpc.work_us)), watch_(watch) {}
    // Sets the handlers. The service outlives the endpoint. Errors: the endpoint sends no answers of that length.
    Status open(Endpoint& endpoint) {
        const Status fits = endpoint.set_handler(kEcho, chosen<echo>(), this, response_bytes_);
        return fits.ok() ? endpoint.set_handler(kChecked, chosen<answer_checked>(), this, response_bytes_) : fits;
    }
    // As open(), for handlers that take longer than a slice: the endpoint's threads run them.
    Status open_legacy(Endpoint& endpoint) {
        const Status fits = endpoint.set_legacy_handler(kEcho, on_thread<kEcho>, this, response_bytes_);
        return fits.ok() ? endpoint.set_legacy_handler(kChecked, on_thread<kChecked>, this, response_bytes_) : fits;
    }

private:
    template <rpc::Handler<Endpoint> kHandler>
    [[nodiscard]] rpc::Handler<Endpoint> chosen() const noexcept {
        if (work_ != Duration{}) {
            return watch_ != nullptr ? in_view<working<kHandler>> : working<kHandler>;
        }
        return watch_ != nullptr ? in_view<kHandler> : kHandler;
    }
    void compute() const noexcept {
        for (const Instant end = read_monotonic() + work_; read_monotonic() < end;) {
        }
    }
    template <rpc::Handler<Endpoint> kHandler>
    static void working(void* context, const rpc::Request<Endpoint>& request) {
        static_cast<Service*>(context)->compute();
        kHandler(context, request);
    }
    template <std::uint8_t kType>
    static void on_thread(void* context, rpc::BackgroundRequest& request) {
        const Service& self = *static_cast<Service*>(context);
        self.compute();
        const std::span<std::uint8_t> answer = request.reserve(self.response_bytes_);
        if constexpr (kType == kChecked) {
            app::fill_pattern(answer, app::digest(request.payload()));
        } else {
            const auto echoed = request.payload().first(std::min(answer.size(), request.payload().size()));
            std::copy(echoed.begin(), echoed.end(), answer.begin());
        }
    }
    template <rpc::Handler<Endpoint> kHandler>
    static void in_view(void* context, const rpc::Request<Endpoint>& request) {
        HandlerWatch& watch = *static_cast<Service*>(context)->watch_;
        watch.begin_handler();
        kHandler(context, request);
        watch.end_handler();
    }
    static void echo(void* context, const rpc::Request<Endpoint>& request) {
        const std::uint32_t bytes = static_cast<Service*>(context)->response_bytes_;
        if (bytes <= request.payload.size()) [[likely]] {
            request.endpoint.answer(request.handle, request.payload.first(bytes), request.now);
            return;
        }
        const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, bytes);
        if (answer.size() == bytes) {
            if (!request.payload.empty()) {
                std::memcpy(answer.data(), request.payload.data(), request.payload.size());
            }
            request.endpoint.respond(request.handle, request.now);
        }
    }
    static void answer_checked(void* context, const rpc::Request<Endpoint>& request) {
        const std::uint32_t bytes = static_cast<Service*>(context)->response_bytes_;
        const std::uint32_t asked = app::digest(request.payload);
        const std::span<std::uint8_t> answer = request.endpoint.reserve(request.handle, bytes);
        if (answer.size() == bytes) {
            app::fill_pattern(answer, asked);
            request.endpoint.respond(request.handle, request.now);
        }
    }

    std::uint32_t response_bytes_;
    Duration work_;
    HandlerWatch* watch_;
};

}  // namespace cairn::rpcbench
