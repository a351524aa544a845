// Any bytes as an ELF file, and as the output of a loader: nothing is read outside, and every text lies within.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/run/program.hpp"
#include "lib/base/assert.hpp"

namespace {

using namespace cairn;

// Inputs after a valid beginning of a file, since inputs rarely have one themselves.
constexpr std::uint8_t kIdent[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};

void judge(std::span<const std::uint8_t> file) {
    const launch::ElfParsed parsed = launch::parse_elf(file);
    if (const auto* const facts = std::get_if<launch::ElfFacts>(&parsed)) {
        for (const std::string_view text : {facts->interpreter, facts->rpath}) {
            const auto* const at = reinterpret_cast<const std::uint8_t*>(text.data());
            CAIRN_ASSERT(text.empty() || (at >= file.data() && at + text.size() < file.data() + file.size()));
        }
    }
    launch::ProgramFacts program;
    program.path = "program";
    program.file = parsed;
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    program.loaded = launch::parse_loader_listing(text);
    const Status judged = launch::judge_program(program, {{"/ours"}, {"libibverbs.so.1"}, {}});
    CAIRN_ASSERT(judged.ok() || !judged.error().remedy.empty());
    CAIRN_ASSERT(launch::interpreter_of_script(text).size() <= text.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    judge({data, size});
    std::vector<std::uint8_t> sound(data, data + size);
    for (std::size_t i = 0; i < std::size(kIdent) && i < sound.size(); ++i) {
        sound[i] = kIdent[i];
    }
    judge(sound);
    return 0;
}
