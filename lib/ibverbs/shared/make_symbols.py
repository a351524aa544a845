#!/usr/bin/env python3
"""Makes the version script and the stubs of a library from its table of symbols.

    make_symbols.py TABLE MAP STUBS
"""
import sys

BODIES = {
    'refused': 'int {0}() {{ errno = EOPNOTSUPP; return EOPNOTSUPP; }}',
    'null': 'void* {0}() {{ errno = EOPNOTSUPP; return nullptr; }}',
    'nothing': 'void {0}() {{}}',
    'object': 'char {0} = 0;',
    # Another library has it, under a name of ours. All registers are as the caller left them.
    'call': '__asm__(".globl {0}\\n.type {0}, @function\\n{0}:\\n\\tendbr64\\n"\n'
            '        "\\tjmp *cairn_{0}@GOTPCREL(%rip)\\n.size {0}, . - {0}\\n");',
}


def order_of(version):
    number = version.split('_')[-1]
    return (0, [int(part) for part in number.split('.')]) if '.' in number else (1, [int(number)])


def read_table(path):
    with open(path, encoding='utf-8') as table:
        rows = [line.split() for line in table if line.strip() and not line.startswith('#')]
    for row in rows:
        if len(row) != 3 or row[2] not in ('real', 'old', *BODIES):
            sys.exit(f'{path}: not a symbol: {" ".join(row)}')
    return rows


def version_script(rows):
    text = ''
    before = ''
    versions = sorted({row[0] for row in rows}, key=order_of)
    for version in versions:
        names = sorted(name for of, name, kind in rows if of == version and kind != 'old')
        exported = f'    global: {"; ".join(names)};\n' if names else ''
        # In a node with old symbols, which are not listed, it would take these, too.
        hidden = '    local: *;\n' if version == versions[-1] else ''
        text += f'{version} {{\n{exported}{hidden}}}{before};\n\n'
        before = ' ' + version
    return text


def stubs(rows):
    text = '#include <cerrno>\n\nextern "C" {\n\n'
    for version, name, kind in rows:
        if kind in BODIES:
            text += BODIES[kind].format(name) + '\n'
        elif kind == 'old':
            alias = f'cairn_{version.replace(".", "_").lower()}_{name}'
            text += BODIES['null'].format(alias) + '\n'
            text += f'__asm__(".symver {alias}, {name}@{version}");\n'
    return text + '\n}\n'


def main(table, script_path, stubs_path):
    rows = read_table(table)
    for path, text in ((script_path, version_script(rows)), (stubs_path, stubs(rows))):
        with open(path, 'w', encoding='utf-8') as out:
            out.write(text)


if __name__ == '__main__':
    main(*sys.argv[1:])
