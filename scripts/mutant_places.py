"""The faults that tests/mutants/*.toml lists, and the place of each in the sources."""
import functools
import pathlib
import re
import sys
import tomllib
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / 'tests/lint'))
from functions import Function, find_functions  # noqa: E402
from lint import CODE, files  # noqa: E402

LISTS = ROOT / 'tests/mutants'
COMPILER = 'compile'


class Misfit(Exception):
    """Says which entry does not fit the sources, why, and how to mend it."""


class Mutant(typing.NamedTuple):
    title: str
    file: str
    at: int  # where `original` begins
    original: str
    replacement: str
    tests: tuple
    by_compiler: bool

    @property
    def end(self):
        return self.at + len(self.original)

    def planted(self, text, start, end):
        """Returns text[start:end] of the file with the fault."""
        return text[start:self.at] + self.replacement + text[self.end:end]


class Sources:
    """Finds places in the files below a folder, each of which is read once."""

    def __init__(self, root):
        self.root = root
        self.text = functools.cache(lambda file: (root / file).read_text(encoding='utf-8'))
        self.functions = functools.cache(lambda file: [*find_functions(self.text(file))] if file.endswith(CODE) else [])

    def function_at(self, file, at):
        """Returns the function that holds this place, or None."""
        return next((each for each in self.functions(file) if each.start <= at < each.end), None)

    def locate(self, file, name, original):
        """Returns where the text begins in the file, or, with a name, in the functions of that name."""
        if not (self.root / file).is_file():
            raise Misfit(f'there is no file {file}; {self.elsewhere(original)}')
        everywhere = [match.start() for match in re.finditer(f'(?={re.escape(original)})', self.text(file))]
        within, place = [Function('', 0, 0, len(self.text(file)))], file
        if name is not None:  # send is Client::send, too
            within = [each for each in self.functions(file) if f'::{each.name}'.endswith(f'::{name}')]
            place = f'{name} of {file}' if within else f'{file}, which has no function {name}'
        found = [at for at in everywhere if any(each.start <= at <= each.end - len(original) for each in within)]
        if len(found) == 1:
            return found[0]
        advice = self.choice(file, found or everywhere) if everywhere else self.elsewhere(original)
        raise Misfit(f'the text stands {len(found)} times in {place}; {advice}')

    def choice(self, file, found):
        """Says where the text stands in its file."""
        lines = [f'line {self.text(file).count(chr(10), 0, at) + 1}'
                 + (f' ({holder.name})' if (holder := self.function_at(file, at)) else '') for at in found]
        return f'it stands in {", ".join(lines)}: name the function or quote more'

    def elsewhere(self, original):
        """Says which other files have the text."""
        lists = str(LISTS.relative_to(ROOT))
        have = [path for path, text in files(self.root) if original in text and not path.startswith(lists)]
        return f'{", ".join(have)} has it: name that file' if have else 'no file has it: quote it anew'


def entries_of(document):
    """Yields (file, function or None, name, entry) of each fault of a list."""
    for file, faults in document.items():
        for key, value in faults.items() if isinstance(faults, dict) else [('?', faults)]:
            if isinstance(value, dict):
                yield from ((file, key, name, entry) for name, entry in value.items())
            else:
                yield file, None, key, value


def read_list(path, sources):
    """Yields a Mutant, or a Misfit, for each fault of a list."""
    try:
        document = tomllib.loads(path.read_text(encoding='utf-8'))
    except (OSError, tomllib.TOMLDecodeError) as error:
        yield Misfit(f'{path}: {error}')
        return
    for file, function, name, entry in entries_of(document):
        title = f'{path.stem}: {file}{f" {function}" if function else ""}: {name}'
        try:
            if not isinstance(entry, list) or len(entry) < 3 or not all(isinstance(each, str) for each in entry):
                raise Misfit('it is no ["original text", "replacement", "test", ...]')
            original, replacement, *tests = entry
            if original == replacement:
                raise Misfit('it changes nothing')
            yield Mutant(title, file, sources.locate(file, function, original), original, replacement,
                         tuple(test for test in tests if test != COMPILER), COMPILER in tests)
        except Misfit as misfit:
            yield Misfit(f'{title}: {misfit}')
