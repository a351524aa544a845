// Media that know what of them is durable.
#pragma once

#include "fs/sim/recording_medium.hpp"

namespace cairn::test {

using fs::RecordingMedium;

}  // namespace cairn::test
