#!/usr/bin/env python3
"""A file system of two daemons over sockets, each with clients of its own.

    fs_nodes_test.py CAIRN_FSD CAIRN_FS
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

FSD, FS = (os.path.abspath(path) for path in sys.argv[1:3])
HOSTS = [f'127.{os.getpid() % 250 + 1}.{os.getpid() // 250 % 250}.{host}' for host in (1, 2)]


class Nodes(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.daemons = {}
        self.key = self.key_file('key')

    def key_file(self, name):
        path = os.path.join(self.folder, name)
        with open(path, 'wb') as file:
            file.write(os.urandom(32))
        os.chmod(path, 0o600)
        return path

    def log(self, node):
        with open(os.path.join(self.folder, f'log{node}'), encoding='utf-8') as file:
            return file.read()

    def start(self, node, *more, key=None, store='store'):
        with open(os.path.join(self.folder, f'log{node}'), 'w', encoding='utf-8') as log:
            daemon = subprocess.Popen(
                [FSD, '--port', f'uring:{HOSTS[node]}', '--nodes', ','.join(HOSTS), '--key-file', key or self.key,
                 '--shm-prefix', os.path.join(self.folder, f'n{node}'), '--data-path',
                 os.path.join(self.folder, f'{store}{node}'), '--capacity', '128M', '--stats', '1', *more],
                stdout=log, stderr=log)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        self.daemons[node] = daemon
        self.await_log(node, 'ready on')

    def await_log(self, node, words, seconds=20):
        end = time.monotonic() + seconds
        while words not in self.log(node):
            if self.daemons[node].poll() is not None and 'ready on' not in self.log(node):
                self.fail(self.log(node))
            self.assertLess(time.monotonic(), end, f'no "{words}": {self.log(node)}')
            time.sleep(0.05)

    def kill(self, node, how=signal.SIGKILL):
        self.daemons[node].send_signal(how)
        self.daemons[node].wait(timeout=20)

    def fs(self, node, *arguments, fails=False):
        done = subprocess.run([FS, '--socket', os.path.join(self.folder, f'n{node}.sock'), *arguments],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode != 0, fails, f'{arguments}: {done.stderr}')
        return done.stderr if fails else done.stdout

    def start_both(self):
        self.start(0)
        self.start(1)
        self.fs(0, 'ls', '/')

    def test_what_one_makes_the_other_sees(self):
        self.start_both()
        names = [f'name{i}' for i in range(12)]
        for i, name in enumerate(names):
            self.fs(i % 2, 'mkdir' if i % 3 == 0 else 'touch', f'/{name}')
        for node in (0, 1):
            self.assertEqual(self.fs(node, 'ls', '/').split(), sorted(names))
        bytes_made = os.urandom(20_000_000)
        source, back = (os.path.join(self.folder, name) for name in ('source', 'back'))
        with open(source, 'wb') as file:
            file.write(bytes_made)
        for node in (0, 1):
            self.fs(node, 'cp', source, f'cairn:/long{node}')
            self.fs(1 - node, 'cp', f'cairn:/long{node}', back)
            with open(back, 'rb') as file:
                self.assertEqual(file.read(), bytes_made)
            self.fs(1 - node, 'mv', f'/long{node}', f'/name0/moved{node}')
            self.fs(node, 'rm', f'/name0/moved{node}')
        for node in (0, 1):
            self.kill(node, signal.SIGTERM)
            self.assertEqual(self.daemons[node].returncode, 0)

    def test_the_other_one_reads_and_writes_a_clients_own_buffers(self):
        self.start_both()
        for node in (0, 1):
            for what in ('easy', 'hard'):
                self.fs(node, 'bench', what, '--size', '16M', '--segment-buffers')

    def test_a_daemon_that_is_killed_comes_back(self):
        self.start_both()
        for i in range(8):
            self.fs(0, 'touch', f'/name{i}')
        for node in (1, 0):
            self.kill(node)
            began = time.monotonic()
            self.assertIn('Input/output error', self.fs(1 - node, 'ls', '/', fails=True))
            self.assertLess(time.monotonic() - began, 10)
            self.start(node)
            self.assertEqual(len(self.fs(1 - node, 'ls', '/').split()), 8)

    def test_another_key_is_refused(self):
        self.start(0)
        self.start(1, key=self.key_file('other'), store='other')
        self.await_log(1, 'did not prove the cluster\'s key')
        self.await_log(1, 'fs_peers_refused')
        self.await_log(0, 'start all daemons with the same --key-file')
        self.assertNotIn('fs_peers_found', self.log(0) + self.log(1))
        self.kill(1)
        self.start(1, '--chunk-size', '256K', store='small')
        for node in (0, 1):
            self.await_log(node, 'chunk size: ')
        self.kill(1)
        self.start(1)
        self.fs(0, 'ls', '/')

    def test_what_is_no_packet_ends_nothing(self):
        self.start_both()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for i in range(2000):
                stranger.sendto(os.urandom(i % 1400), (HOSTS[i % 2], 4791))
        for node in (0, 1):
            self.fs(node, 'touch', f'/name{node}')
            self.assertIsNone(self.daemons[node].poll())
        self.assertEqual(self.fs(0, 'ls', '/').split(), ['name0', 'name1'])


def can_run():
    """Sockets of this machine's own addresses, with io_uring."""
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, 'key')
        with open(key, 'wb') as file:
            file.write(os.urandom(32))
        os.chmod(key, 0o600)
        probe = subprocess.Popen([FSD, '--port', f'uring:{HOSTS[0]}', '--shm-prefix', os.path.join(folder, 'p'),
                                  '--capacity', '32M'], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in probe.stdout:
            if line.startswith('ready on'):
                probe.terminate()
        _, said = probe.communicate()
        return probe.returncode == 0, said


if __name__ == '__main__':
    able, why = can_run()
    if not able and 'io_uring' in why:
        print(why)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
