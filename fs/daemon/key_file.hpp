// The secret of a file system's daemons, read from a file.
#pragma once

#include <string>

#include "lib/base/result.hpp"
#include "lib/base/sip_hash.hpp"

namespace cairn::fs {

// Reads the key; equal bytes give equal keys. Errors: the file cannot be read; it has fewer than 16 bytes; others than
// its owner may read it.
Result<SipKey> read_key_file(const std::string& path);

}  // namespace cairn::fs
