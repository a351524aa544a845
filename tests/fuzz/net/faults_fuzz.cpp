// Any text as a list of faults: a parsed list is written in a form that parses the same.
#include <cstddef>
#include <cstdint>

#include "lib/base/assert.hpp"
#include "lib/port/faults.hpp"

using namespace cairn;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto parsed = port::parse_faults({reinterpret_cast<const char*>(data), size});
    if (!parsed.ok()) {
        CAIRN_ASSERT(!parsed.error().remedy.empty());
        return 0;
    }
    const std::string text = parsed.value().text();
    const auto again = port::parse_faults(text);
    CAIRN_ASSERT(again.ok());
    CAIRN_ASSERT(again.value().text() == text);
    return 0;
}
