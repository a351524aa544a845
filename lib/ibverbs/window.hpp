// Memory windows.
#pragma once

#include "lib/ibverbs/objects.hpp"
#include "lib/roce/qp/work.hpp"

namespace cairn::ibverbs {

struct Window : ibv_mw, OfContext {
    [[nodiscard]] static Window& of(ibv_mw* mw) noexcept { return *static_cast<Window*>(mw); }
};

// Writes the binding of a request to `to`. Returns an errno value.
[[nodiscard]] int describe_binding(ibv_context* context, const ibv_send_wr& from, roce::SendRequest& to) noexcept;

}  // namespace cairn::ibverbs
