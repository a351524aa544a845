#!/usr/bin/env python3
"""Checks of style that run as tests; lint_selftest.py shows that each rule complains of a bad sample.

    lint.py CHECK SOURCE_ROOT [PATH...]      layers | objects | sizes | tokens | sentences | format

With paths such as lib/ or README.md it reports only findings in files whose paths begin with one of them.
Exit 0: clean; 1: findings, one line each; 77: a tool is missing.
"""
import os
import re
import shutil
import subprocess
import sys

import objects
import sentences
from functions import code_of, find_functions, without_comments

CODE = ('.cpp', '.hpp')
TEXT = CODE + ('.build', '.in', '.md', '.py', '.toml', '.txt')
TOOLS = ('.ci/', 'scripts/')  # programs whose names have no ending
OWN_HEADER_FIRST = ('lib/', 'rpc/', 'fs/', 'tests/')
LAYERED = ('lib', 'rpc', 'fs')  # each has the table of its layers in its meson.build

HEADER_LINES, SOURCE_LINES, FUNCTION_LINES, LINE_COLUMNS = 200, 350, 70, 120

# The words are assembled here so that this file does not contain them.
UNFINISHED = re.compile(r'\b(' + '|'.join(('TO' 'DO', 'FIX' 'ME', 'XX' 'X', 'HA' 'CK')) + r')\b')
MACHINE_PATH = re.compile(r'(?<![\w.})])/(home|root|work|Users)/\w')
LIBRARIES = ('lib/', 'fs/client/', 'apps/run/shim/')  # they run in programs that are not ours
IN_DATAPATH = (
    (r'\bnew\b', 'allocates'), (r'\b(m|c|re)alloc\b', 'allocates'), (r'\bmake_(unique|shared)\b', 'allocates'),
    (r'\bstd::vector<[^>]*>\s+\w+[;({]', 'allocates'), (r'\bstd::(w?string|function)\b', 'allocates'),
    (r'\bthrow\b', 'throws'), (r'\b(mutex|shared_mutex|lock_guard|unique_lock|scoped_lock)\b', 'locks'),
    (r'\b\w*printf\b', 'prints'), (r'\bstd::(cout|cerr|clog)\b', 'prints'), (r'\bfmt::', 'prints'),
)


def files(root):
    """Yields (path, text) of every text file of the project, but no file that Meson or a tool made."""
    for where, folders, names in os.walk(root):
        folders[:] = sorted(folder for folder in folders if (folder[0] not in '._' or folder == '.ci')
                            and not os.path.exists(os.path.join(where, folder, 'meson-private')))
        for name in sorted(names):
            path = os.path.relpath(os.path.join(where, name), root)
            if path.endswith(TEXT) or path.startswith(TOOLS):
                with open(os.path.join(root, path), encoding='utf-8') as file:
                    yield path, file.read()


def folder_of(dep):
    """Returns the folder of a layer of this name in the build: rpc_common is rpc/common, mem is lib/mem."""
    group, _, layer = dep.partition('_')
    return f'{group}/{layer}' if group in LAYERED else f'lib/{dep}'


def layer_rules(root):
    """Returns {folder: folders it may include}, read from the build's own tables."""
    rules = {}
    for group in LAYERED:
        with open(os.path.join(root, group, 'meson.build'), encoding='utf-8') as file:
            table = re.search(r'_layers = \[(.*?)\]', file.read(), re.S).group(1)
        for layer in re.findall(r"'([\w/]+)'", table):
            with open(os.path.join(root, group, layer, 'meson.build'), encoding='utf-8') as file:
                listed = re.search(r'^deps = \[(.*?)\]', file.read(), re.M | re.S)
            deps = re.findall(r"'([\w/]+)'", listed.group(1)) if listed else []
            folder = f'{group}/{layer}'
            rules[folder] = {folder} | {folder_of(dep) for dep in deps}
            if strangers := rules[folder] - rules.keys():
                raise SystemExit(f'{folder}/meson.build: {sorted(strangers)}: not below it')
    return rules


def may_include(path, name, rules):
    """Returns None, or why the file may not include the project's header of that name."""
    folder, target = os.path.dirname(path), os.path.dirname(name)
    if path.startswith(tuple(f'{group}/' for group in LAYERED)):
        if folder not in rules:
            return f'{folder} is not in the table of layers'
        return None if target in rules[folder] else f'not among the deps of {folder}'
    if path.startswith('pmd_glue/'):
        return None if name.startswith(('lib/', 'pmd_glue/')) else 'not below pmd_glue'
    if path.startswith('apps/sim/') and name.startswith('pmd_glue/'):
        return 'worlds do not need devices'
    if path.startswith('apps/') and name.startswith('tests/'):
        return 'programs do not need tests'
    return None


