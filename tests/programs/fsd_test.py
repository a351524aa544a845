#!/usr/bin/env python3
"""cairn-fsd as operators use it: output, exit codes, files, signals, restarts; and its clients' socket.

    fsd_test.py PROGRAM
"""
import contextlib
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from fs_programs import CHANNEL, Raw

PROGRAM = os.path.abspath(sys.argv[1])


class Fsd(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.store = os.path.join(self.folder, 'store')
        self.prefix = os.path.join(self.folder, 'fs')

    def spawn(self, *arguments):
        if '--shm-prefix' not in arguments:
            arguments = ('--shm-prefix', self.prefix, *arguments)
        program = subprocess.Popen([PROGRAM, *arguments], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def start(self, *arguments):
        """Returns the program, and its lines until it is ready."""
        program = self.spawn(*arguments)
        lines = []
        for line in program.stdout:
            lines.append(line.rstrip('\n'))
            if line.startswith('ready on '):
                return program, lines
        self.fail(program.stderr.read())

    def stop(self, program, how=signal.SIGTERM):
        program.send_signal(how)
        self.assertEqual(program.wait(timeout=20), 0 if how != signal.SIGKILL else -signal.SIGKILL)

    def refused(self, *arguments, words):
        """Checks that the program ends by itself with 2, and one line that has these words and a remedy."""
        program = self.spawn(*arguments)
        out, err = program.communicate(timeout=20)
        self.assertEqual((program.returncode, out), (2, ''))
        self.assertRegex(err, r'\Acairn-fsd: [^\n]+; [^\n]+\n\Z')
        for word in words:
            self.assertIn(word, err)

    def connect(self, number=0):
        client = Raw(self.prefix + '.sock', number)
        self.addCleanup(client.close)
        return client

    def connect_when_there_is_room(self):
        """Connects as soon as there is room. A gone client's descriptors are closed before its place is free."""
        for _ in range(1000):
            with contextlib.suppress(AssertionError):
                return self.connect()
            time.sleep(0.01)
        return self.connect()

    def test_a_store_is_made_served_and_opened_again(self):
        program, lines = self.start('--data-path', self.store, '--capacity', '64M')
        self.assertRegex(lines[0], r'^shard 0: 64 MiB in the file .*chunks of 1 MiB; durable by fsync; a new store$')
        self.assertEqual(lines[-1], f'ready on {self.prefix}.sock')
        self.assertEqual(stat.S_IMODE(os.stat(self.prefix + '.sock').st_mode), 0o666)
        self.stop(program)
        self.assertFalse(os.path.exists(self.prefix + '.sock'))
        program, lines = self.start('--data-path', self.store)
        self.assertRegex(lines[0], r'; opened in \d+\.\d ms: 1 files, 0 chunks$')
        self.stop(program, signal.SIGINT)

    def test_neither_path_is_memory(self):
        program, lines = self.start('--capacity', '64M', '--socket-mode', '600')
        self.assertIn('nothing survives the daemon', lines[0])
        self.assertEqual(stat.S_IMODE(os.stat(self.prefix + '.sock').st_mode), 0o600)
        self.stop(program)

    def test_fake_persistent_memory_is_named_so(self):
        self.refused('--pmem-path', self.store, '--capacity', '64M', words=['--allow-fake-pmem'])
        _, lines = self.start('--pmem-path', self.store, '--capacity', '64M', '--allow-fake-pmem')
        self.assertIn('durable when answered', lines[0])

    def test_a_daemon_that_was_killed_is_followed_by_the_next(self):
        arguments = ('--data-path', self.store, '--capacity', '64M')
        for _ in range(3):
            program, _ = self.start(*arguments)
            client = self.connect()
            client.channel_descriptors()
            self.stop(program, signal.SIGKILL)
            self.assertEqual(client.socket.recv(100), b'')
            self.assertTrue(os.path.exists(self.prefix + '.sock'))
        _, lines = self.start(*arguments)
        self.assertIn('opened in', lines[0])
        self.connect()

    def test_a_second_daemon_is_refused(self):
        program, _ = self.start('--data-path', self.store, '--capacity', '64M')
        self.refused('--data-path', self.store + '2', '--capacity', '64M',
                     words=[self.prefix + '.lock', str(program.pid)])
        self.assertFalse(os.path.exists(self.store + '2'))
        self.refused('--data-path', self.store, '--shm-prefix', self.prefix + '2', words=[self.store, 'in use'])
        self.connect()

    def test_wrong_arguments_end_with_2(self):
        self.refused('--capacity', '3M', words=['--capacity', '3M'])
        self.refused('--capacity', '64M', '--queue-depth', '65', words=['--queue-depth'])
        self.refused('--data-path', self.store, words=[self.store])  # absent, and without a length to make it
        self.refused('--shm-prefix', self.folder + '/absent/fs', words=[self.folder + '/absent', '--shm-prefix'])
        self.refused('--key-file', self.folder + '/absent', words=['key file'])
        self.refused('--unknown', words=['--unknown'])
        self.refused('--ip', '192.0.2.1', words=['--ip', '--port'])
        nodes = ('--nodes', '127.0.0.1,127.0.0.2', '--port', 'uring:127.0.0.1', '--key-file', self.store)
        self.refused(*nodes, '--node', '2', words=['--node 2', 'count from 0'])
        self.refused(*nodes, '--node', '-1', words=['--node'])
        self.refused(*nodes, '--node', '1', words=['--node 1', '127.0.0.2'])
        self.refused(*nodes[:4], words=['--nodes', '--key-file'])
        self.refused('--nodes', '127.0.0.1,host', *nodes[2:], words=["'host'"])
        self.refused(*nodes[:2], *nodes[4:], '--node', '0', words=['--nodes', '--port uring:ADDRESS'])
        self.start('--data-path', self.store, '--capacity', '16M')[0].kill()

    def test_another_shape_is_refused_and_foreign_content_stays(self):
        program, _ = self.start('--data-path', self.store, '--capacity', '16M', '--chunk-size', '64K')
        self.stop(program)
        self.refused('--data-path', self.store, '--chunk-size', '1M', words=['64 KiB', '1 MiB'])
        self.refused('--data-path', self.store, '--placement', 'koyama', words=['even', 'koyama'])
        foreign = os.path.join(self.folder, 'foreign')
        with open(foreign, 'wb') as file:
            file.write(b'not yours' * 1000)
            file.truncate(16 << 20)
        self.refused('--data-path', foreign, words=[foreign, '--format'])
        with open(foreign, 'rb') as file:
            self.assertEqual(file.read(9), b'not yours')
        _, lines = self.start('--data-path', foreign, '--format')
        self.assertIn('a new store', lines[0])

    def test_the_configuration_is_a_file_of_the_same_names(self):
        config = os.path.join(self.folder, 'fs.toml')
        with open(config, 'w', encoding='utf-8') as file:
            file.write(f'[fs]\ndata-path = "{self.store}"\ncapacity = "3M"\n')
        self.refused('--config', config, words=[config + ':3', 'capacity'])
        _, lines = self.start('--config', config, '--capacity', '16M')
        self.assertIn(self.store, lines[0])

    def test_each_shard_has_a_store_and_serves_channels(self):
        program, lines = self.start('--data-path', self.store, '--capacity', '16M', '--daemons-per-node', '2')
        self.assertEqual([line.split(':')[0] for line in lines[:2]], ['shard 0', 'shard 1'])
        client = self.connect()
        for shard in (0, 1, 1):
            for fd in client.channel_descriptors(shard):
                os.close(fd)
        self.stop(program)
        self.assertEqual(sorted(os.listdir(self.folder)), ['fs.lock', 'store.0', 'store.1'])
        self.refused('--data-path', self.store, '--daemons-per-node', '3', words=['--daemons-per-node 2'])

    def test_clients_come_and_go_and_leave_nothing(self):
        program, _ = self.start('--capacity', '64M', '--max-clients', '3', '--extra-buffer-size', '4K')

        def descriptors():
            return len(os.listdir(f'/proc/{program.pid}/fd'))
        most = descriptors() + 1  # a worker has one more from its first doorbell on
        for _ in range(20):
            clients = [self.connect_when_there_is_room() for _ in range(2)]
            for client in clients:
                for fd in client.channel_descriptors() + client.channel_descriptors():
                    os.close(fd)
            clients[0].send(CHANNEL, struct.pack('<H', 0))  # the client has gone before the answer
            for client in clients:
                client.close()
            for _ in range(1000):
                if descriptors() <= most:
                    break
                time.sleep(0.01)
        self.assertLessEqual(descriptors(), most)
        with open(f'/proc/{program.pid}/maps', encoding='utf-8') as maps:
            self.assertNotIn('cairn-channel', maps.read())
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
            stranger.settimeout(10)
            stranger.connect(self.prefix + '.sock')
            stranger.send(b'GET / HTTP/1.1')
            self.assertIn(b'no Hello', stranger.recv(65536))
            self.assertEqual(stranger.recv(100), b'')
        self.connect()
        self.assertIsNone(program.poll())

    def test_a_number_is_kept_over_a_restart(self):
        arguments = ('--data-path', self.store, '--capacity', '16M')
        program, _ = self.start(*arguments)
        number = self.connect().number
        self.stop(program, signal.SIGKILL)
        program, _ = self.start(*arguments)
        self.assertEqual(self.connect(number).number, number)
        self.stop(program)
        program, _ = self.start(*arguments, '--format')
        self.assertNotEqual(self.connect(number).number, number)  # the number belongs to another file system

    def test_an_idle_daemon_takes_no_cpu(self):
        program, _ = self.start('--capacity', '64M', '--daemons-per-node', '2', '--stats', '1')
        self.connect().channel_descriptors()

        def ticks():
            with open(f'/proc/{program.pid}/stat', encoding='utf-8') as file:
                return sum(map(int, file.read().rsplit(')', 1)[1].split()[11:13]))
        self.assertRegex(program.stdout.readline(), r'^clients \d')
        before = ticks()
        self.assertRegex(program.stdout.readline(), r'^clients 1 fs_clients_welcomed 1 fs_channels_made 1')
        self.assertLessEqual(ticks() - before, 3)  # of a hundred

    def test_a_port_gives_its_workers_to_the_shards(self):
        program, lines = self.start('--capacity', '64M', '--port', 'uring:127.0.0.1')
        self.assertTrue(lines[-1].startswith('ready on '))
        self.connect().channel_descriptors()
        self.stop(program)
        self.refused('--capacity', '64M', '--port', 'uring:not-an-address', words=['not-an-address'])


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
