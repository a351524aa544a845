// The messages of ScaleRPC outside of blocks, as bytes and with some bytes changed: greetings, entries, control words.
// An accepted message is within the limits, and means the same once it is written again.
#include <algorithm>
#include <array>
#include <bit>

#include "rpc/scalerpc/caller.hpp"
#include "tests/fuzz/input.hpp"

namespace {

using namespace cairn;
using namespace cairn::scalerpc;
using test::require;

template <class Raw>
std::span<const std::uint8_t> bytes_of(const Raw& raw) {
    return {reinterpret_cast<const std::uint8_t*>(&raw), sizeof(raw)};
}

void check_greeting(std::span<const std::uint8_t> said) {
    const std::optional<Hello> hello = Hello::parse(said);
    require(hello.has_value() == Hello::parse(said.first(std::min(said.size(), sizeof(RawHello)))).has_value());
    if (!hello) {
        return;
    }
    const BlockShape& shape = hello->shape;
    require(said.size() >= sizeof(RawHello));
    require(std::has_single_bit(shape.bytes) && shape.bytes >= 64 && shape.bytes <= 65536);
    require(std::has_single_bit(shape.blocks) && shape.blocks <= 64);
    require(shape.message_max() < shape.bytes);
    require(Caller::memory_for(shape) == 2U * shape.bytes * shape.blocks + kControlBytes);
    const RawHello again = hello->raw();
    require(std::memcmp(&again, said.data(), sizeof(again)) == 0);
}

// Checks that a valid entry names places within the blocks of its session, one after the other.
void check_entry(const std::array<std::uint8_t, kEntryBytes>& said, const BlockShape& shape, std::uint64_t base,
                 std::uint32_t next) {
    const Entry entry = Entry::parse(said.data());
    const RawEntry again = entry.raw();
    require(Entry::parse(bytes_of(again).data()) == entry);
    if (!entry.is_sound(shape, base, next)) {
        return;
    }
    require(entry.first == next && entry.count <= shape.blocks);
    require(entry.longest >= sizeof(RawTrailer) && entry.longest <= shape.bytes);
    require(entry.address - base < shape.session_bytes() && (entry.address - base) % shape.bytes == 0);
    for (std::uint32_t i = 0; i < entry.count; ++i) {
        require(shape.end_of(entry.first + i) >= entry.longest);
        require(shape.end_of(entry.first + i) <= shape.session_bytes());
    }
}

void check_control(const std::array<std::uint8_t, sizeof(RawControl)>& said) {
    const std::optional<Control> control = Control::parse(said.data());
    RawControl given;
    std::memcpy(&given, said.data(), sizeof(given));
    require(control.has_value() == (given.kind.get() <= 3));
    if (control) {
        given.reserved.set(0);
        const RawControl again = control->raw();
        require(std::memcmp(&again, &given, sizeof(given)) == 0);
    }
}

// Changes up to three bytes.
void spoil(std::span<std::uint8_t> bytes, test::Input& input) {
    for (std::uint8_t left = input.byte() % 4U; left > 0; --left) {
        const std::uint8_t at = input.byte();
        bytes[at % bytes.size()] = input.byte();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    test::Input input(data, size);
    const BlockShape shape{64U << (input.byte() % 11U), 1U << (input.byte() % 7U)};
    const Hello hello{shape,
                      {input.take<std::uint64_t>(), Rkey{input.take<std::uint32_t>()}},
                      {input.take<std::uint64_t>(), Rkey{input.take<std::uint32_t>()}},
                      input.byte()};
    RawHello greeting = hello.raw();
    require(Hello::parse(bytes_of(greeting))->shape == shape);
    spoil({reinterpret_cast<std::uint8_t*>(&greeting), sizeof(greeting)}, input);
    for (std::size_t bytes = 0; bytes <= sizeof(greeting); ++bytes) {
        check_greeting(std::vector<std::uint8_t>(bytes_of(greeting).begin(),
                                                 bytes_of(greeting).begin() + static_cast<std::ptrdiff_t>(bytes)));
    }
    const std::uint32_t next = input.take<std::uint32_t>();
    Entry entry{hello.staged.address + std::uint64_t{shape.index_of(next)} * shape.bytes, next, input.byte() % 66U,
                static_cast<std::uint32_t>(sizeof(RawTrailer)) + input.take<std::uint16_t>(), input.byte()};
    const RawEntry raw = entry.raw();
    std::array<std::uint8_t, kEntryBytes> said{};
    std::copy(bytes_of(raw).begin(), bytes_of(raw).end(), said.begin());
    spoil(said, input);
    check_entry(said, shape, hello.staged.address, next);
    std::array<std::uint8_t, sizeof(RawControl)> word{};
    Be32 kind{input.byte() % 6U};
    std::memcpy(word.data() + offsetof(RawControl, kind), &kind, sizeof(kind));
    spoil(word, input);
    check_control(word);
    check_greeting(input.bytes(size));
    return 0;
}
