#!/usr/bin/env python3
"""Unmodified verbs programs with our libibverbs.so.1 in the place of the installed one: two processes, an address each.

    dropin_test.py LIBIBVERBS
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest

LIBRARY = os.path.abspath(sys.argv[1])
INSTALLED = '/usr/lib/x86_64-linux-gnu/libibverbs.so.1'
SERVER, CLIENT = '127.0.41.2', '127.0.41.3'
SECONDS = 60


def environment(devices):
    return {**os.environ, 'LD_LIBRARY_PATH': os.path.dirname(LIBRARY), 'CAIRN_DEVICES': devices}


class Ended(subprocess.Popen):
    """A program that has ended when its block is left, however that comes about."""

    def __init__(self, command, address):
        super().__init__(command, env=environment(f'cairn0={address}'), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)

    def __exit__(self, *why):
        self.kill()
        super().__exit__(*why)


def run(*command, devices=f'cairn0={SERVER}'):
    done = subprocess.run(command, env=environment(devices), capture_output=True, text=True, timeout=SECONDS,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def free_port():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return free.getsockname()[1]


def symbols(path):
    out = subprocess.run(['readelf', '-W', '--dyn-syms', path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {row[7] for row in rows if len(row) > 7 and '@' in row[7] and row[6] != 'UND'}


class DropIn(unittest.TestCase):
    def needs(self, program):
        if shutil.which(program) is None:
            self.skipTest(f'{program} is not installed (scripts/deps tests)')

    def listens(self, port, server):
        for _ in range(SECONDS * 50):
            with open('/proc/net/tcp', encoding='ascii') as table:
                if re.search(rf'^ *\d+: [0-9A-F]+:{port:04X} \S+ 0A', table.read(), re.M):
                    return
            with open('/proc/net/tcp6', encoding='ascii') as table:
                if re.search(rf'^ *\d+: [0-9A-F]+:{port:04X} \S+ 0A', table.read(), re.M):
                    return
            if server.poll() is not None:
                self.fail(server.communicate())
            time.sleep(0.02)
        self.fail('the server does not listen')

    def pair(self, program, *arguments):
        """Both ends are to succeed: one that talks to itself is no success."""
        self.needs(program)
        port = free_port()
        command = [program, '-p', str(port), *arguments]
        with Ended(command, SERVER) as server:
            self.listens(port, server)
            code, out, err = run(*command, '127.0.0.1', devices=f'cairn0={CLIENT}')
            self.assertEqual(code, 0, out + err)
            out, err = server.communicate(timeout=SECONDS)
            self.assertEqual(server.returncode, 0, out + err)


class Library(DropIn):
    def test_it_exports_what_the_installed_one_does(self):
        if not os.path.exists(INSTALLED):
            self.skipTest('libibverbs1 is not installed')
        self.assertEqual(symbols(LIBRARY), symbols(INSTALLED))

    def test_it_needs_glibc_and_isal_only(self):
        out = subprocess.run(['readelf', '-d', LIBRARY], capture_output=True, text=True, check=True).stdout
        needed = set(re.findall(r'NEEDED.*\[(.*)\]', out))
        self.assertLessEqual(needed, {'libc.so.6', 'ld-linux-x86-64.so.2', 'libisal.so.2', 'libm.so.6'})


class Devices(DropIn):
    def test_each_configured_address_is_a_device(self):
        self.needs('ibv_devices')
        code, out, err = run('ibv_devices', devices='left=10.9.8.7,right=2001:db8::1')
        self.assertEqual((code, err), (0, ''))
        self.assertRegex(out, r'left\s+00ca0afffe090807\n')
        self.assertRegex(out, r'right\s+0000000000000001\n')

    def test_a_wrong_configuration_is_explained_and_has_no_devices(self):
        self.needs('ibv_devices')
        code, out, err = run('ibv_devices', devices='cairn0=nowhere')
        self.assertEqual(code, 0)
        self.assertNotIn('cairn0', out)
        self.assertEqual(err.count('\n'), 1)
        self.assertIn("CAIRN_DEVICES: 'cairn0=nowhere' has no IP address", err)

    def test_a_device_tells_what_it_is(self):
        self.needs('ibv_devinfo')
        code, out, err = run('ibv_devinfo', '-v')
        self.assertEqual((code, err), (0, ''))
        for wanted in ('hca_id:\tcairn0', 'vendor_id:\t\t\t0xffffff', 'PORT_ACTIVE', 'link_layer:\t\tEthernet',
                       f'::ffff:{SERVER}, RoCE v2', 'fe80::ca:7fff:fe00:2902, RoCE v2'):
            self.assertIn(wanted, out)

    def test_an_address_that_is_taken_is_named(self):
        self.needs('ibv_devinfo')
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
            holder.bind((SERVER, 4791))
            code, out, err = run('ibv_devinfo')
        self.assertNotEqual(code, 0, out)
        self.assertRegex(err, rf'cannot bind UDP {re.escape(SERVER)} port 4791: .*; .*ss -lunp')


class Pingpongs(DropIn):
    def test_of_each_kind_polling_and_sleeping(self):
        for events in ((), ('-e',)):
            for kind in ('rc', 'uc', 'srq'):
                with self.subTest(kind=kind, events=events):
                    self.pair(f'ibv_{kind}_pingpong', '-g', '1', '-c', '-n', '300', *events)
            for kind in ('ud', 'xsrq'):
                with self.subTest(kind=kind, events=events):
                    self.pair(f'ibv_{kind}_pingpong', '-g', '1', '-n', '300', *events)

    def test_by_extended_queues(self):
        for option in ('-N', '-t'):
            with self.subTest(option=option):
                self.pair('ibv_rc_pingpong', '-g', '1', '-c', '-n', '300', option)

    def test_of_any_size_and_mtu(self):
        for size, mtu in ((1, 256), (4096, 1024), (1 << 20, 4096), (70001, 512)):
            with self.subTest(size=size, mtu=mtu):
                self.pair('ibv_rc_pingpong', '-g', '1', '-c', '-n', '20', '-s', str(size), '-m', str(mtu))

    def test_by_a_link_local_gid(self):
        self.pair('ibv_rc_pingpong', '-g', '0', '-c', '-n', '100')

    def test_a_peer_that_is_killed_is_an_error(self):
        self.needs('ibv_rc_pingpong')
        port = free_port()
        command = ['ibv_rc_pingpong', '-g', '1', '-p', str(port), '-n', '100000000']
        with Ended(command, SERVER) as server:
            self.listens(port, server)
            with Ended([*command, '127.0.0.1'], CLIENT) as client:
                time.sleep(0.5)
                self.assertIsNone(client.poll())
                server.kill()
                _, err = client.communicate(timeout=SECONDS)
                self.assertEqual(client.returncode, 1)
                self.assertIn('transport retry counter exceeded', err)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
