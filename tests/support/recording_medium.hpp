// Media that record which of their bytes are durable.
#pragma once

#include "fs/sim/recording_medium.hpp"

namespace cairn::test {

using fs::RecordingMedium;

}  // namespace cairn::test
