#!/usr/bin/env python3
"""Style as tests: each check of its own, and each check shown to complain of a bad sample.

    lint.py CHECK SOURCE_ROOT      layers | sizes | tokens | format | selftest

Exit 0: clean; 1: findings, one line each; 77: a tool is missing.
"""
import os
import re
import shutil
import subprocess
import sys

FOLDERS = ('apps', 'fs', 'lib', 'pmd_glue', 'rpc', 'tests')
HEADER_LINES, SOURCE_LINES, FUNCTION_LINES, LINE_COLUMNS = 200, 350, 70, 120
# Longer than a source should be, with the reason.
LONG_SOURCES = {
    'tests/sim/erpc_world.cpp': 'one world: its parts share every member',
}
DATAPATH_WORDS = (r'\bnew\b', r'\bmalloc\b', r'\bthrow\b', r'std::string\b', r'std::function', r'\bmutex', r'\bprintf',
                  r'fmt::', r'\bstd::vector<[^>]*>\s+\w+[;({]', r'make_unique', r'make_shared')


def sources(root):
    for folder in FOLDERS:
        for where, folders, files in os.walk(os.path.join(root, folder)):
            folders[:] = sorted(name for name in folders if not name.startswith('build'))
            for name in sorted(files):
                if name.endswith(('.cpp', '.hpp')):
                    path = os.path.join(where, name)
                    with open(path, encoding='utf-8') as file:
                        yield os.path.relpath(path, root), file.read()


def layer_rules(root):
    """{folder: folders it may include}, read from the build's own tables."""
    rules = {}
    for group in ('lib', 'rpc'):
        with open(os.path.join(root, group, 'meson.build'), encoding='utf-8') as file:
            table = re.search(r'_layers = \[(.*?)\]', file.read(), re.S).group(1)
        for layer in re.findall(r"'(\w+)'", table):
            with open(os.path.join(root, group, layer, 'meson.build'), encoding='utf-8') as file:
                listed = re.search(r'^deps = \[(.*?)\]', file.read(), re.M | re.S)
            deps = re.findall(r"'(\w+)'", listed.group(1)) if listed else []
            folder = f'{group}/{layer}'
            own = [f'rpc/{dep[4:]}' if dep.startswith('rpc_') else f'lib/{dep}' for dep in deps]
            rules[folder] = set(own).union({folder}, *(rules[dep] for dep in own))
    return rules


def check_layers(path, text, rules):
    folder = '/'.join(path.split('/')[:2])
    findings = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'#include ([<"])([^>"]+)[>"]', line)
        if not match:
            continue
        kind, name = match.groups()
        if name.startswith('rte_') and not path.startswith(('pmd_glue/', 'tests/eal/')):
            findings.append(f'{path}:{number}: {name}: only pmd_glue knows DPDK')
        if kind == '"' and '/' not in name:
            findings.append(f'{path}:{number}: {name}: write project includes from the root')
        target = '/'.join(name.split('/')[:2])
        if kind == '"' and folder in rules and name.startswith(('lib/', 'rpc/', 'pmd_glue/', 'apps/', 'tests/')):
            if target not in rules[folder]:
                findings.append(f'{path}:{number}: {name}: not below {folder}')
        if kind == '"' and path.startswith('pmd_glue/') and name.startswith(('rpc/', 'apps/', 'tests/')):
            findings.append(f'{path}:{number}: {name}: not below pmd_glue')
        if kind == '"' and path.startswith('apps/') and name.startswith('tests/'):
            findings.append(f'{path}:{number}: {name}: programs do not need tests')
    return findings


def function_lengths(text):
    """(first line, lines) of each brace block that a function heading opens at file or class level."""
    start, depth = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        opens = stripped.endswith('{') and not re.match(
            r'(namespace|class|struct|enum|union|extern|constexpr std::array|if|for|while|switch|else|do|#)', stripped)
        if start is None and opens and indent <= 4 and (')' in stripped):
            start, depth = number, indent
        elif start is not None and indent == depth and stripped.startswith('}'):
            yield start, number - start + 1
            start = None


