#include "fs/shard/intents.hpp"

#include "fs/message/variants.hpp"
#include "fs/store/records.hpp"
#include "lib/base/assert.hpp"

namespace cairn::fs {

std::vector<std::uint8_t> bytes_of(const IntentText& intent) {
    std::vector<std::uint8_t> bytes(kMostIntentBytes);
    FieldWriter out(bytes);
    out(static_cast<std::uint8_t>(intent.index()));
    write_alternative(out, intent);
    CAIRN_ASSERT(!out.failed());  // two names and groups fit into the limit
    bytes.resize(out.bytes());
    return bytes;
}

std::optional<IntentText> parse_intent(std::span<const std::uint8_t> bytes) {
    FieldReader in(bytes);
    std::uint8_t kind = 0;
    in(kind);
    std::optional<IntentText> intent(std::in_place);
    return !in.failed() && read_alternative(in, kind, *intent) ? intent : std::nullopt;
}

}  // namespace cairn::fs