def check_layers(path, text, rules):
    if not path.endswith(CODE):
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        kind, name = match.groups()
        if name.startswith('rte_') and not path.startswith(('pmd_glue/', 'tests/eal/', 'tests/rulers/frame_')):
            yield number, f'{name}: only pmd_glue knows DPDK'
        elif kind == '"' and '/' not in name or '..' in name:
            yield number, f'{name}: write project includes from the root'
        elif kind == '"' and (why := may_include(path, name, rules)):
            yield number, f'{name}: {why}'
        elif kind == '<' and name.split('/')[0] in ('apps', 'fs', 'lib', 'pmd_glue', 'rpc', 'tests'):
            yield number, f'{name}: the project is not a system header'


def check_sizes(path, text, _):
    if not path.endswith(CODE):
        return
    lines = text.count('\n')
    limit = HEADER_LINES if path.endswith('.hpp') else SOURCE_LINES
    if lines > limit:
        yield 1, f'{lines} lines, {limit} are allowed'
    for function in find_functions(text):
        length = text.count('\n', function.start, function.end) + 1
        if length > FUNCTION_LINES:
            yield text.count('\n', 0, function.start) + 1, f'a function of {length} lines, {FUNCTION_LINES} are allowed'


def check_objects(path, text, _):
    if not path.endswith(CODE) or path.startswith('tests/'):
        return
    found = list(objects.objects(code_of(text)))
    has = {name: (functions, fields) for _, name, functions, fields in found}
    for listed, (functions, fields, _) in objects.LARGE.items():
        now = has.get(listed.split(':')[1], (0, 0)) if listed.startswith(f'{path}:') else (functions, fields)
        if now[0] < functions or now[1] < fields:
            yield 1, f'{listed} is smaller than objects.py says: lower its numbers there'
    for line, name, functions, fields in found:
        most_functions, most_fields, _ = objects.LARGE.get(f'{path}:{name}',
                                                           (objects.MOST_FUNCTIONS, objects.MOST_FIELDS, ''))
        if functions > most_functions or fields > most_fields:
            yield line, (f'{name} has {functions} member functions and {fields} data members, '
                         f'{most_functions} and {most_fields} are allowed')


def check_tokens(path, text, _):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LINE_COLUMNS and not path.endswith(('.md', '.toml')):
            yield number, f'{len(line)} columns'
        if '\t' in line or line != line.rstrip():
            yield number, 'a tab or a space at the end'
        if UNFINISHED.search(line):
            yield number, 'finish it or leave it out'
        if MACHINE_PATH.search(line):
            yield number, 'a path of one machine'
    if not path.endswith(CODE):
        return
    own = '' if path.startswith('tests/') else os.path.dirname(path) + '/'
    if path.startswith(OWN_HEADER_FIRST) and not text.startswith(('//', f'#include "{own}')):
        yield 1, 'begins neither with a comment that says what it is for nor with its own header'
    if path.endswith('.hpp') and not re.match(r'(//[^\n]*\n)+#pragma once\n', text):
        yield 1, 'a header begins with a comment that says what it is for, then #pragma once'
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        if path.endswith('.hpp') and re.match(r'\s*using namespace', line):
            yield number, 'using namespace in a header'
        if path.startswith(LIBRARIES) and re.search(r'(?<!secure_)\bgetenv\b', line):
            yield number, 'a set-uid program would believe who starts it: secure_getenv()'
        if re.search(r'\batomic_thread_fence\b', line):
            yield number, 'TSan refuses atomic_thread_fence: order by the atomics, or __sync_synchronize()'
        for word, does in IN_DATAPATH if path.endswith('_datapath.cpp') else ():
            if match := re.search(word, line):
                yield number, f'{match.group()} {does} in a datapath file'


def check_sentences(path, text, _):
    yield from sentences.findings(path, text)


CHECKS = {'layers': check_layers, 'objects': check_objects, 'sizes': check_sizes, 'tokens': check_tokens,
          'sentences': check_sentences}


def check_tree(name, root, beginnings=('',)):
    rules = layer_rules(root)
    count = 0
    for path, text in files(root):
        count += path.endswith(CODE)
        if path.startswith(beginnings):
            for number, complaint in CHECKS[name](path, text, rules):
                yield f'{path}:{number}: {complaint}'
    if count == 0:
        yield f'{root}: no sources'


def check_format(root):
    """Runs clang-format 14 only, since each version formats differently."""
    tools = [tool for tool in map(shutil.which, ('clang-format-14', 'clang-format')) if tool and re.search(
        r'version 14\.', subprocess.run([tool, '--version'], capture_output=True, text=True, check=True).stdout)]
    if not tools:
        print('skipped: clang-format 14 is not installed')
        return 77
    paths = [os.path.join(root, path) for path, _ in files(root) if path.endswith(CODE)]
    done = subprocess.run([tools[0], '--dry-run', '-Werror', '--style=file', *paths],
                          capture_output=True, text=True, check=False)
    print(done.stderr[:4000], end='')
    return 1 if done.returncode or not paths else 0


def main():
    name, root, *beginnings = sys.argv[1:]
    if name == 'format':
        return check_format(root)
    lines = list(check_tree(name, root, tuple(beginnings) or ('',)))
    print(*lines, sep='\n', end='\n' if lines else '')
    return 1 if lines else 0


if __name__ == '__main__':
    sys.exit(main())
