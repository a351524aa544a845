#!/usr/bin/env python3
"""Daemons and clients of a file system are killed again and again, at any time.

    fs_storm_test.py CAIRN_FSD CAIRN_FS FS_CALLER [TEST...]

$CAIRN_FS_SEED repeats the choices of a seed, as far as the machine's timing allows. $CAIRN_SOAK_MINUTES says how long
the test goes on.
"""
import errno
import os
import random
import sys
import threading
import time
import unittest

from fs_programs import Failed, Folder, FsCase

FsCase.programs = Folder(*sys.argv[1:4])
CHUNK = 64 << 10
MOST_BYTES = 5 * CHUNK
MOST_FILES = 12
SOAK_S = 60 * float(os.environ.get('CAIRN_SOAK_MINUTES', '0'))
SEED = int(os.environ.get('CAIRN_FS_SEED', time.time_ns() % 10**9))


class Content:
    """The content of a file, and how many names it has."""

    def __init__(self):
        self.data, self.links = bytearray(), 1

    def write(self, offset, data):
        self.data.extend(b'\0' * (offset + len(data) - len(self.data)))
        self.data[offset:offset + len(data)] = data

    def cut(self, size):
        self.data.extend(b'\0' * (size - len(self.data)))
        del self.data[size:]


class Writer(threading.Thread):
    """Works in a directory of its own. It knows the correct answer of each call and the resulting files. Each call is
    made once, whether the daemon lives or not."""

    def __init__(self, caller, root, seed):
        super().__init__(daemon=True)
        self.caller, self.root, self.random = caller, root, random.Random(seed)
        self.files, self.directories, self.stops = {}, {root, root + '/d'}, False
        self.calls, self.failure, self.last = 0, None, None
        caller.call('mkdir', root, 0o755)
        caller.call('mkdir', root + '/d', 0o755)

    def run(self):
        # After a restart, changes of directories wait two seconds for earlier answers to other shards.
        works = [self.write, self.write, self.append, self.cut, self.move, self.link, self.remove, self.look] * 12
        works += [self.make_directory] * 2 + [self.move_directory]
        try:
            while not self.stops:
                self.random.choice(works)()
                self.calls += 1
        except Exception as failure:
            self.failure = f'{self.last}: {failure!r}'

    def call(self, name, *words):
        self.last = (name, *words)
        return self.caller.call(name, *words)

    def new_path(self):
        return f'{self.random.choice(sorted(self.directories))}/{self.random.choice("fgh")}{self.random.randrange(6)}'

    def old_path(self):
        return self.random.choice(sorted(self.files)) if self.files else None

    def some_data(self):
        return self.random.randbytes(self.random.choice((1, 100, 4096, CHUNK, 2 * CHUNK + 17)))

    def write(self):
        path = self.new_path()
        is_new = path not in self.files
        if is_new and len(self.files) >= MOST_FILES:
            path, is_new = self.old_path(), False
        flags = os.O_WRONLY | (os.O_CREAT | os.O_EXCL if is_new else 0)
        self.last = ('open', path, flags)
        file = self.caller.open(path, flags)
        content = self.files.setdefault(path, Content())
        for _ in range(self.random.randrange(3)):
            data = self.some_data()
            offset = self.random.randrange(MOST_BYTES - len(data))
            self.last = ('pwrite', path, offset, len(data))
            assert self.caller.pwrite(file, offset, data) == len(data)
            content.write(offset, data)
        self.call('close', file)

    def append(self):
        path = self.old_path()
        if path is None or len(self.files[path].data) > MOST_BYTES:
            return
        file = self.caller.open(path, os.O_WRONLY | os.O_APPEND)
        data = self.some_data()
        self.last = ('append', path, len(data))
        assert self.caller.pwrite(file, 0, data) == len(data)
        self.files[path].write(len(self.files[path].data), data)
        self.call('close', file)

    def cut(self):
        path = self.old_path()
        if path is not None:
            size = self.random.randrange(MOST_BYTES)
            self.call('truncate', path, size)
            self.files[path].cut(size)

    def move(self):
        path, to = self.old_path(), self.new_path()
        if path is not None:
            self.call('rename', path, to)
            if self.files.get(to) is not self.files[path]:
                if to in self.files:
                    self.files[to].links -= 1
                self.files[to] = self.files.pop(path)

    def link(self):
        path, to = self.old_path(), self.new_path()
        if path is not None and to not in self.files:
            self.call('link', path, to)
            self.files[to] = self.files[path]
            self.files[to].links += 1

    def remove(self):
        path = self.old_path()
        if path is not None:
            self.call('unlink', path)
            self.files.pop(path).links -= 1

    def make_directory(self):
        path = f'{self.root}/d/sub{self.random.randrange(4)}'
        if path not in self.directories:
            self.call('mkdir', path, 0o755)
            self.directories.add(path)
        elif not any(file.startswith(path + '/') for file in self.files):
            self.call('rmdir', path)
            self.directories.remove(path)
        else:
            try:
                self.call('rmdir', path)
                raise AssertionError('a directory with files was removed')
            except Failed as failed:
                assert failed.errno == errno.ENOTEMPTY, failed

    def move_directory(self):
        old = f'{self.root}/d/sub{self.random.randrange(4)}'
        new = f'{self.random.choice((self.root, self.root + "/d"))}/sub{self.random.randrange(4)}'
        if old in self.directories and new not in self.directories:
            self.call('rename', old, new)
            self.directories.remove(old)
            self.directories.add(new)
            for path in [path for path in self.files if path.startswith(old + '/')]:
                self.files[new + path[len(old):]] = self.files.pop(path)

    def look(self):
        path = self.old_path()
        if path is not None:
            self.last = ('read', path)
            assert self.caller.read_all(path) == self.files[path].data, f'{path} has other bytes'

    def check(self, caller):
        """Checks that the directory has the effects of all answered calls, and nothing else."""
        for directory in self.directories:
            names = {path[len(directory) + 1:] for path in [*self.files, *self.directories]
                     if path.startswith(directory + '/') and '/' not in path[len(directory) + 1:]}
            found = {name.decode() for name in caller.list(directory)}
            assert found == names, f'{directory}: {found ^ names}'
        for path, content in self.files.items():
            assert caller.stat(path)[1] == content.links, f'{path}: links'
            assert caller.read_all(path) == content.data, f'{path} has other bytes'


