#!/usr/bin/env python3
"""rdma-core's own tests of devices (Debian's python3-pyverbs) on ours.

    dropin_conformance_test.py CAIRN_RUN [--full | --newer LIBIBVERBS]
        --full: all of them, not some seconds of them
        --newer: all of Debian 13's, in the folder where scripts/deps newer has put a Debian 13

No test fails. conformance_skips.toml lists each skipped test, with the reason.
"""
import fnmatch
import glob
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

CAIRN_RUN = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
FULL = '--full' in sys.argv[2:]
NEWER = os.path.abspath(sys.argv[3]) if '--newer' in sys.argv[2:3] else None
ROOT = '/var/cache/cairn/debian-13' if NEWER else ''  # the same path as in scripts/deps
SUITE = f'{ROOT}/usr/share/doc/rdma-core/tests'
PYTHON = '/usr/bin/python3'  # the Python that has the module pyverbs
ADDRESS = '10.99.7.1'
SOME = tuple(f'tests.test_{name}' for name in ('cq', 'device', 'mr', 'qpex', 'rdmacm'))
CHOSEN = () if FULL or NEWER else SOME  # (): all
LEAST = 150 if NEWER else 140 if FULL else 60  # tests that pass
SECONDS = 200
# The interface has only the device's address, which the suite uses for its tests of rdma_cm.
NAMESPACE = f'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && ip addr add {ADDRESS}/24 dev lo && exec "$@"'

# rdma-core 45 and later run this program to find a device's interface. The original asks the kernel.
RDMA = """#!/bin/sh
echo '[{"ifname": "cairn0", "port": 1, "netdev": "lo"}]'
"""
# Beneath cairn-run, whose view of devices the other root gets with /sys and /dev.
IN_ROOT = (f'for each in sys dev proc; do mount --rbind "/$each" "{ROOT}/$each" || exit; done; '
           f'mount --bind "$0" "{ROOT}/mnt" && exec chroot "{ROOT}" env PATH=/mnt/bin:/usr/bin:/usr/sbin '
           'LD_LIBRARY_PATH=/mnt/lib "$@"')


def unpack(folder):
    """Unpacks the tests. Debian compresses long files below /usr/share/doc."""
    os.mkdir(folder)
    for path in glob.glob(f'{SUITE}/*'):
        name = os.path.basename(path)
        with (gzip.open if name.endswith('.gz') else open)(path, 'rb') as packed:
            with open(f'{folder}/{name.removesuffix(".gz")}', 'wb') as file:
                shutil.copyfileobj(packed, file)


def why_it_may_be_skipped(test, reason):
    with open(f'{HERE}/conformance_skips.toml', 'rb') as file:
        for entry in tomllib.load(file)['skip']:
            if fnmatch.fnmatchcase(test, entry['tests']) and re.search(entry['says'], reason):
                return entry['because']
    return None


class Conformance(unittest.TestCase):
    maxDiff = None

    def bring_libraries(self, folder):
        os.mkdir(f'{folder}/lib')
        for name in ('libibverbs.so.1', 'librdmacm.so.1', 'cairn-broker'):
            shutil.copy(f'{os.path.dirname(NEWER)}/{name}', f'{folder}/lib/')
        os.mkdir(f'{folder}/bin')
        with open(f'{folder}/bin/rdma', 'w', encoding='ascii') as file:
            file.write(RDMA)
        os.chmod(file.name, 0o755)

    def outcomes(self):
        """Returns the outcome of each test, by its name."""
        with tempfile.TemporaryDirectory() as folder:
            unpack(f'{folder}/tests')
            shutil.copy(f'{HERE}/conformance_runner.py', folder)
            at = '/mnt' if NEWER else folder
            program = [PYTHON, f'{at}/conformance_runner.py', f'{at}/tests', f'{at}/outcomes', *CHOSEN]
            if NEWER:
                program = ['sh', '-c', IN_ROOT, folder, *program]
                self.bring_libraries(folder)
            command = ['unshare', '-Urmn', 'sh', '-c', NAMESPACE, 'sh', CAIRN_RUN, '--devices', f'cairn0={ADDRESS}',
                       *program]
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            self.assertEqual(done.returncode, 0, done.stderr[-4000:])
            with open(f'{folder}/outcomes', encoding='utf-8') as file:
                return json.load(file)

    def test_devices_behave_as_rdma_core_expects(self):
        if NEWER and not os.path.exists(f'{SUITE}/run_tests.py'):
            self.skipTest(f'{ROOT} has no Debian 13 with python3-pyverbs (scripts/deps newer, as root)')
        if not os.path.exists(f'{SUITE}/run_tests.py') or shutil.which('ip') is None:
            self.skipTest('python3-pyverbs or iproute2 is not installed (scripts/deps tests)')
        if subprocess.run(['unshare', '-Urn', 'true'], capture_output=True, check=False).returncode != 0:
            self.skipTest('network namespaces are refused')
        all_of_them = self.outcomes()
        failed = {name: text for name, (kind, text) in all_of_them.items() if kind == 'failed'}
        self.assertEqual(failed, {})
        skipped = {name: text for name, (kind, text) in all_of_them.items() if kind == 'skipped'}
        unknown = {name: text for name, text in skipped.items() if why_it_may_be_skipped(name, text) is None}
        self.assertEqual(unknown, {}, 'not in conformance_skips.toml')
        passed = len(all_of_them) - len(skipped)
        print(f'{passed} passed, {len(skipped)} skipped', file=sys.stderr)
        self.assertGreaterEqual(passed, LEAST)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *(name for name in sys.argv[4 if NEWER else 2:] if name != '--full')])
