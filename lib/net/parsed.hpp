// The result of this layer's parsers: a value, or one of the layer's drop reasons.
#pragma once

#include "lib/base/parsed.hpp"
#include "lib/net/drops.hpp"

namespace cairn::net {

template <class T, class Reason = Drop>
using Parsed = cairn::Parsed<T, Reason>;

using cairn::emit_at;
using cairn::read_raw;

}  // namespace cairn::net
