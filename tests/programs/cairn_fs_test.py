#!/usr/bin/env python3
"""cairn-fs and libcairnfs without a daemon: arguments, linked libraries, exported names.

    cairn_fs_test.py PROGRAM LIBRARY HEADER
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, LIBRARY, HEADER = map(os.path.abspath, sys.argv[1:4])


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run(*arguments):
    environment = {name: value for name, value in os.environ.items() if name != 'CAIRN_FS_SOCKET'}
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False, env=environment,
                          timeout=60)
    return done.returncode, done.stdout, done.stderr


class Linking(unittest.TestCase):
    def test_neither_needs_dpdk_or_mpi(self):
        for binary in (PROGRAM, LIBRARY):
            needed = re.findall(r'\(NEEDED\).*\[(.*)\]', output('readelf', '-d', binary))
            self.assertTrue(needed)
            self.assertEqual([name for name in needed if re.search(r'rte|dpdk|mpi|pmi|numa|ibverbs', name)], [])

    def test_the_library_shows_its_interfaces_alone(self):
        listed = output('nm', '-DC', '--defined-only', LIBRARY)
        names = [line.split(maxsplit=2)[2] for line in listed.splitlines()]
        self.assertIn('cairnfs_open_async', names)
        self.assertTrue(any(name.startswith('cairn::fs::Client::open(') for name in names))
        shown = re.compile(r'cairnfs_|cairn::assertion_failed|(.* for )?cairn::fs::'
                           r'(Buffer|Client|Directory|FramePool|Placement|SlotTable|may_wait|set_relaxed|wait_once)\b')
        self.assertEqual([name for name in names if not shown.match(name)], [])

    def test_c_programs_use_it(self):
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, 'program.c'), os.path.join(folder, 'program')
            with open(source, 'w', encoding='utf-8') as file:
                file.write(f'#include "{HEADER}"\n#include <errno.h>\n#include <string.h>\n'
                           'int main(void) {\n    char why[200];\n    cairnfs* fs = 0;\n'
                           '    int error = cairnfs_connect("/nowhere.sock", 100, &fs, why, sizeof(why));\n'
                           '    return error == -ECONNREFUSED && strstr(why, "/nowhere.sock") ? 0 : 1;\n}\n')
            sanitized = ['-fsanitize=address'] if 'libasan' in output('readelf', '-d', LIBRARY) else []
            output('cc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-D_GNU_SOURCE', *sanitized, source, LIBRARY, '-o',
                   program)
            subprocess.run([program], check=True, env={**os.environ, 'LD_LIBRARY_PATH': os.path.dirname(LIBRARY)})


class Arguments(unittest.TestCase):
    def test_wrong_ones_are_named_with_a_remedy(self):
        for arguments, named in (([], 'subcommand'), (['lss'], "'lss'"), (['ls', '--odd'], '--odd'),
                                 (['mkdir'], 'paths'), (['cp', 'one'], 'paths'), (['chmod', '9', '/x'], "'9'"),
                                 (['truncate', '/x'], '--size'), (['truncate', '-s', 'big', '/x'], 'big'),
                                 (['--timeout', '0', 'ls'], '--timeout')):
            status, out, err = run(*arguments)
            self.assertEqual((status, out), (2, ''), arguments)
            self.assertRegex(err, r'\Acairn-fs: .*\n\Z')
            self.assertIn(named, err)
            self.assertIn('--help', err)

    def test_a_missing_daemon_is_named(self):
        status, _, err = run('--socket', '/nowhere.sock', 'ls')
        self.assertEqual(status, 1)
        self.assertRegex(err, r"\Acairn-fs: .*'/nowhere\.sock'.*start cairn-fsd.*\n\Z")

    def test_help_lists_the_commands(self):
        status, out, _ = run('--help')
        self.assertEqual(status, 0)
        for command in ('ls', 'cat', 'cp', 'stat', 'df', 'status', 'mkdir', 'rm', 'mv', 'ln', 'chmod', 'touch',
                        'truncate', 'fsck', 'scrub'):
            self.assertRegex(out, rf'(?m)^  {command} ')


unittest.main(argv=sys.argv[:1])
