#!/usr/bin/env python3
"""A file system of several daemons, over sockets or memif, each with clients of its own.

    fs_nodes_test.py CAIRN_FSD CAIRN_FS [TEST...]
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../support'))
import machine  # noqa: E402
from fs_programs import Folder  # noqa: E402

PROGRAMS = Folder(*sys.argv[1:3], '')
CPUS = ','.join(map(str, machine.cpus()))


class Sockets:
    """Addresses of this machine."""

    def __init__(self, folder, nodes):
        self.hosts = [f'127.{os.getpid() % 250 + 1}.{os.getpid() // 250 % 250}.{host + 1}' for host in range(nodes)]

    def arguments(self, node, shards):
        return ['--port', f'uring:{self.hosts[node]}']


class Memif:
    """A link between two processes. DPDK's client end connects only once, so node 0, which makes the socket, starts
    first and stays."""

    def __init__(self, folder, nodes):
        self.folder, self.lives = folder, 0
        self.hosts = [f'10.77.0.{host + 1}' for host in range(nodes)]

    def arguments(self, node, shards):
        self.lives += 1
        name = os.path.basename(self.folder)
        return [f'--lcores=(0-{shards - 1})@({CPUS})', f'--file-prefix={name}-{self.lives}', '--no-huge', '-m', '256',
                '--no-pci', '--no-telemetry',
                f'--vdev=net_memif0,role={"client" if node else "server"},socket={self.folder}/memif.sock,'
                'socket-abstract=no,rsize=9,bsize=4288', '--', '--ip', self.hosts[node]]


class Node:
    """A daemon that can be killed and started again."""

    def __init__(self, case, number):
        self.case, self.number, self.process = case, number, None
        self.socket = os.path.join(case.folder, f'n{number}.sock')

    def log(self):
        with open(os.path.join(self.case.folder, f'log{self.number}'), encoding='utf-8') as file:
            return file.read()

    def start(self, *more, key=None, store='store'):
        network, folder = self.case.network, self.case.folder
        with open(os.path.join(folder, f'log{self.number}'), 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                [PROGRAMS.fsd, *network.arguments(self.number, self.case.shards), '--nodes', ','.join(network.hosts),
                 '--daemons-per-node', str(self.case.shards), '--key-file', key or self.case.key, '--shm-prefix',
                 self.socket.removesuffix('.sock'), '--data-path', os.path.join(folder, f'{store}{self.number}'),
                 '--capacity', '128M', '--stats', '1', *more],
                stdout=log, stderr=log, env={**os.environ, 'RUNTIME_DIRECTORY': folder})
        self.case.addCleanup(self.process.wait)
        self.case.addCleanup(self.process.kill)
        self.await_log('ready on')

    def await_log(self, words, seconds=20):
        end = time.monotonic() + seconds
        while words not in self.log():
            if self.process.poll() is not None and 'ready on' not in self.log():
                self.case.fail(self.log())
            self.case.assertLess(time.monotonic(), end, f'no "{words}": {self.log()}')
            time.sleep(0.05)

    def await_line(self, words):
        """Returns the last line that has these words; a line comes in pieces."""
        self.await_log(words)
        for _ in range(400):
            lines = [line for line in self.log().split('\n')[:-1] if words in line]
            if lines:
                return lines[-1]
            time.sleep(0.05)
        return self.case.fail(f'no line "{words}": {self.log()}')

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        return self.process.wait(timeout=20)

    def fs(self, *arguments, fails=False):
        done = subprocess.run([PROGRAMS.tool, '--socket', self.socket, *arguments], capture_output=True, text=True,
                              timeout=60, check=False)
        self.case.assertEqual(done.returncode != 0, fails, f'{arguments}: {done.stdout}{done.stderr}')
        return done.stderr if fails else done.stdout

    def read(self, path):
        return subprocess.run([PROGRAMS.tool, '--socket', self.socket, 'cat', path], capture_output=True, timeout=60,
                              check=True).stdout

    def peers(self):
        """Returns how many connections to other nodes' shards it has."""
        counts = {name: re.findall(rf' fs_peers_{name} (\d+)', self.log()) for name in ('found', 'lost')}
        return int(([0] + counts['found'])[-1]) - int(([0] + counts['lost'])[-1])


