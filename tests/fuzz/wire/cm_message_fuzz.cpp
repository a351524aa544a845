// Bytes as a connection manager's message of each kind and as the headers in private data. The result is a refusal with
// a reason, or a value whose emission means the same and is emitted alike.
#include <algorithm>
#include <cstdlib>
#include <span>
#include <vector>

#include "lib/wire/cm_message.hpp"
#include "lib/wire/ip_cm.hpp"

namespace {

using namespace cairn;

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

// Parses a copy that ends where its memory ends, so that the sanitizer sees reads beyond the end.
void check(std::span<const std::uint8_t> input) {
    const std::vector<std::uint8_t> bytes(input.begin(), input.end());
    const auto parsed = wire::CmMad::parse(bytes);
    if (!parsed.ok()) {
        require(parsed.reason() < wire::MadDrop::Count);
        return;
    }
    const wire::MadBytes once = parsed.value().bytes();
    const auto again = wire::CmMad::parse(once);
    require(again.ok() && again.value() == parsed.value());
    require(again.value().bytes() == once);
}

// Checks the bytes again with the header, which random bytes rarely have.
template <class... Messages>
void check_as_each(std::span<const std::uint8_t> bytes, const std::variant<Messages...>*) {
    wire::MadBytes mad{};
    std::copy_n(bytes.begin(), std::min(bytes.size(), mad.size()), mad.begin());
    const auto as = [&mad](std::uint16_t attribute) {
        emit_at(mad.data(), wire::MadHeader{1, attribute});
        check(mad);
    };
    (as(Messages::kAttribute), ...);
}

template <class Header>
void check_private(std::span<const std::uint8_t> bytes) {
    if (bytes.size() < Header::kBytes) {
        return;
    }
    const auto parsed = Header::parse(read_raw<typename Header::Raw>(bytes.data()));
    if (parsed) {
        typename Header::Raw raw;
        parsed->emit(raw);
        require(Header::parse(raw) == parsed);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span<const std::uint8_t> bytes(data, size);
    check(bytes);
    check_as_each(bytes, static_cast<const wire::CmMessage*>(nullptr));
    check_private<wire::IpCmHeader>(bytes);
    check_private<wire::FeatureTrailer>(bytes);
    return 0;
}
