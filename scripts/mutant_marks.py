"""The marks that scripts/mutants keys its faults by, and the place in the sources that each stands for."""
import pathlib
import re
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / 'tests/lint'))
from lint import MUTANT_MARK, without_comments  # noqa: E402

FOLDERS = ('lib', 'apps', 'fs', 'pmd_glue', 'rpc', 'scripts', 'tests', 'config')
KEY = re.compile(r'[a-z0-9]+(-[a-z0-9]+)*')


class Place(typing.NamedTuple):
    """What stands below a mark: text[start:end] of the file."""
    path: pathlib.Path
    line: int
    text: str
    start: int
    end: int

    def __str__(self):
        return f'{self.path}:{self.line}'


def end_of_definition(text, start):
    """The end of the first line that leaves no bracket open and ends with ; or }."""
    end, depth = start, 0
    for line, code in zip(text[start:].splitlines(keepends=True), without_comments(text[start:]).splitlines()):
        end += len(line)
        depth += len(re.findall(r'[(\[{]', code)) - len(re.findall(r'[)\]}]', code))
        if depth <= 0 and code.rstrip().endswith((';', '}')):
            break
    return end


def end_of_block(text, start, indentation):
    """The first blank line that a line no deeper than the mark follows."""
    end = re.compile(rf'\n(?=\n+ {{0,{indentation}}}\S)').search(text, start)
    return end.end() if end else len(text)


def places_of(path, text):
    """(key, place) of each mark in a file."""
    for mark in MUTANT_MARK.finditer(text):
        indentation, sign, key = mark.groups()
        start = mark.end()
        end = end_of_definition(text, start) if sign == '//' else end_of_block(text, start, len(indentation))
        yield key, Place(path, text.count('\n', 0, mark.start()) + 1, text, start, end)


def read_marks():
    """{key: place} of all marks in the sources. Raises ValueError when a key is not spelt as one, or stands twice."""
    found = {}
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob('*')) if file.is_file()]
    for file in files:
        text = file.read_text(encoding='utf-8', errors='ignore')
        for key, place in places_of(file.relative_to(ROOT), text):
            if not KEY.fullmatch(key):
                raise ValueError(f'{place}: a mark is words in small letters with - between them, not "{key}"')
            if key in found:
                raise ValueError(f'{place}: the mark {key} stands at {found[key]}, too')
            found[key] = place
    return found
