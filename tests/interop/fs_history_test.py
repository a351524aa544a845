#!/usr/bin/env python3
"""Tests of the judge of dax.py: the histories that it accepts, and those that it refuses."""
import os
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../programs'))

from fs_history import CHUNK, Tree, Writer, is_between  # noqa: E402


class Caller:
    """A file system whose power fails at the call of a given number, which is then done or not."""

    def __init__(self, calls, is_done=False):
        self.tree, self.files, self.left, self.is_done = Tree(), {}, calls, is_done
        self.calls = {'open': self.open, 'pwrite': self.pwrite, 'rename': self.tree.rename, 'unlink': self.unlink,
                      'truncate': self.tree.cut, 'link': self.link, 'mkdir': self.mkdir, 'rmdir': self.rmdir,
                      'close': self.files.pop}

    def call(self, name, *words, data=b''):
        words = [word.removeprefix('/w').lstrip('/') if isinstance(word, str) else word for word in words]
        self.left -= 1
        if self.left > 0 or self.is_done:
            result = self.calls[name](*words, **({'data': data} if data else {}))
        if self.left <= 0:
            raise ConnectionResetError
        return result

    def open(self, path, flags, _):
        if flags & os.O_CREAT:
            self.tree.make(path)
        self.files[self.left] = (path, flags)
        return self.left

    def pwrite(self, file, offset, length, data):
        path, flags = self.files[file]
        self.tree.write(path, len(self.tree.data(path)) if flags & os.O_APPEND else offset, data)
        return length

    def unlink(self, path):
        self.tree.names.pop(path)

    def link(self, path, to):
        self.tree.names[to] = self.tree.names[path]

    def mkdir(self, path, _):
        self.tree.directories.add(path)

    def rmdir(self, path):
        self.tree.directories.remove(path)

    def list(self, path):
        inner = path.removeprefix('/w').lstrip('/')
        names = [name.rpartition('/') for name in self.tree.names] + [('', '', name) for name in self.tree.directories]
        return [name.encode() for directory, _, name in names if directory == inner and name]

    def stat(self, path):
        return [0, self.tree.links(path.removeprefix('/w/'))]

    def read_all(self, path):
        return self.tree.data(path.removeprefix('/w/'))


def cut_off(calls, is_done=False):
    """Returns a writer whose connection has ended."""
    caller = Caller(calls, is_done)
    caller.tree.directories.add('')
    writer = Writer(caller, '/w', f'seed {calls}', Tree())
    writer.run()
    return writer, caller


class Judge(unittest.TestCase):
    def test_what_was_answered_and_the_last_call_done_or_not(self):
        for calls in range(1, 200, 3):
            for is_done in (False, True):
                writer, caller = cut_off(calls, is_done)
                self.assertTrue(writer.is_cut_off(), writer.failure)
                self.assertEqual(writer.judge(caller).seen(), caller.tree.seen())

    def test_a_call_that_was_answered_and_is_not_there(self):
        for calls in range(30, 200, 10):
            writer, earlier = cut_off(calls)[0], cut_off(calls - 12)[1]
            self.assertNotEqual(earlier.tree.seen(), writer.tree.seen())
            with self.assertRaises(AssertionError):
                writer.judge(earlier)

    def test_any_other_byte_name_or_link(self):
        writer, caller = cut_off(150)
        self.assertGreater(len(caller.tree.names), 2)
        path = max(caller.tree.names, key=lambda name: len(caller.tree.data(name)))
        data = bytearray(caller.tree.data(path))
        for change in (lambda tree: tree.write(path, len(data) - 1, bytes([data[-1] ^ 1])),
                       lambda tree: tree.cut(path, len(data) - 1), lambda tree: tree.cut(path, len(data) + 1),
                       lambda tree: tree.make('f9'), lambda tree: tree.names.pop(path),
                       lambda tree: tree.names.update({'f9': tree.names[path]}),
                       lambda tree: tree.directories.add('d9')):
            caller = cut_off(150)[1]
            change(caller.tree)
            with self.assertRaises(AssertionError):
                writer.judge(caller)

    def test_of_a_write_each_chunk_is_old_or_new(self):
        old, new = b'o' * (2 * CHUNK + 5), b'n' * (4 * CHUNK + 7)
        for data in (old, new, new[:CHUNK] + old[CHUNK:], old[:CHUNK] + new[CHUNK:2 * CHUNK] + old[2 * CHUNK:],
                     new[:3 * CHUNK], old[:2 * CHUNK] + old[2 * CHUNK:] + b'\0' * (CHUNK - 5)):
            self.assertTrue(is_between(data, old, new))
        for data in (b'', old[:-1], new[:-1], new[:3 * CHUNK + 1], new[:7] + old[7:],
                     old[:2 * CHUNK] + b'x' * CHUNK, new + b'\0'):
            self.assertFalse(is_between(data, old, new))

    def test_what_a_short_write_left_is_asked_for_again(self):
        for calls in range(20, 200, 20):
            whole = Caller.pwrite
            with unittest.mock.patch.object(Caller, 'pwrite', lambda self, file, offset, length, data: whole(
                    self, file, offset, min(length, CHUNK), data[:CHUNK])):
                writer, caller = cut_off(calls)
            self.assertTrue(writer.is_cut_off(), writer.failure)
            self.assertEqual(writer.judge(caller).seen(), caller.tree.seen())

    def test_a_failure_is_no_end_of_the_connection(self):
        writer = Writer(Caller(10), '/w', 'seed', Tree())
        writer.failure = AssertionError('wrote 3')
        self.assertFalse(writer.is_cut_off())


unittest.main(argv=sys.argv[:1])
