// Judges whether a program would use our library, and why not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/run/elf_file.hpp"
#include "apps/run/libraries.hpp"
#include "lib/base/result.hpp"

namespace cairn::launch {

// A library as the loader found it.
struct Loaded {
    std::string name;
    std::string path;
};

// Reads the output of `ld.so --list PROGRAM`. Lines of another form are left out, as are libraries that are not found.
[[nodiscard]] std::vector<Loaded> parse_loader_listing(std::string_view text);

// Returns the interpreter that the first line of a script names; empty: it is no script, or names none.
[[nodiscard]] std::string_view interpreter_of_script(std::string_view file) noexcept;

struct ProgramFacts {
    std::string path;  // of the file that the kernel loads: of a script, its interpreter
    ElfParsed file = ElfError::NoElf;
    bool gains_rights = false;  // of another user, or capabilities: the loader then ignores LD_LIBRARY_PATH
    std::vector<Loaded> loaded;
};

// Judges whether the loader gives the program our libraries. Errors: it does not, with the reason and the remedy.
[[nodiscard]] Status judge_program(const ProgramFacts& program, const Libraries& libraries);

// Finds the program as a shell does, follows scripts to their interpreters, asks the loader for the program's
// libraries, and judges. Returns the path to execute. Errors: those of judge_program(); it is not there, not a file,
// not executable.
[[nodiscard]] Result<std::string> reach_program(const std::string& name, const Libraries& libraries);

}  // namespace cairn::launch
