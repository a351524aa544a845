"""Many faults in one build: a function has its faulty bodies beside its own, and a number chooses one when it runs.

`CAIRN_PLANTED=7 test` runs with fault 7, without the variable all is as it should be. A fault that does not lie within
the body of a function of C++ has no switch, nor one whose test needs the sources as they are.
"""
import collections
import re
import typing

VARIABLE = 'CAIRN_PLANTED'
HEADER = 'lib/planted.hpp'
HEADER_TEXT = f'''#pragma once
#include <cstdlib>
namespace cairn_planted {{
inline const int chosen = [] {{
    const char* const number = std::getenv("{VARIABLE}");
    return number == nullptr ? 0 : std::atoi(number);
}}();
constexpr bool is(int number) noexcept {{
    return !__builtin_is_constant_evaluated() && chosen == number;
}}
}}  // namespace cairn_planted
'''
ERROR = re.compile(r'^(?:\.\./)*([\w/.+-]+):(\d+):\d+: (?:fatal )?error', re.M)


class Body(typing.NamedTuple):
    """The text between the outer braces of a function: text[start:end] of the file."""
    file: str
    start: int
    end: int


def body_of(mutant, sources):
    """Returns the body that has the whole fault within it, or None."""
    function = sources.function_at(mutant.file, mutant.at)
    if mutant.by_compiler or function is None or mutant.at < function.body or mutant.end >= function.end:
        return None
    return Body(mutant.file, function.body, function.end - 1)


class Switches:
    """The faults of a list that have a switch, by body; written into a copy of the sources and taken out again."""

    def __init__(self, mutants, sources):
        self.text = sources.text
        self.bodies = collections.defaultdict(dict)  # body: {number: mutant}
        for number, mutant in enumerate(mutants, 1):
            if (body := body_of(mutant, sources)) is not None:
                self.bodies[body][number] = mutant
        self.written = {}  # file: [(first line, last line, body)]

    def mutants(self):
        """(number, mutant) of each."""
        return [pair for chosen in self.bodies.values() for pair in chosen.items()]

    def drop(self, unfit):
        """The faults for which unfit(mutant) is true have no switch any more."""
        for body in list(self.bodies):
            self.bodies[body] = {number: mutant for number, mutant in self.bodies[body].items() if not unfit(mutant)}

    def drop_refused(self, said):
        """So with bodies that the compiler complained of. Returns how many."""
        refused = set()
        for file, line in ERROR.findall(said):
            here = self.written.get(file, [])
            refused |= {body for first, last, body in here if first <= int(line) <= last} or {each[2] for each in here}
        for body in refused:
            self.bodies.pop(body, None)
        return len(refused)

    def text_with(self, file, bodies):
        """The file with its faults beside what it does."""
        text, made, at = self.text(file), f'#include "{HEADER}"\n', 0
        lines = self.written[file] = []
        for body in sorted(bodies, key=lambda body: body.start):
            made += text[at:body.start]
            first = made.count('\n') + 1
            for number, mutant in self.bodies[body].items():
                made += f' if (::cairn_planted::is({number})) {{{mutant.planted(text, body.start, body.end)}}} else'
            made += f' {{{text[body.start:body.end]}}}\n'
            lines.append((first, made.count('\n') + 1, body))
            at = body.end
        return made + text[at:]

    def write(self, root):
        """The sources below `root` with all switches that there are now."""
        (root / HEADER).write_text(HEADER_TEXT, encoding='utf-8')
        files = collections.defaultdict(list)
        for body, chosen in self.bodies.items():
            if chosen:
                files[body.file].append(body)
        for file in {*files, *self.written}:
            text = self.text_with(file, files[file]) if files[file] else self.text(file)
            if (root / file).read_text(encoding='utf-8') != text:
                (root / file).write_text(text, encoding='utf-8')

    def take_out(self, root):
        """The sources below `root` as they are."""
        self.bodies.clear()
        self.write(root)
        (root / HEADER).unlink()