def check_sizes(path, text, _):
    findings = []
    lines = text.count('\n')
    limit = HEADER_LINES if path.endswith('.hpp') else SOURCE_LINES
    if lines > limit and path not in LONG_SOURCES:
        findings.append(f'{path}: {lines} lines, {limit} are allowed')
    findings += [f'{path}:{first}: a function of {length} lines, {FUNCTION_LINES} are allowed'
                 for first, length in function_lengths(text) if length > FUNCTION_LINES]
    return findings


def check_tokens(path, text, _):
    findings = []

    def found(number, what):
        findings.append(f'{path}:{number}: {what}')

    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LINE_COLUMNS:
            found(number, f'{len(line)} columns')
        if '\t' in line or line != line.rstrip():
            found(number, 'a tab or a space at the end')
        if re.search(r'\b(TODO|FIXME|XXX|HACK)\b', line):
            found(number, 'finish it or leave it out')
        if re.search(r'/(work|home|root)/\w', line):
            found(number, 'a path of one machine')
        if path.endswith('.hpp') and re.match(r'\s*using namespace', line):
            found(number, 'using namespace in a header')
        if path.endswith('_datapath.cpp'):
            code = line.split('//')[0]
            for word in DATAPATH_WORDS:
                if re.search(word, code):
                    found(number, f'{word} in a datapath file')
    if path.endswith('.hpp') and '#pragma once' not in text:
        found(1, 'no #pragma once')
    if path.endswith('.hpp') and not text.startswith('//'):
        found(1, 'a header begins with a comment that says what it is for')
    return findings


def check_format(root):
    tool = shutil.which('clang-format')
    if tool is None:
        print('skipped: clang-format is not installed')
        return 77
    files = [os.path.join(root, path) for path, _ in sources(root)]
    done = subprocess.run([tool, '--dry-run', '-Werror', f'--style=file:{root}/.clang-format', *files],
                          capture_output=True, text=True, check=False)
    print(done.stderr[:4000], end='')
    return 1 if done.returncode else 0


def selftest(root):
    rules = layer_rules(root)
    long_function = 'void f() {\n' + '    g();\n' * 80 + '}\n'
    bad = [
        (check_layers, 'lib/wire/x.cpp', '#include "lib/net/arp.hpp"\n'),
        (check_layers, 'lib/net/x.cpp', '#include <rte_mbuf.h>\n'),
        (check_layers, 'rpc/erpc/x.cpp', '#include "pmd_glue/eal.hpp"\n'),
        (check_layers, 'pmd_glue/x.cpp', '#include "rpc/erpc/endpoint.hpp"\n'),
        (check_layers, 'lib/net/x.cpp', '#include "arp.hpp"\n'),
        (check_sizes, 'lib/net/x.hpp', 'int a;\n' * 201),
        (check_sizes, 'lib/net/x.cpp', 'int a;\n' * 351),
        (check_sizes, 'lib/net/x.cpp', long_function),
        (check_tokens, 'lib/net/x.cpp', 'int a;  // TODO\n'),
        (check_tokens, 'lib/net/x.cpp', 'int a; \n'),
        (check_tokens, 'lib/net/x.cpp', 'x' * 121 + '\n'),
        (check_tokens, 'lib/net/x.hpp', 'int a;\n'),
        (check_tokens, 'lib/net/x_datapath.cpp', 'auto* a = new int;\n'),
        (check_tokens, 'lib/net/x_datapath.cpp', '    std::string text;\n'),
    ]
    failures = [f'{check.__name__} does not complain of {text[:40]!r}' for check, path, text in bad
                if not check(path, text, rules)]
    good = '// What it is.\n#pragma once\n#include "lib/base/types.hpp"\n'
    failures += [f'{check.__name__} complains of a good header' for check in (check_layers, check_sizes, check_tokens)
                 if check('lib/net/x.hpp', good, rules)]
    print('\n'.join(failures))
    return 1 if failures else 0


def main():
    name, root = sys.argv[1], sys.argv[2]
    if name == 'format':
        return check_format(root)
    if name == 'selftest':
        return selftest(root)
    check = {'layers': check_layers, 'sizes': check_sizes, 'tokens': check_tokens}[name]
    rules = layer_rules(root)
    files = list(sources(root))
    findings = [finding for path, text in files for finding in check(path, text, rules)]
    print('\n'.join(findings))
    return 1 if findings or not files else 0


sys.exit(main())
