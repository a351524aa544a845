"""The functions of a C++ source, by name and place: lint.py measures them, scripts/mutants plants faults into them."""
import re
import typing

import objects

NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.M)
NAME = re.compile(r'((?:\w+::)*(?:operator\s*(?:\(\)|[^\s\w(]*)|~?\w+))\s*\(')


class Function(typing.NamedTuple):
    """text[start:end] of a source, and within its outer braces text[body:end - 1]."""
    name: str  # as Client::send: with the classes around it, without namespaces
    start: int
    body: int
    end: int


def blank(text):
    return re.sub(r'[^\n]', ' ', text)


def without_comments(text):
    """Returns the text with spaces for comments and for the insides of literals."""
    def blanked(match):
        found = match.group()
        return blank(found) if found[0] == '/' else found[-1] + blank(found[1:-1]) + found[-1]
    return NO_CODE.sub(blanked, text)


def code_of(text):
    """Returns the text with spaces for comments, the insides of literals and the lines of the preprocessor."""
    return DIRECTIVE.sub(lambda match: blank(match.group()), without_comments(text))


def kind_of_brace(before):
    """Returns what a { opens, by the words before it: 'scope' (it holds functions), 'function' or 'value'."""
    before = before.rstrip(' ') if before.endswith((' ', '\n')) else before + '#'
    if before.endswith(('#', '=', '(', ',', 'return')):  # clang-format puts no space before the brace of a value
        return 'value'
    heading = re.sub(r'operator\s*[^\s\w(]+', 'operator', before)
    heading = re.sub(r'\balignas\([^()]*\)|\[\[.*?\]\]', '', heading, flags=re.S)
    for brackets in (r'\([^()]*\)', r'<[^<>]*>'):
        while (smaller := re.sub(brackets, '%' if brackets[1] == '(' else '', heading)) != heading:
            heading = smaller
    if '%' in heading:
        return 'function'
    return 'scope' if re.search(r'\b(namespace|class|struct|union|enum|extern)\b', heading) else 'value'


def class_of(heading):
    match = objects.OPENING.search(objects.stripped(heading) + '{')
    return match.group(1) if match else ''


def name_of(heading):
    match = NAME.search(objects.stripped(heading))
    return match.group(1) if match else ''


def find_functions(text):
    """Yields each function that a source defines; a lambda or a local class is part of the function around it."""
    code = code_of(text)
    kinds, classes, start = [], [], 0  # of the open braces; a heading begins at `start`
    for match in re.finditer(r'[{};]|\b(?:public|protected|private):', code):
        mark, heading = match.group(), code[start:match.start()]
        closed = kinds.pop() if mark == '}' and kinds else None
        if mark == '{':
            kinds.append('value' if {'function', 'value'} & set(kinds) else kind_of_brace(heading))
            if kinds[-1] == 'scope':
                classes.append(class_of(heading))
            elif kinds[-1] == 'function':
                name = '::'.join(filter(None, (*classes, name_of(heading))))
                first, body = match.start() - len(heading.lstrip()), match.end()
        elif closed == 'scope':
            classes.pop()
        elif closed == 'function':
            yield Function(name, first, body, match.end())
        ends_statement = mark not in '{}' and not {'function', 'value'} & set(kinds)
        if ends_statement or closed in ('function', 'scope') or mark == '{' and kinds[-1] == 'scope':
            start = match.end()
