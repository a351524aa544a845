// The secret of a file system's daemons, from a file.
#pragma once

#include <string>

#include "lib/base/result.hpp"
#include "lib/base/sip_hash.hpp"

namespace cairn::fs {

// Two files of the same bytes give the same key. Errors: it cannot be read; it has fewer than 16 bytes; others than its
// owner may read it.
Result<SipKey> read_key_file(const std::string& path);

}  // namespace cairn::fs
