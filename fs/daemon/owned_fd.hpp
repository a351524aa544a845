// A descriptor that is closed with its owner.
#pragma once

#include "lib/base/owned_fd.hpp"

namespace cairn::fs {

using cairn::OwnedFd;

}  // namespace cairn::fs
