// Any bytes as a message of a program or a broker: a parsed message is written the same, and nothing is read beyond its
// end.
#include <algorithm>
#include <vector>

#include "lib/broker/messages.hpp"
#include "tests/fuzz/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cairn;
    // Half of them begin as messages do.
    std::vector<std::uint8_t> bytes(data, data + size);
    if (size > 8 && data[0] % 2 == 0) {
        const std::array<std::uint8_t, 8> head{'C', 'r', 'n', 'B', 1, static_cast<std::uint8_t>(data[1] % 16), 0, 0};
        std::copy(head.begin(), head.end(), bytes.begin());
    }
    const std::optional<broker::Message> read = broker::parse_message(bytes);
    if (read) {
        broker::MessageBytes room;
        const auto written = broker::emit_message(*read, room);
        test::require(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()));
    }
    return 0;
}