class Storms(FsCase):
    def storm(self, shards, kills, seed):
        chance = random.Random(seed)
        daemon = self.daemon(shards, '256M')  # removed files stay for ten seconds after each start
        writers = [Writer(self.caller(daemon, timeout_ms=90000), f'/writer{number}', f'{seed} {number}')
                   for number in range(3)]
        for writer in writers:
            writer.start()
        until = time.monotonic() + SOAK_S / 3
        killed = 0
        while killed < kills or time.monotonic() < until:
            # On a busy machine clients come back late, and one that never started to work would time out. Changes of
            # directories, which wait longest, meet three kills at most.
            enough, calls = all if killed % 3 == 2 else any, [writer.calls for writer in writers]
            self.await_that('they work again', lambda: enough(
                writer.calls > before or writer.failure for writer, before in zip(writers, calls)))
            time.sleep(chance.random() ** 2 * 0.4)
            daemon.kill()
            killed += 1
            time.sleep(chance.random() ** 4 * 0.2)
            daemon.start()
        for writer in writers:
            writer.stops = True
        for writer in writers:
            writer.join(timeout=100)
            self.assertFalse(writer.is_alive(), f'it hangs: {writer.last}')
            self.assertIsNone(writer.failure)
        fresh = self.caller(daemon)
        for writer in writers:
            writer.check(fresh)
            writer.caller.end()
        self.assert_sound(daemon)
        print(f'{shards} shards, seed {seed}: {killed} kills, {sum(writer.calls for writer in writers)} calls')
        daemon.kill()
        daemon.start()
        for writer in writers:
            writer.check(fresh)
        self.assert_sound(daemon)

    def test_one_shard(self):
        self.storm(1, 10, SEED)

    def test_two_shards(self):
        self.storm(2, 10, SEED + 1)

    def test_four_shards(self):
        self.storm(4, 10, SEED + 2)


class DyingClients(FsCase):
    def test_they_leave_nothing(self):
        for shards in (1, 4):
            with self.subTest(shards=shards):
                self.killed_in_mid_write(shards, 12, SEED + shards)

    def assert_only_chunks_are_left(self, daemon):
        self.assertRegex(self.assert_sound_but_for_chunks(daemon), r'^1 files, 0 names, \d+ chunks: ')

    def killed_in_mid_write(self, shards, rounds, seed):
        chance = random.Random(seed)
        print(f'dying clients of {shards} shards: seed {seed}')
        daemon = self.daemon(shards, '32M')
        fresh = self.caller(daemon)
        fresh.write_all('/stays', b'stays' * CHUNK)
        self.assertEqual(len(fresh.list('/')), 1)
        free, descriptors = fresh.statfs()[1], daemon.descriptors()
        for number in range(rounds):
            dying = [self.caller(daemon) for _ in range(3)]
            for which, caller in enumerate(dying):
                path = f'/dying{number}.{which}'
                file = caller.open(path, os.O_CREAT | os.O_RDWR)
                if which == 1:
                    caller.call('unlink', path)
                caller.send('pwrite', file, chance.randrange(4) * CHUNK + 5, 30 * CHUNK, data=b'd' * 30 * CHUNK)
            time.sleep(chance.random() ** 2 * 0.03)
            for caller in dying:
                caller.kill()
            for which in (0, 2):
                fresh.call('unlink', f'/dying{number}.{which}')
        self.await_that('their descriptors are closed', lambda: daemon.descriptors() <= descriptors + 1)
        self.assertIsNone(daemon.process.poll())
        self.await_that('their space is free', lambda: fresh.statfs()[1] >= free - shards * (2 << 20), 20)
        self.assertEqual(fresh.read_all('/stays'), b'stays' * CHUNK)
        fresh.call('unlink', '/stays')
        self.assertEqual(fresh.list('/'), [])
        self.assert_only_chunks_are_left(daemon)
        fresh.end()
        self.await_that('no channel is left', lambda: not daemon.has_channels())
        daemon.kill()
        daemon.start()
        self.assert_only_chunks_are_left(daemon)
        daemon.end()
        for store in daemon.stores():
            os.remove(store)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
