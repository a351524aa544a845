"""Rules for the sentences of comments, documents and messages of scripts.

Imported by lint.py (check `sentences`). A sentence names its actor first and is short, so that a reader needs it once.
"""
import ast
import collections
import io
import itertools
import re
import tokenize

from functions import NO_CODE

MOST_WORDS = 30

OPENING = re.compile(r'[\s(*_\[]*(who|whoever|whom|whose|what|those|that of)\b(?! to\b)', re.I)
BY_WHO = re.compile(r'\b(by|for|from|of|to)\s+(who|whom|whoever)\b', re.I)
FRAGMENT = re.compile(r'Of |Likewise\b|The same(?:[,;:.]| (?:again|after|as|at|before|between|but|by|for|from|if|in|'
                      r'into|of|on|to|when|where|with|without)\b)')
SENTENCE_END = re.compile(r'[.?!][)"\'*_\]]*\s+')
LIST_ITEM = re.compile(r'\s*(?:[-*•]|\d+[.)])\s+')
TABLE_LINE = re.compile(r'\S {2,}\S')  # columns, or a drawing: no sentence
GENERATED = re.compile(r'<!-- Made by [^\n]*: begin -->.*?<!-- Made by [^\n]*: end -->', re.S)

BEFORE_FUNCTION = re.compile(r'(?:\s*template\s*<[^\n]*>\s*\n|\s*\[\[[^\]]*\]\])*\s*')
FUNCTION = re.compile(r'(?!(?:case|class|co_\w+|delete|else|enum|for|if|namespace|new|return|static_assert|struct|'
                      r'switch|throw|typedef|union|using|while)\b)[\w:<>,*&\s]+[\s*&](?:[\w:~]+|operator[^\w\s(]+)\(')

# Their literals stand on pages that scripts/bench --readme makes, and change when those are made again.
TEXTS_OF_PAGES = ('scripts/bench_experiment.py', 'scripts/bench_findings.py')

# Text that belongs together: its first line, and whether it describes a function or is a literal in Python.
Paragraph = collections.namedtuple('Paragraph', 'line text function message', defaults=(False, False))


def paragraphs(lines, function=False):
    """Yields the paragraphs and list items of (number, text) lines; lines with more indentation are not prose."""
    first, kept, in_list = 0, [], False
    for number, text in itertools.chain(lines, [(0, '')]):
        text = text.rstrip()
        indentation = len(text) - len(text.lstrip())
        item = LIST_ITEM.match(text)
        prose = text and not TABLE_LINE.search(text[item.end():] if item else text)
        if not item and indentation >= (6 if in_list else 2):
            prose = False
        if kept and (item or not prose):
            yield Paragraph(first, '\n'.join(kept), function)
            kept, function = [], False
        if item:
            in_list, text = True, text[item.end():]
        elif text and indentation == 0 and not kept:
            in_list = False
        if prose:
            first = first if kept else number
            kept.append(text.strip())


def comment_blocks(comments):
    """Yields lists of (number, text) of successive comments (number, column, whether alone on its line, text)."""
    block, last = [], (0, 0)
    for number, column, alone, text in comments:
        if block and not (alone and (number - 1, column) == last):
            yield block
            block = []
        block.append((number, text[1:] if text.startswith(' ') else text))
        last = number, column
    if block:
        yield block


def is_function(code):
    """Returns whether C++ code begins with the declaration of a function."""
    code = code[BEFORE_FUNCTION.match(code).end():]
    return bool(FUNCTION.match(re.match(r'[^;{}=]*', code).group()))


def cpp(text):
    """Yields the paragraphs of comments in C++."""
    comments = []
    line, last = 1, 0
    for match in NO_CODE.finditer(text):
        line += text.count('\n', last, match.start())
        last = match.start()
        start = text.rfind('\n', 0, last) + 1
        token = match.group()
        alone = not text[start:last].strip()
        if token.startswith('//'):
            comments.append((line, last - start, alone, token[2:].lstrip('/!')))
        elif token.startswith('/*'):
            for number, each in enumerate(token[2:-2].split('\n'), line):
                comments.append((number, last - start, alone or number > line, re.sub(r'^\s*\*(?= |$)', '', each)))
    lines = text.split('\n')
    for block in comment_blocks(comments):
        end = block[-1][0]
        yield from paragraphs(block, is_function('\n'.join(lines[end:end + 6])))


