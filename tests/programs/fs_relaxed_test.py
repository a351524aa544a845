#!/usr/bin/env python3
"""Clients that report sizes to files' homes later, next to a client that does not.

    fs_relaxed_test.py CAIRN_FSD CAIRN_FS FS_CALLER
"""
import os
import random
import sys
import time
import unittest

from fs_programs import Caller, FsCase, Folder

CHUNK = 64 << 10
FLAGS = os.O_CREAT | os.O_RDWR


class Relaxed(FsCase):
    def setUp(self):
        super().setUp()
        self.served = self.daemon(shards=4)
        self.strict = self.caller(self.served)

    def relaxed(self):
        return self.caller(self.served, CAIRN_FS_RELAXED='1')

    def size(self, path):
        return self.strict.stat(path)[4]

    def test_a_size_comes_home_within_a_second_or_so(self):
        client = self.relaxed()
        file = client.open('/late', FLAGS)
        client.pwrite(file, CHUNK, b'elsewhere')
        began = time.monotonic()
        self.await_that('the size', lambda: self.size('/late') == CHUNK + 9)
        self.assertGreater(time.monotonic() - began, 0.1, 'it was not told at once')
        self.assertEqual(self.strict.read_all('/late')[CHUNK:], b'elsewhere')

    def test_what_makes_a_home_know(self):
        client = self.relaxed()
        for number, tell in enumerate((lambda file, _: client.call('fsync', file),
                                       lambda file, _: client.call('close', file),
                                       lambda _, path: client.stat(path),
                                       lambda file, _: client.stat(file, 'fstat'),
                                       lambda file, _: client.pread(file, 0, 1),
                                       lambda _, path: client.call('chmod', path, 0o600))):
            path = f'/told{number}'
            file = client.open(path, FLAGS)
            client.pwrite(file, 2 * CHUNK, b'xyz')
            self.assertEqual(self.size(path), 0)
            tell(file, path)
            self.assertEqual(self.size(path), 2 * CHUNK + 3)

    def test_those_that_append_do_not_overwrite_each_other(self):
        clients = [self.relaxed() for _ in range(3)]
        files = [client.open('/log', FLAGS | os.O_APPEND) for client in clients]
        lines = [bytes([97 + number]) * 30_000 for number in range(3)]
        for _ in range(8):
            for client, file, line in zip(clients, files, lines):
                client.send('pwrite', file, 0, len(line), data=line)
            for client in clients:
                self.assertEqual(client.receive('pwrite')[0], 30_000)
        data = self.strict.read_all('/log')
        pieces = [data[at:at + 30_000] for at in range(0, len(data), 30_000)]
        self.assertEqual(sorted(pieces), sorted(lines * 8))

    def test_a_killed_client_leaves_no_hole_in_what_it_has_written(self):
        chance = random.Random(7)
        for round_ in range(8):
            path = f'/killed{round_}'
            client = Caller(self.served, CAIRN_FS_RELAXED='1')
            file = client.open(path, FLAGS)
            written = 0
            for _ in range(chance.randrange(5, 60)):
                piece = bytes([1 + written % 255]) * chance.randrange(1, 3 * CHUNK)
                written += client.pwrite(file, written, piece)
            if round_ % 2 == 0:
                client.send('pwrite', file, written, CHUNK, data=b'z' * CHUNK)
            client.kill()
            data = self.strict.read_all(path)
            self.assertLessEqual(len(data), written + CHUNK)
            self.assertEqual(data[:written].find(b'\0'), -1, 'of what was written')
        wrong = self.served.tool('fsck')[1].splitlines()[:-1]
        self.assertEqual([line for line in wrong if not line.endswith('lies beyond the end')], [])


if __name__ == '__main__':
    Relaxed.programs = Folder(*sys.argv[1:4])
    unittest.main(argv=sys.argv[:1])