class NodesCase(unittest.TestCase):
    network_kind, many, shards = Sockets, 2, 1

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix='cairn-nodes-'))
        self.network = self.network_kind(self.folder, self.many)
        self.nodes = [Node(self, number) for number in range(self.many)]
        self.key = self.key_file('key')

    def key_file(self, name):
        path = os.path.join(self.folder, name)
        with open(path, 'wb') as file:
            file.write(os.urandom(32))
        os.chmod(path, 0o600)
        return path

    def start_all(self, *more):
        for node in self.nodes:
            node.start(*more)
        self.await_all_found()

    def await_all_found(self):
        """Waits until all shards have found each other: before that, calls that need two shards fail."""
        wanted = self.shards ** 2 * (self.many - 1)
        end = time.monotonic() + 30
        while any(node.peers() != wanted for node in self.nodes):
            self.assertLess(time.monotonic(), end, [node.log() for node in self.nodes])
            time.sleep(0.1)

    def assert_sound(self):
        for command, words in (('fsck', 'nothing is wrong'), ('scrub', 'nothing is damaged')):
            self.assertIn(words, self.nodes[-1].fs(command))

    def all_see_what_one_makes(self):
        self.start_all()
        names = [f'name{i}' for i in range(12)]
        for i, name in enumerate(names):
            self.nodes[i % self.many].fs('mkdir' if i % 3 == 0 else 'touch', f'/{name}')
        for node in self.nodes:
            self.assertEqual(node.fs('ls', '/').split(), sorted(names))
        bytes_made = os.urandom(20_000_000)
        source, back = (os.path.join(self.folder, name) for name in ('source', 'back'))
        with open(source, 'wb') as file:
            file.write(bytes_made)
        for node in self.nodes:
            other, path = self.nodes[(node.number + 1) % self.many], f'/long{node.number}'
            node.fs('cp', source, f'cairn:{path}')
            other.fs('cp', f'cairn:{path}', back)
            with open(back, 'rb') as file:
                self.assertEqual(file.read(), bytes_made)
            other.fs('mv', path, '/name0/moved')
            node.fs('rm', '/name0/moved')
        self.assert_sound()

    def killed_ones_lose_nothing(self, mortal):
        """Data written by any client is there for any client, after each of these nodes has been killed during its
        work."""
        self.start_all()
        written = {}
        for number in mortal:
            killed = self.nodes[number]
            for node in self.nodes:
                path, data = f'/kept{number}.{node.number}', os.urandom(3_000_000 + 7 * number)
                source = os.path.join(self.folder, 'source')
                with open(source, 'wb') as file:
                    file.write(data)
                node.fs('cp', source, f'cairn:{path}')
                written[path] = data
            work = [subprocess.Popen([PROGRAMS.tool, '--socket', node.socket, 'bench', 'small', '--files', '20000'],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for node in self.nodes]
            for each in work:
                self.addCleanup(each.wait)
                self.addCleanup(each.kill)
            time.sleep(0.5)
            killed.kill()
            killed.start()
            for each in work:
                each.kill()
            self.await_all_found()
            for node in self.nodes:
                for path, data in written.items():
                    self.assertEqual(node.read(path), data, path)
        self.assertIn('nothing is damaged', self.nodes[0].fs('scrub'))

    def many_calls_at_once(self):
        """Makes far more calls than a connection between two shards has room for."""
        self.start_all()
        runs = [subprocess.Popen([PROGRAMS.tool, '--socket', node.socket, 'bench', what, '--files', '2000', '--size',
                                  '16M', '--in-flight', '64'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for what in ('md', 'small', 'hard') for node in self.nodes]
        for run in runs:
            self.addCleanup(run.kill)
            _, said = run.communicate(timeout=100)
            self.assertEqual(run.returncode, 0, said)
        self.assert_sound()

    def all_end(self):
        for node in self.nodes:
            self.assertEqual(node.kill(signal.SIGTERM), 0, node.log())


class TwoNodes(NodesCase):
    def test_what_one_makes_the_other_sees(self):
        self.all_see_what_one_makes()
        self.all_end()

    def test_the_other_one_reads_and_writes_a_clients_own_buffers(self):
        self.start_all()
        for node in self.nodes:
            for what in ('easy', 'hard'):
                node.fs('bench', what, '--size', '16M', '--segment-buffers')

    def test_bench_works_elsewhere(self):
        self.start_all()
        near, far = self.nodes
        for what in ('md', 'easy'):
            near.fs('bench', what, '--elsewhere', '--files', '500', '--size', '8M')
        self.assertIn('choose easy', near.fs('bench', 'hard', '--elsewhere', fails=True))
        line = near.await_line(' fs_clients_left 2 ')
        counts = dict(re.findall(r' (fs_calls(?:_forwarded)?) (\d+)', line))
        self.assertGreater(int(counts['fs_calls_forwarded']), 500 * 6)
        self.assertLess(int(counts.get('fs_calls', 0)), 500)
        self.assertNotIn('fs_calls_forwarded', far.log())

    def test_a_daemon_that_is_killed_comes_back(self):
        self.start_all()
        for i in range(8):
            self.nodes[0].fs('touch', f'/name{i}')
        for node, other in (self.nodes[::-1], self.nodes):
            node.kill()
            began = time.monotonic()
            self.assertIn('Input/output error', other.fs('ls', '/', fails=True))
            self.assertLess(time.monotonic() - began, 10)
            node.start()
            self.assertEqual(len(other.fs('ls', '/').split()), 8)

    def test_another_key_is_refused(self):
        first, second = self.nodes
        first.start()
        second.start(key=self.key_file('other'), store='other')
        second.await_log('did not prove the cluster\'s key')
        second.await_log('fs_peers_refused')
        first.await_log('start all daemons with the same --key-file')
        self.assertNotIn('fs_peers_found', first.log() + second.log())
        second.kill()
        second.start('--chunk-size', '256K', store='small')
        for node in self.nodes:
            node.await_log('chunk size: ')
        second.kill()
        second.start()
        first.fs('ls', '/')

    def test_what_is_no_packet_ends_nothing(self):
        self.start_all()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for i in range(2000):
                stranger.sendto(os.urandom(i % 1400), (self.network.hosts[i % 2], 4791))
        for node in self.nodes:
            node.fs('touch', f'/name{node.number}')
            self.assertIsNone(node.process.poll())
        self.assertEqual(self.nodes[0].fs('ls', '/').split(), ['name0', 'name1'])


class TwoNodesOfTwoShards(NodesCase):
    shards = 2

    def test_what_one_makes_the_other_sees(self):
        self.all_see_what_one_makes()
        self.all_end()

    def test_many_calls_at_once(self):
        self.many_calls_at_once()

    def test_daemons_that_are_killed_lose_nothing(self):
        self.killed_ones_lose_nothing([0, 1])


class ThreeNodes(NodesCase):
    many = 3

    def test_what_one_makes_the_others_see(self):
        self.all_see_what_one_makes()
        self.all_end()

    def test_daemons_that_are_killed_lose_nothing(self):
        self.killed_ones_lose_nothing([0, 1, 2])


class OverMemif(NodesCase):
    network_kind = Memif

    def test_what_one_makes_the_other_sees(self):
        self.all_see_what_one_makes()
        self.all_end()

    def test_many_calls_at_once(self):
        self.many_calls_at_once()

    def test_a_daemon_that_is_killed_loses_nothing(self):
        self.killed_ones_lose_nothing([1, 1])


class TwoShardsOverMemif(NodesCase):
    network_kind, shards = Memif, 2

    def test_what_one_makes_the_other_sees(self):
        self.all_see_what_one_makes()
        self.all_end()


def can_run():
    """Returns whether there are sockets with this machine's own addresses, and io_uring."""
    with tempfile.TemporaryDirectory() as folder:
        host = Sockets(folder, 1).hosts[0]
        probe = subprocess.Popen([PROGRAMS.fsd, '--port', f'uring:{host}', '--shm-prefix', os.path.join(folder, 'p'),
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
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