def python_literals(node, docstrings):
    """Yields the literals below a node, without docstrings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr):
            yield Paragraph(child.lineno, ''.join(getattr(each, 'value', '') if isinstance(each, ast.Constant) else '{}'
                                                  for each in child.values), message=True)
        elif isinstance(child, ast.Constant):
            if isinstance(child.value, str) and child not in docstrings:
                yield Paragraph(child.lineno, child.value, message=True)
        else:
            yield from python_literals(child, docstrings)


def python(text):
    """Yields the paragraphs of comments and docstrings in Python, and its literals."""
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node, clean=False) is not None:
                docstring = node.body[0].value
                docstrings.add(docstring)
                lines = enumerate(re.sub(rf'(?<=\n) {{{docstring.col_offset}}}', '', docstring.value).split('\n'),
                                  docstring.lineno)
                yield from paragraphs(lines, isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    comments = [(*token.start, not token.line[:token.start[1]].strip(), token.string[1:])
                for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT]
    for block in comment_blocks([each for each in comments if not re.match(r'!| noqa', each[3])]):
        yield from paragraphs(block)
    yield from python_literals(tree, docstrings)


def shell(text):
    """Yields the paragraphs of comments of a shell script or a build file."""
    comments = []
    for number, line in enumerate(text.split('\n'), 1):
        if match := re.match(r'(\s*)#(?!!)(.*)', line):
            comments.append((number, len(match.group(1)), True, match.group(2)))
        elif (match := re.match(r'(.*\S\s+)# (.*)', line)) and not re.search(r'["\']', match.group(1)):
            comments.append((number, len(match.group(1)), False, ' ' + match.group(2)))
    for block in comment_blocks(comments):
        yield from paragraphs(block)


def markdown(text):
    """Yields the paragraphs, list items and cells of tables of a document, but none of its generated parts."""
    text = GENERATED.sub(lambda match: '\n' * match.group().count('\n'), text)
    lines, in_code = [], False
    source = text.split('\n')
    for number, line in enumerate(source, 1):
        in_code ^= line.lstrip().startswith('```')
        if in_code or line.lstrip().startswith(('```', '#', '<!--', '|')):
            lines.append((number, ''))
        else:
            lines.append((number, re.sub(r'^> ?', '', line)))
        heads_table = number < len(source) and re.match(r'\s*\|[\s:|-]+\|\s*$', source[number])
        if not in_code and line.startswith('|') and not heads_table:
            yield from (Paragraph(number, cell.strip()) for cell in re.split(r'(?<!\\)\|', line) if cell.strip())
    yield from paragraphs(lines)


def without_code(text):
    """Returns the text without code and addresses of links, on the same lines."""
    text = re.sub(r'`[^`]*`', lambda match: 'code' + '\n' * match.group().count('\n'), text)
    text = re.sub(r'\]\([^)]*\)', lambda match: ']' + '\n' * match.group().count('\n'), text)
    return re.sub(r'\b(e\.g|i\.e|cf|vs|al|Fig|Sec)\.', r'\1', text)


def complaints(paragraph):
    """Yields (line, complaint) for each sentence of the paragraph that breaks a rule."""
    text = without_code(paragraph.text)
    ends = [match.end() for match in SENTENCE_END.finditer(text)]
    for start, end in zip([0, *ends], [*ends, len(text)]):
        sentence = text[start:end].strip()
        line = paragraph.line + (text.count('\n', 0, start) if not paragraph.message else 0)
        opening = OPENING.match(sentence)
        if opening and not sentence.rstrip(')"*_\\n ').endswith('?') and (start == 0 or opening.group(1)[0].isupper()):
            yield line, f'a sentence begins with "{opening.group(1)}": begin with its actor or its thing'
        if match := BY_WHO.search(sentence):
            yield line + text.count('\n', start, start + match.start()) * (not paragraph.message), (
                f'"{" ".join(match.group().split())}": name the actor')
        if paragraph.function and start == 0 and FRAGMENT.match(sentence):
            yield line, 'the comment of a function begins with a verb: Returns, Makes, Moves'
        words = sum(1 for word in sentence.split() if re.search(r'\w', word))
        if words > MOST_WORDS and not paragraph.message:
            yield line, f'a sentence of {words} words, {MOST_WORDS} are allowed: "{" ".join(sentence.split()[:5])} ..."'


def is_message(text):
    """Returns whether a literal looks like a text for people."""
    return text.count(' ') >= 2


def findings(path, text):
    """Yields (line, complaint) for each sentence of a file that breaks a rule."""
    if path.endswith(('.cpp', '.hpp')):
        found = cpp(text)
    elif path.endswith('.md'):
        found = markdown(text)
    elif path.endswith('.py') or re.match(r'#![^\n]*python', text):
        found = python(text)
    elif path.endswith('.build') or text.startswith('#!'):
        found = shell(text)
    else:
        return
    for paragraph in found:
        if not paragraph.message or is_message(paragraph.text) and path not in TEXTS_OF_PAGES:
            yield from complaints(paragraph)
