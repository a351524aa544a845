// The judge: takes facts, and returns a verdict.
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>

#include "apps/run/program.hpp"

namespace cairn::launch {

namespace {

struct Reason {
    const char* what;
    const char* remedy;
};

Error out_of_reach(const ProgramFacts& program, const Reason& reason) {
    return Error{fmt::format("{} is out of reach: {}", program.path, reason.what), reason.remedy};
}

Reason reason_of(ElfError error) noexcept {
    switch (error) {
        case ElfError::NoElf:
            return {"it is neither an ELF program nor a script",
                    "begin a script with #! and the path of its interpreter"};
        case ElfError::BigEndian:
        case ElfError::Bits32:
            break;
        case ElfError::Damaged:
            return {"its file is damaged", "install it again"};
    }
    return {"it is for another architecture than x86-64", "use the x86-64 build of the program"};
}

bool is_glibc_loader(std::string_view interpreter) noexcept {
    return interpreter.substr(interpreter.rfind('/') + 1).starts_with("ld-linux");
}

// Returns the verbs library that is loaded, but is not ours.
const Loaded* find_stranger(const ProgramFacts& program, const Libraries& libraries) {
    const auto is_stranger = [&libraries](const Loaded& loaded) {
        const bool is_replaced =
            std::find(libraries.names.begin(), libraries.names.end(), loaded.name) != libraries.names.end();
        const std::string folder = loaded.path.substr(0, loaded.path.rfind('/'));
        const bool is_ours =
            std::find(libraries.folders.begin(), libraries.folders.end(), folder) != libraries.folders.end();
        return (is_replaced || loaded.name.starts_with("libibverbs")) && !is_ours;
    };
    const auto found = std::find_if(program.loaded.begin(), program.loaded.end(), is_stranger);
    return found == program.loaded.end() ? nullptr : &*found;
}

}  // namespace

std::vector<Loaded> parse_loader_listing(std::string_view text) {
    std::vector<Loaded> loaded;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t begin = line.find_first_not_of(" \t");
        const std::size_t arrow = line.find(" => /");
        const std::size_t address = line.rfind(" (0x");
        if (begin != std::string_view::npos && arrow != std::string_view::npos && address != std::string_view::npos &&
            begin < arrow && arrow + 4 < address) {
            loaded.push_back({std::string(line.substr(begin, arrow - begin)),
                              std::string(line.substr(arrow + 4, address - arrow - 4))});
        }
    }
    return loaded;
}

std::string_view interpreter_of_script(std::string_view file) noexcept {
    if (!file.starts_with("#!")) {
        return {};
    }
    std::string_view line = file.substr(2, std::min(file.find('\n'), file.size()) - 2);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    return line.substr(0, std::min(line.find_first_of(" \t"), line.size()));
}

Status judge_program(const ProgramFacts& program, const Libraries& libraries) {
    if (const ElfError* const error = std::get_if<ElfError>(&program.file)) {
        return out_of_reach(program, reason_of(*error));
    }
    const ElfFacts& facts = *std::get_if<ElfFacts>(&program.file);
    if (facts.machine != EM_X86_64) {
        return out_of_reach(program, reason_of(ElfError::Bits32));
    }
    if (facts.interpreter.empty()) {
        return out_of_reach(program, {"it is linked statically, so that it loads no library", "link it dynamically"});
    }
    if (!is_glibc_loader(facts.interpreter)) {
        return Error{fmt::format("{} is out of reach: its loader is {}, and the library needs glibc's", program.path,
                                 facts.interpreter),
                     "use a build of the program for glibc"};
    }
    if (program.gains_rights) {
        return out_of_reach(program, {"it is setuid or setgid, or has capabilities: the loader then takes no library "
                                      "from elsewhere",
                                      "run a copy of it without these (cp, setcap -r)"});
    }
    if (facts.has_verbs) {
        return out_of_reach(program, {"it has a verbs library linked in", "link it with libibverbs.so.1"});
    }
    if (const Loaded* const stranger = find_stranger(program, libraries)) {
        const std::string by = facts.rpath.empty() ? "" : fmt::format(" by its RPATH ({})", facts.rpath);
        return Error{
            fmt::format("{} is out of reach: it loads {} as {}{}", program.path, stranger->path, stranger->name, by),
            facts.rpath.empty() ? "remove that copy of the library"
                                : "remove the RPATH (patchelf --remove-rpath) or that copy of the library"};
    }
    return Nothing{};
}

}  // namespace cairn::launch
