// --emulate-context-cache: a worker that behaves like an adapter with few contexts of queue pairs at hand.
#pragma once

#include "lib/roce/engine_config.hpp"

namespace CLI {
class App;
}

namespace cairn::app {

void add_context_cache(CLI::App& app, roce::ContextCacheEmulation& emulation);

}  // namespace cairn::app
