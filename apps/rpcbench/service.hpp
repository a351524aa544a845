// The service of cairn-rpcbench, the same on all RPC systems.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "apps/common/pattern.hpp"
#include "apps/rpcbench/load.hpp"
#include "apps/rpcbench/stage_watch.hpp"
#include "rpc/common/request_types.hpp"

namespace cairn::rpcbench {

template <class Endpoint>
class Service {
public:
    // `watch` is told of handlers, if there is one.
    explicit Service(const Options& options, HandlerWatch* watch = nullptr) noexcept
        : response_bytes_(options.response_bytes), watch_(watch) {}
    // The service outlives the endpoint. Errors: the endpoint sends no answers of that length.
    Status open(Endpoint& endpoint) {
        const bool watched = watch_ != nullptr;
        const Status fits = endpoint.set_handler(kEcho, watched ? in_view<echo> : echo, this, response_bytes_);
        return fits.ok() ? endpoint.set_handler(kChecked, watched ? in_view<answer_checked> : answer_checked, this,
                                                response_bytes_)
                         : fits;
    }

private:
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
    HandlerWatch* watch_;
};

}  // namespace cairn::rpcbench
