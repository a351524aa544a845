// Reads how an ELF file is loaded. Pure: bytes in, facts out.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace cairn::launch {

enum class ElfError : std::uint8_t {
    NoElf,      // it does not begin like one
    BigEndian,  // not of this machine, so that nothing else of it was read
    Bits32,     // as BigEndian
    Damaged     // a table or a text lies outside the file
};

struct ElfFacts {
    std::uint16_t machine = 0;     // EM_*
    std::string_view interpreter;  // the loader that it names; empty: it is linked statically
    std::string_view rpath;        // DT_RPATH, which the loader searches before LD_LIBRARY_PATH; empty: none counts
    bool has_verbs = false;        // it defines verbs functions itself
};

using ElfParsed = std::variant<ElfFacts, ElfError>;

// Reads the file. The texts of the result lie in `file`.
[[nodiscard]] ElfParsed parse_elf(std::span<const std::uint8_t> file);

}  // namespace cairn::launch
