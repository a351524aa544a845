#!/usr/bin/env python3
"""Gives each rule of lint.py, and the compilation of headers alone, a bad sample, of which it has to complain.

    lint_selftest.py SOURCE_ROOT COMPILER...
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT, COMPILER = sys.argv[1], sys.argv[2:]

sys.dont_write_bytecode = True
sys.path.append(os.path.join(ROOT, 'scripts'))
import commits  # noqa: E402
import lint  # noqa: E402
import mutant_places  # noqa: E402
import mutant_runs  # noqa: E402
import mutant_switches  # noqa: E402
from functions import find_functions  # noqa: E402

HEADER = '// A sample.\n#pragma once\n'
SOURCE = '// A sample.\n'
RULES = lint.layer_rules(ROOT)

CLAUSE, LONG = 'Who' + ' asks is late.\n', 'A peer sends ' + 'a packet and ' * 9 + 'waits.\n'  # 31 words
ACTOR, VERB, NAME = 'begin with its actor', 'begins with a verb', 'name the actor'

# path, text, part of the complaint
SENTENCES = [
    *(('lib/net/x.cpp', f'int a;\n// It ends. {word} asks is late.\n', f'"{word}"') for word in (
        'Who', 'Whoever', 'What', 'Whom', 'Whose', 'Those', 'That of')),
    ('lib/net/x.cpp', 'int a;  // who asks\n', ACTOR),
    ('lib/net/x.cpp', f'/*\n * {CLAUSE} */\n', ACTOR),
    ('lib/net/x.hpp', '// (' + CLAUSE, ACTOR),
    ('lib/net/meson.build', '# ' + CLAUSE, ACTOR),
    ('scripts/x', '#!/bin/sh\nf  # who asks is late\n', ACTOR),
    ('scripts/x', '#!/usr/bin/env python3\n# ' + CLAUSE, ACTOR),
    ('scripts/x.py', f'"""It is.\n\n{CLAUSE}"""\n', ACTOR),
    ('scripts/x.py', "fail(f'who asks {a} is late')\n", ACTOR),
    ('README.md', 'It ends. ' + CLAUSE, ACTOR),
    ('README.md', '* ' + CLAUSE, ACTOR),
    ('README.md', '| a | b |\n|---|---|\n| c | who asks |\n', ACTOR),
    *(('README.md', f'It is read {words} asks.\n', NAME) for words in (
        'by ' + 'who', 'for ' + 'whom', 'of ' + 'who', 'to ' + 'who', 'from ' + 'who', 'by\nwho' + 'ever')),
    *((path, text.format(words), VERB) for words in ('Of all ports', 'The same for ports', 'The same', 'Likewise')
      for path, text in (('lib/net/x.hpp', '// {}.\nint f(int a);\n'),
                         ('lib/net/x.hpp', '    // {}.\n    [[nodiscard]] bool f() const {{\n'),
                         ('lib/net/x.hpp', '// {}.\ntemplate <class T>\nstd::vector<T> f(T a);\n'),
                         ('scripts/x.py', 'def f():\n    """{}."""\n'))),
    ('lib/net/x.cpp', '// ' + LONG, '31 words'),
    ('lib/net/x.cpp', '// It ends.\n// ' + LONG.replace('and', 'and\n//'), '31 words'),
    ('scripts/x.py', f'"""{LONG}"""\n', '31 words'),
    ('scripts/x', '#!/bin/sh\n# ' + LONG, '31 words'),
    ('README.md', LONG, '31 words'),
    ('README.md', '* It ends.\n\n  ' + LONG, '31 words'),
]

# path, text
PLAIN = [
    ('lib/net/x.cpp', 'int a;  // What is it?\n// It is read by a peer who asks. f() tells what it is; those end.\n'),
    ('lib/net/x.cpp', 'f("who");\n// He asks "Who is it".\n'),
    ('lib/net/x.cpp', '// A packet of ten\n// what it holds\nint a;  // the first\nint b;  // the second\n'),
    ('lib/net/x.cpp', 'f("what answers is none");\n'),
    ('scripts/bench_findings.py', "f('what is left is little')\n"),
    ('lib/net/x.hpp', '// Of all ports the first.\nint a = f(1);\n// The same for ports.\nstruct A {};\n'),
    ('lib/net/x.hpp', '// Returns it.\n// Of all ports.\nint f();\n// The same port gives the same path.\nint g();\n'),
    ('lib/net/x.hpp', '// As f(), for ports.\nint g();\n'),
    ('lib/net/x.cpp', '// ' + LONG.replace('and', 'and.')),
    ('lib/net/x.cpp', 'int a;  // ' + LONG[:60] + '\nint b;  // ' + LONG[60:]),
    ('scripts/x', '#!/bin/sh\n# Usage:\n#   ' + LONG + '# end\n# a   ' + LONG),
    ('scripts/x.py', "'''It is.\n\n    " + LONG + "'''\ndef f():\n    '''It is.\n\n      " + LONG + "    '''\n"),
    ('README.md', '# What it is\n\n```\n' + LONG + '```\n\n    who asks\n\n| test | what it shows |\n|--|--|\n'),
    ('README.md', f'<!-- Made by scripts/x: begin -->\n{LONG}<!-- Made by scripts/x: end -->\n'),
    ('README.md', 'A peer runs `' + LONG[:-1] + '` and\n' + '[a](' + LONG[:-2] + ').\n'),
    ('lib/net/x.txt', CLAUSE),
]

# check, path, text, part of the complaint
BAD = [
    ('layers', 'lib/wire/x.cpp', '#include "lib/net/arp.hpp"\n', 'not among the deps'),
    ('layers', 'lib/base/x.hpp', '#include "lib/mem/arena.hpp"\n', 'not among the deps'),
    ('layers', 'lib/mem/x.hpp', '#include "lib/telemetry/histogram.hpp"\n', 'not among the deps'),
    ('layers', 'lib/telemetry/x.hpp', '#include "lib/mem/arena.hpp"\n', 'not among the deps'),
    ('layers', 'lib/roce/x.cpp', '#include "rpc/erpc/endpoint.hpp"\n', 'not among the deps'),
    ('layers', 'lib/roce/pace/x.cpp', '#include "lib/roce/qp/memory.hpp"\n', 'not among the deps'),
    ('layers', 'lib/roce/qp/x.cpp', '#include "lib/roce/engine.hpp"\n', 'not among the deps'),
    ('layers', 'lib/new/x.cpp', '#include "lib/base/time.hpp"\n', 'not in the table'),
    ('layers', 'rpc/common/x.cpp', '#include "rpc/erpc/endpoint.hpp"\n', 'not among the deps'),
    ('layers', 'rpc/erpc/x.cpp', '#include "pmd_glue/eal.hpp"\n', 'not among the deps'),
    ('layers', 'lib/unlisted/x.cpp', '#include "lib/base/types.hpp"\n', 'not in the table'),
    ('layers', 'fs/medium/x.cpp', '#include "pmd_glue/eal.hpp"\n', 'not among the deps'),
    ('layers', 'fs/medium/x.cpp', '#include "rpc/common/msg_buffer.hpp"\n', 'not among the deps'),
    ('layers', 'fs/unlisted/x.cpp', '#include "lib/base/types.hpp"\n', 'not in the table'),
    ('layers', 'rpc/erpc/x.cpp', '#include "fs/medium/medium.hpp"\n', 'not among the deps'),
    ('layers', 'pmd_glue/x.cpp', '#include "fs/medium/medium.hpp"\n', 'not below pmd_glue'),
    ('layers', 'pmd_glue/x.cpp', '#include "rpc/erpc/endpoint.hpp"\n', 'not below pmd_glue'),
    ('layers', 'apps/perf/x.cpp', '#include "tests/support/wire_port.hpp"\n', 'do not need tests'),
    ('layers', 'apps/perf/x.cpp', '#include "tests/support/wire_port.hpp"\n', 'do not need tests'),
    ('layers', 'apps/sim/x.cpp', '#include "tests/support/wire_port.hpp"\n', 'do not need tests'),
    ('layers', 'apps/sim/x.cpp', '#include "pmd_glue/eal.hpp"\n', 'do not need devices'),
    ('layers', 'lib/net/x.cpp', '#include <rte_mbuf.h>\n', 'only pmd_glue'),
    ('layers', 'apps/perf/x.cpp', '#include <rte_mbuf.h>\n', 'only pmd_glue'),
    ('layers', 'tests/unit/net/x.cpp', '#  include <rte_mbuf.h>\n', 'only pmd_glue'),
    ('layers', 'lib/net/x.cpp', '#include "arp.hpp"\n', 'from the root'),
    ('layers', 'lib/net/x.cpp', '#include "../wire/bth.hpp"\n', 'from the root'),
    ('layers', 'lib/net/x.cpp', '#include <lib/base/types.hpp>\n', 'not a system header'),
    ('sizes', 'lib/net/x.hpp', 'int a;\n' * 201, '201 lines'),
    ('sizes', 'lib/net/x.cpp', 'int a;\n' * 351, '351 lines'),
    ('sizes', 'lib/net/x.cpp', 'void f() {\n' + '    g();\n' * 69 + '}\n', 'a function of 71 lines'),
    ('objects', 'lib/net/x.hpp', 'class A {\n' + '    void f() noexcept;\n' * 31 + '};\n', '31 member functions and 0'),
    ('objects', 'lib/net/x.hpp', 'struct A final : B {\n' + '    std::array<int, f(3)> a{}, b;\n' * 11 + '};\n',
     '0 member functions and 22 data'),
    ('objects', 'lib/net/x.cpp', 'class A {\n' + '    int f() const { return {1}; }\n' * 31 + '};\n', '31 member'),
    ('tokens', 'lib/net/x.cpp', SOURCE + 'int a;  // TO' + 'DO\n', 'finish it'),
    ('tokens', 'scripts/x', '# FIX' + 'ME\n', 'finish it'),
    ('tokens', 'README.md', 'XX' + 'X\n', 'finish it'),
    ('tokens', 'lib/net/x.cpp', SOURCE + 'int a; \n', 'a space at the end'),
    ('tokens', 'lib/net/meson.build', 'deps = [\n\t]\n', 'a tab'),
    ('tokens', 'tests/x.py', 'x' * 121 + '\n', '121 columns'),
    ('tokens', 'scripts/x', 'cd /ho' + 'me/someone\n', 'one machine'),
    ('tokens', 'lib/net/x.cpp', '#include <array>\n', 'begins neither'),
    ('tokens', 'lib/net/x.cpp', '#include "lib/base/types.hpp"\n', 'begins neither'),
    ('tokens', 'lib/net/x.hpp', '#pragma once\n', '#pragma once'),
    ('tokens', 'lib/net/x.hpp', '// A sample.\nint a;\n', '#pragma once'),
    ('tokens', 'lib/net/x.hpp', HEADER + 'using namespace std;\n', 'using namespace'),
    ('tokens', 'lib/net/x.cpp', SOURCE + 'std::atomic_thread_fence(std::memory_order_release);\n', 'TSan refuses'),
    ('tokens', 'lib/net/x.cpp', SOURCE + 'auto a = std::getenv("A");\n', 'secure_getenv'),
    *(('tokens', 'lib/net/x_datapath.cpp', SOURCE + code, 'in a datapath file') for code in (
        'auto* a = new int;\n', 'void* a = std::malloc(1);\n', 'auto a = std::make_unique<int>(1);\n',
        'std::vector<int> a(5);\n', 'std::string text;\n', 'std::function<void()> call;\n', 'throw 1;\n',
        'std::mutex guard;\n', 'std::lock_guard guard(a);\n', 'std::fprintf(stderr, "");\n', 'std::cerr << 1;\n',
        'fmt::print("");\n')),
    *(('sentences', path, text, complaint) for path, text, complaint in SENTENCES),
]

GOOD = [
    *(('sentences', path, text) for path, text in PLAIN),
    # Types, friends and constants of a class are no members, and members of an inner class are not its own.
    ('objects', 'lib/net/x.hpp', 'class A {\n' + '    A(const A&) = delete;\n    using T = int;\n    friend class B;\n'
     '    enum class E { X, Y };\n    static constexpr int kMost = f(3);\n    struct C { int a; void g(); };\n' * 20 +
     '};\n'),
    ('objects', 'lib/net/x.hpp',
     'struct A {\n' + '    std::function<int(int)> call = [](int x) { return x; };\n' * 20 + '};\n'),
    ('objects', 'lib/net/x.hpp',
     'struct A {\n' + '    explicit A(int x) : a_{x}, b_(x) { g(); }\n' * 30 + '    int a_, b_;\n};\n'),
    ('objects', 'tests/x.hpp', 'struct A {\n' + '    int a;\n' * 50 + '};\n'),
    ('layers', 'lib/mem/x.hpp', '#include "lib/base/types.hpp"\n#include "lib/mem/arena.hpp"\n#include <array>\n'),
    ('layers', 'rpc/erpc/x.cpp', '#include "rpc/common/msg_buffer.hpp"\n#include "lib/roce/ud/mux.hpp"\n'),
    ('layers', 'fs/medium/x.cpp', '#include "fs/medium/medium.hpp"\n#include "lib/mem/region.hpp"\n'),
    ('layers', 'pmd_glue/x.cpp', '#include <rte_mbuf.h>\n#include "lib/roce/ud/mux.hpp"\n'),
    ('layers', 'tests/eal/x.cpp', '#include <rte_mbuf.h>\n#include "pmd_glue/eal.hpp"\n'),
    ('layers', 'apps/perf/x.cpp', '#include "pmd_glue/eal.hpp"\n#include "rpc/erpc/endpoint.hpp"\n'),
    ('layers', 'apps/sim/x.cpp', '#include "rpc/sim/erpc_scenario.hpp"\n#include "lib/sim/link.hpp"\n'),
    ('sizes', 'lib/net/x.hpp', 'int a;\n' * 200),
    ('sizes', 'lib/net/x.cpp', 'int a;\n' * 350),
    ('sizes', 'lib/net/x.cpp', 'void f() {\n' + '    g();\n' * 68 + '}\n'),
    ('sizes', 'lib/net/x.cpp', 'constexpr int kTable[] = {\n' + '    1,\n' * 100 + '};\n'),
    ('tokens', 'lib/net/x.hpp', HEADER + '#include "lib/base/types.hpp"\n'),
    ('tokens', 'lib/net/x.cpp', SOURCE + '__sync_synchronize();  // no atomic_thread_fence\n'),
    ('tokens', 'lib/net/x.cpp', SOURCE + 'auto a = secure_getenv("A");\n'),
    ('tokens', 'apps/run/x.cpp', SOURCE + 'auto a = std::getenv("A");\n'),
    ('tokens', 'lib/net/x.cpp', '#include "lib/net/x.hpp"\n'),
    ('tokens', 'README.md', 'x' * 200 + '\n'),
    ('tokens', 'lib/net/x_datapath.cpp', SOURCE + 'f("new", std::string_view{});  // a new one\nrenew(thrown);\n'),
]

FUNCTIONS = {  # a function of three lines each
    'free': 'int f(int a) {\n    return a;\n}\n',
    'C linkage': 'extern "C" int f() {\n    return 1;\n}\n',
    'in a class': 'class A : public B<int> {\npublic:\n    A() {\n        g();\n    }\n    int b_{};\n};\n',
    'in a template with braces in its arguments': (
        'template <class T, T kM = static_cast<T>(~T{0})>\nstruct N {\n    T f() {\n        return {};\n    }\n};\n'),
    'with initialisers in braces': 'A::A(int a)\n    : a_{a}, b_(a) {\n}\n',
    'returning an array': 'constexpr std::array<int, 3> f() {\n    return {1, 2, 3};\n}\n',
    'after a table': 'constexpr int kTable[] = {1, 2};\nvoid f() {\n    g();\n}\n',
    'with a lambda': 'void f() {\n    g([](int a) { return a; });\n}\n',
    'an operator': 'bool operator<(const A& a, const A& b) {\n    return a.v < b.v;\n}\n',
    'a test': 'namespace {\nTEST(A, B) {\n    EXPECT_EQ(f("{"), \'{\');  // {\n}\n}  // namespace\n',
    'beside a macro': '#define M(a) \\\n    do {       \\\n    } while (a)\nvoid f() {\n    M(1);\n}\n',
}

NAMED = {  # a source, and the name of each function in it with what its braces hold
    'int f(int a,\n      int b) {\n    return a;\n}\nint g();\n': [('f', '\n    return a;\n')],
    'namespace a {\nvoid A<T>::f() {}\n}\n': [('A::f', '')],
    'struct A final : B<int> {\n    ~A() {}\n    struct C {\n        int f() { return 1; }\n    };\n    void g() {}\n}':
        [('A::~A', ''), ('A::C::f', ' return 1; '), ('A::g', '')],
    'template <class T>\nauto f(T a) -> decltype(a) { return {}; }  // }\n': [('f', ' return {}; ')],
    'A::A(int a) : a_{a}, b_(2) { g("}"); }\n': [('A::A', ' g("}"); ')],
    'bool A::operator<(const A<B>& a) const { return f(a); }\n': [('A::operator<', ' return f(a); ')],
    'void operator()(int a) noexcept(true) {}\n': [('operator()', '')],
    '[[nodiscard]] static std::function<int(int)> f() { return [](int a) { return a; }; }\n':
        [('f', ' return [](int a) { return a; }; ')],
    'void f() {\n    struct A {\n        void g() {}\n    };\n}\n':
        [('f', '\n    struct A {\n        void g() {}\n    };\n')],
    'int f();\nint a{1};\nenum class A { B };\nconst A kA[] = {\n    {f(1), 2},\n    {f(1), 2},\n};\n': [],
}


class Lint(unittest.TestCase):
    def complaints(self, check, path, text):
        return [what for _, what in lint.CHECKS[check](path, text, RULES)]

    def test_every_bad_sample_is_complained_of(self):
        for check, path, text, complaint in BAD:
            with self.subTest(check=check, path=path, text=text[:60]):
                self.assertIn(complaint, ' '.join(self.complaints(check, path, text)))

    def test_good_samples_pass(self):
        for check, path, text in GOOD:
            with self.subTest(check=check, path=path, text=text[:60]):
                self.assertEqual(self.complaints(check, path, text), [])

    def test_functions_are_found_and_measured(self):
        for name, text in FUNCTIONS.items():
            with self.subTest(name):
                self.assertEqual([text.count('\n', each.start, each.end) for each in find_functions(text)], [2])

    def test_functions_have_names_and_bodies(self):
        for text, named in NAMED.items():
            with self.subTest(text):
                self.assertEqual([(each.name, text[each.body:each.end - 1]) for each in find_functions(text)], named)


class Tree(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.write('lib/meson.build', "lib_layers = [\n  'base',  # types\n  'mem',\n]\n")
        self.write('rpc/meson.build', 'rpc_layers = []\n')
        self.write('fs/meson.build', 'fs_layers = []\n')
        self.write('lib/base/meson.build', 'sources = []\n')
        self.write('lib/mem/meson.build', "deps = ['base']\n")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding='utf-8')

    def compile(self, name):
        template = pathlib.Path(__file__).parent / 'header_alone.cpp.in'
        self.write('alone.cpp', template.read_text(encoding='utf-8').replace('@HEADER@', name))
        return subprocess.run([*COMPILER, '-std=c++20', '-fsyntax-only', '-I', self.root, self.root / 'alone.cpp'],
                              capture_output=True, check=False).returncode

    def test_headers_that_no_source_includes_first_are_compiled_alone(self):
        for name in ('first', 'behind', 'never', 'with_brackets'):
            self.write(f'lib/mem/{name}.hpp', HEADER)
        self.write('lib/mem/a.cpp', '// A sample.\n#include "lib/mem/first.hpp"\n\n#include "lib/mem/behind.hpp"\n')
        self.write('lib/mem/b.cpp', '#include <cstdint>\n\n#include "lib/mem/behind.hpp"\n')
        self.write('lib/mem/c.cpp', '#include <lib/mem/with_brackets.hpp>\n')
        listed = subprocess.run([sys.executable, pathlib.Path(__file__).parent / 'headers.py', self.root],
                                capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(listed, ['lib/mem/behind.hpp', 'lib/mem/never.hpp', 'lib/mem/with_brackets.hpp'])

    def test_the_order_of_the_layers_is_that_of_the_build(self):
        self.assertEqual(lint.layer_rules(self.root)['lib/mem'], {'lib/mem', 'lib/base'})
        self.write('lib/base/meson.build', "deps = ['mem']\n")
        with self.assertRaises(SystemExit):
            lint.layer_rules(self.root)

    def test_findings_name_the_file_and_the_line(self):
        self.write('lib/mem/a.cpp', SOURCE + 'int a; \n')
        self.assertEqual(list(lint.check_tree('tokens', self.root)),
                         ['lib/mem/a.cpp:2: a tab or a space at the end'])

    def test_paths_choose_the_files(self):
        self.write('lib/mem/a.cpp', SOURCE + 'int a; \n')
        self.assertEqual(list(lint.check_tree('tokens', self.root, ('lib/base/', 'README.md'))), [])
        self.assertEqual(len(list(lint.check_tree('tokens', self.root, ('lib/mem/', 'README.md')))), 1)

    def test_what_a_build_made_is_not_a_source(self):
        self.write('out/meson-private/x', '')
        self.write('out/a.cpp', SOURCE + 'int a; \n')
        self.assertEqual(list(lint.check_tree('tokens', self.root)), [f'{self.root}: no sources'])

    @unittest.skipUnless(shutil.which('clang-format-14') or shutil.which('clang-format'), 'no clang-format')
    def test_code_laid_out_otherwise_is_complained_of(self):
        shutil.copy(os.path.join(ROOT, '.clang-format'), self.root)
        self.write('lib/mem/a.cpp', 'int a;\n')
        self.assertIn(lint.check_format(self.root), (0, 77))
        self.write('lib/mem/a.cpp', 'int  a;\n')
        self.assertIn(lint.check_format(self.root), (1, 77))

    def test_a_header_that_needs_another_or_lacks_its_guard_does_not_compile_alone(self):
        self.write('good.hpp', HEADER + '#include <string>\ninline std::string f() { return {}; }\n')
        self.write('needs.hpp', HEADER + 'inline std::string f() { return {}; }\n')
        self.write('unguarded.hpp', 'inline int f() { return 1; }\n')
        self.assertEqual(self.compile('good.hpp'), 0)
        self.assertNotEqual(self.compile('needs.hpp'), 0)
        self.assertNotEqual(self.compile('unguarded.hpp'), 0)


class Mutants(unittest.TestCase):
    """scripts/mutants --check in a tree with one list and one source."""

    SOURCE = 'int f() {\n    return 1;\n}\n\nint A::g() {\n    return 2;\n}\n\nint h() {\n    return 2;\n}\n'

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for path in ('scripts/mutants', 'scripts/mutant_places.py', 'scripts/mutant_runs.py',
                     'scripts/mutant_switches.py', 'tests/lint/lint.py', 'tests/lint/objects.py',
                     'tests/lint/sentences.py', 'tests/lint/functions.py'):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.join(ROOT, path), self.root / path)

    def complaint(self, entry='["return 1;", "return 3;", "f_test"]', table='"lib/net/f.cpp"'):
        for path, text in (('tests/mutants/net.toml', f'[{table}]\n"it is off" = {entry}\n'),
                           ('lib/net/f.cpp', self.SOURCE), ('apps/other.py', 'unlike = 1\n')):
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text, encoding='utf-8')
        done = subprocess.run([sys.executable, self.root / 'scripts/mutants', '--check'], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2 if done.stderr else 0)
        return done.stderr.strip()

    def test_an_entry_that_fits_passes(self):
        for fits in ({}, {'table': '"lib/net/f.cpp".f'}, {'entry': '["return 1;", "", "compile"]'},
                     {'entry': '["return 2;", "", "t"]', 'table': '"lib/net/f.cpp"."A::g"'},
                     {'entry': '["return 2;", "", "t"]', 'table': '"lib/net/f.cpp".g'},
                     {'entry': '["unlike = 1", "", "t"]', 'table': '"apps/other.py"'}):
            with self.subTest(fits):
                self.assertEqual(self.complaint(**fits), '')

    def test_an_entry_that_does_not_fit_is_named_with_its_remedy(self):
        of, within = '"lib/net/f.cpp"', 'net: lib/net/f.cpp'
        for complaint, wrong in (
                (f'{within}: it is off: the text stands 2 times in lib/net/f.cpp; it stands in line 6 (A::g), '
                 'line 10 (h): name the function or quote more', {'entry': '["return 2;", "", "t"]'}),
                (f'{within} h: it is off: the text stands 0 times in h of lib/net/f.cpp; it stands in line 2 (f): '
                 'name the function or quote more', {'table': f'{of}.h'}),
                (f'{within} B::f: it is off: the text stands 0 times in lib/net/f.cpp, which has no function B::f; '
                 'it stands in line 2 (f): name the function or quote more', {'table': f'{of}."B::f"'}),
                (f'{within}: it is off: the text stands 0 times in lib/net/f.cpp; apps/other.py has it: name that file',
                 {'entry': '["unlike = 1", "", "t"]'}),
                (f'{within}: it is off: the text stands 0 times in lib/net/f.cpp; no file has it: quote it anew',
                 {'entry': '["return 4;", "", "t"]'}),
                ('net: lib/f.cpp: it is off: there is no file lib/f.cpp; lib/net/f.cpp has it: name that file',
                 {'table': '"lib/f.cpp"'}),
                (f'{within}: it is off: it changes nothing', {'entry': '["return 1;", "return 1;", "t"]'}),
                (f'{within}: it is off: it is no ["original text", "replacement", "test", ...]',
                 {'entry': '["return 1;", "return 3;"]'})):
            with self.subTest(complaint=complaint):
                self.assertEqual(self.complaint(**wrong), f'mutants: {complaint}')

    def test_all_entries_that_do_not_fit_are_named(self):
        complaints = self.complaint(entry='["x", "", "t"]\n"it is odd" = ["y", "", "t"]')
        self.assertEqual([line.split(': ')[3] for line in complaints.splitlines()], ['it is off', 'it is odd'])


class Switches(unittest.TestCase):
    """Faults of functions in one build."""

    SOURCE = ('int f(int a) {\n    return a + 1;\n}\n\nconstexpr int t[] = {1};\n\n'
              'struct A {\n    int f() { return 5; }\n};\nint main(int n, char**) { return n < 2 ? f(0) : A{}.f(); }\n')

    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.root / 'lib').mkdir()
        self.file = self.root / 'lib/f.cpp'
        self.file.write_text(self.SOURCE, encoding='utf-8')

    def switches(self, *faults):
        mutants = [mutant_places.Mutant('', 'lib/f.cpp', self.SOURCE.index(original), original, replacement, ('f',),
                                        False) for original, replacement in faults]
        return mutant_switches.Switches(mutants, mutant_places.Sources(self.root))

    def compile(self):
        return subprocess.run(['g++', '-std=c++20', '-I', '.', '-o', 'f', 'lib/f.cpp'], cwd=self.root,
                              capture_output=True, text=True, check=False).stderr

    def result(self, number='', *arguments):
        return subprocess.run([self.root / 'f', *arguments], env={mutant_switches.VARIABLE: number},
                              check=False).returncode

    def test_a_number_chooses_the_fault(self):
        switches = self.switches(('a + 1', 'a + 2'), ('{1}', '{2}'), ('a + 1', 'a + 3'), ('return 5', 'return 6'))
        self.assertEqual([number for number, _ in switches.mutants()], [1, 3, 4])
        switches.write(self.root)
        self.assertEqual(self.compile(), '')
        self.assertEqual([self.result(number) for number in ('', '1', '2', '3')], [1, 2, 1, 3])
        self.assertEqual([self.result(number, 'A') for number in ('', '4')], [5, 6])
        switches.take_out(self.root)
        self.assertEqual(self.file.read_text(encoding='utf-8'), self.SOURCE)
        self.assertFalse((self.root / mutant_switches.HEADER).exists())

    def test_a_fault_outside_the_body_has_no_switch(self):
        self.assertEqual(self.switches(('int a)', 'long a)'), ('int f() { return', 'long f() { return')).mutants(), [])

    def test_what_the_compiler_refuses_has_no_switch(self):
        switches = self.switches(('a + 1', 'a +'), ('return a', 'return b'))
        switches.write(self.root)
        self.assertEqual(switches.drop_refused('somewhere else: error'), 0)
        self.assertEqual(switches.drop_refused(self.compile()), 1)
        self.assertEqual(switches.mutants(), [])
        switches.write(self.root)
        self.assertEqual(self.compile(), '')


class Commits(unittest.TestCase):
    BODY = 'Why, and how it was checked.\n'

    def test_bad_messages_are_complained_of(self):
        for subject, body, changed, complaint in (
                ('wait for the peer', self.BODY, 20, '`area: verb object`'),
                ('Lib/net: wait for the peer', self.BODY, 20, '`area: verb object`'),
                ('lib/net:wait for the peer', self.BODY, 20, '`area: verb object`'),
                ('lib/net and fs: wait', self.BODY, 20, '`area: verb object`'),
                *((f'lib/net: {word} waits', self.BODY, 20, f'"{word}"') for word in (
                    'who', 'whoever', 'what', 'whom', 'whose', 'those')),
                ('lib/net: ' + 'x' * 64, self.BODY, 20, '73 columns'),
                ('lib/net: wait for the peer', '\n', 11, '11 changed lines')):
            with self.subTest(subject=subject, changed=changed):
                self.assertIn(complaint, ' '.join(commits.complaints(subject, body, changed)))

    def test_good_messages_pass(self):
        for subject, body, changed in (('lib/net: wait for the peer', self.BODY, 2000),
                                       ('.ci, tests/lint, scripts/*.py: wait', self.BODY, 20),
                                       ('README, fs: tell what a shard is', self.BODY, 20),
                                       ('lib/net: ' + 'x' * 63, '', 10)):
            with self.subTest(subject):
                self.assertEqual(list(commits.complaints(subject, body, changed)), [])

    @unittest.skipUnless(shutil.which('git'), 'no git')
    def test_commits_after_the_last_change_of_the_rules_are_judged(self):
        root, clones = (pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) for _ in range(2))
        environment = {name: value for name, value in os.environ.items() if not name.startswith('GIT_')}

        def git(*arguments):
            subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'commit.gpgsign=false',
                            *arguments], cwd=root, env=environment, check=True, capture_output=True)

        def commit(message, path, text):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding='utf-8')
            git('add', '.')
            git('commit', '-q', '-m', message)

        self.assertIsNone(commits.findings(root))
        git('init', '-q')
        self.assertIsNone(commits.findings(root))
        commit('Old', 'a', '')
        self.assertIsNone(commits.findings(root))
        commit('Rules', commits.OWN_PATH, '1')
        self.assertEqual(commits.findings(root), [])
        commit('net: change ten lines', 'a', 'a\n' * 10)
        commit('docs: change eleven lines', 'a.md', 'a\n' * 11)
        commit('net: change eleven lines', 'a', 'a\n' * 21)
        (finding,) = commits.findings(root)
        self.assertIn('net: change eleven lines: 11 changed lines', finding)
        self.assertEqual(len(commits.findings(root, 'HEAD~1..HEAD')), 1)
        self.assertIsNone(commits.findings(root, 'nothing..HEAD'))
        for depth, count in (1, 0), (2, 1), (9, 1):
            with self.subTest(depth=depth):
                clone = clones / str(depth)
                git('clone', '-q', '--depth', str(depth), f'file://{root}', clone)
                self.assertEqual(len(commits.findings(clone)), count)
        commit('Rules', commits.OWN_PATH, '2')
        self.assertEqual(commits.findings(root), [])


class MutantRuns(unittest.TestCase):
    """A test that was run leaves no process, whether it ends or not, and in any process group, session or with any
    parent of its children."""

    FORKS = ('import os, sys, time\n'
             'def leave():\n'
             '    os.setsid()\n'
             '    os.fork() == 0 or os._exit(0)\n'
             'for way in lambda: None, lambda: os.setpgid(0, 0), os.setsid, leave:\n'
             '    if os.fork() == 0:\n'
             '        way()\n'
             '        open(sys.argv[1], "a").write(str(os.getpid()) + "\\n")\n'
             '        time.sleep(1000)\n'
             'open(sys.argv[1], "a").close()\n'
             'while len(open(sys.argv[1]).readlines()) < 4:\n'
             '    time.sleep(0.01)\n'
             'time.sleep(float(sys.argv[2]))\n'
             'sys.exit(7)\n')

    def children_of(self, seconds, sleeps):
        """Returns the exit code of a test with four children, and the children that are alive after it."""
        file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / 'children'
        code = mutant_runs.exit_code([sys.executable, '-c', self.FORKS, file, str(sleeps)], seconds)
        children = file.read_text(encoding='utf-8').split() if file.exists() else []
        return code, len(children), [child for child in children if self.is_alive(child)]

    @staticmethod
    def is_alive(process):
        try:
            with open(f'/proc/{process}/stat', encoding='utf-8') as file:
                return file.read().rsplit(')', 1)[1].split()[0] not in 'ZX'
        except OSError:
            return False

    def test_one_that_ends_leaves_no_children(self):
        self.assertEqual(self.children_of(None, 0), (7, 4, []))

    def test_one_that_does_not_end_is_ended_with_its_children(self):
        for seconds in (2, 8, 32):  # a busy machine may not reach the forks before
            code, children, alive = self.children_of(seconds, 1000)
            self.assertIsNone(code)
            self.assertEqual(alive, [])
            if children == 4:
                return
        self.fail('no child was ever forked')

    def test_one_that_a_signal_ends_has_its_number(self):
        self.assertEqual(mutant_runs.exit_code(['sh', '-c', 'kill -9 $$'], None), -9)

    def test_a_command_that_is_not_there_fails(self):
        self.assertEqual(mutant_runs.exit_code([str(self.__class__)], None), 127)

    def test_a_run_that_is_interrupted_leaves_nothing(self):
        file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / 'children'
        run = subprocess.Popen([sys.executable, mutant_runs.__file__, 'ever', sys.executable, '-c', self.FORKS, file,
                                '1000'])
        while not file.exists() or len(file.read_text(encoding='utf-8').split()) < 4:
            self.assertIsNone(run.poll())
            time.sleep(0.01)
        run.terminate()
        run.wait()
        self.assertEqual([child for child in file.read_text(encoding='utf-8').split() if self.is_alive(child)], [])


unittest.main(argv=sys.argv[:1])
