#!/usr/bin/env python3
"""Errors of other file systems of this kind, odd names, and damaged stores, with cairn-fsd, cairn-fs and libcairnfs as
users run them.

    fs_faults_test.py CAIRN_FSD CAIRN_FS FS_CALLER
"""
import errno
import os
import shutil
import signal
import stat
import sys
import time
import unittest

from fs_programs import Folder, FsCase

FsCase.programs = Folder(*sys.argv[1:4])
CHUNK = 64 << 10


class Peers(FsCase):
    """FINCHFS and CHFS were seen to fail at each of these; see DESIGN.md."""

    def each_size(self, test):
        for shards in (1, 2, 4):
            with self.subTest(shards=shards):
                daemon = self.daemon(shards, '32M')
                try:
                    test(daemon, self.caller(daemon))
                    self.assert_sound(daemon)
                finally:
                    daemon.end()
                    for store in daemon.stores():
                        os.remove(store)

    def test_files_are_renamed_from_any_shard_to_any_other(self):
        def test(daemon, caller):
            for number in range(12):
                data = os.urandom(3 * CHUNK + number)
                caller.write_all(f'/a{number}', data)
                caller.call('rename', f'/a{number}', f'/b{number}')
                self.fails(errno.ENOENT, caller.stat, f'/a{number}')
                self.assertEqual(caller.read_all(f'/b{number}'), data)
                caller.call('mkdir', f'/d{number}', 0o755)
                caller.write_all(f'/d{number}/inner', b'inner')
                caller.call('rename', f'/d{number}', f'/e{number}')
                self.assertEqual(caller.read_all(f'/e{number}/inner'), b'inner')
            code, _, err = daemon.tool('mv', '/b1', '/tool')
            self.assertEqual((code, err), (0, ''))
            self.assertEqual(caller.stat('/tool')[4], 3 * CHUNK + 1)
        self.each_size(test)

    def test_a_directory_with_names_is_not_removed(self):
        def test(daemon, caller):
            for number in range(8):
                caller.call('mkdir', f'/d{number}', 0o755)
                caller.write_all(f'/d{number}/file{number}', b'x')
                self.fails(errno.ENOTEMPTY, caller.call, 'rmdir', f'/d{number}')
                self.assertEqual(caller.read_all(f'/d{number}/file{number}'), b'x')
                caller.call('unlink', f'/d{number}/file{number}')
                caller.call('rmdir', f'/d{number}')
            self.assertEqual(caller.list('/'), [])
            self.assertIsNone(daemon.process.poll())
        self.each_size(test)

    def test_flags_of_open_are_obeyed(self):
        def test(_, caller):
            caller.write_all('/file', b'0123456789')
            self.fails(errno.EEXIST, caller.open, '/file', os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            self.assertEqual(caller.stat('/file')[4], 10)
            caller.call('close', caller.open('/file', os.O_WRONLY | os.O_TRUNC))
            self.assertEqual(caller.stat('/file')[4], 0)
            file = caller.open('/file', os.O_WRONLY | os.O_APPEND)
            caller.pwrite(file, 0, b'one')
            caller.pwrite(file, 0, b'two')
            caller.call('close', file)
            self.assertEqual(caller.read_all('/file'), b'onetwo')
        self.each_size(test)

    def test_space_comes_back(self):
        def test(daemon, caller):
            before = caller.statfs()[1]
            for number in range(6):
                caller.write_all(f'/file{number}', os.urandom(20 * CHUNK))
            self.assertLessEqual(caller.statfs()[1], before - 6 * 20 * CHUNK)
            for number in range(6):
                caller.call('unlink', f'/file{number}')
            kept = 2 << 20  # the log may be longer for some time
            self.await_that('the space is free', lambda: caller.statfs()[1] > before - kept * daemon.shards)
            caller.write_all('/open', os.urandom(20 * CHUNK))
            file = caller.open('/open', os.O_RDONLY)
            caller.call('unlink', '/open')
            self.assertEqual(len(caller.pread(file, 0, 21 * CHUNK)), 20 * CHUNK)
            self.assertLessEqual(caller.statfs()[1], before - 20 * CHUNK)
            caller.call('close', file)
            self.await_that('the space is free', lambda: caller.statfs()[1] > before - kept * daemon.shards)
        self.each_size(test)

    def test_df_tells_what_there_is(self):
        def test(daemon, caller):
            free = caller.statfs()[1]
            caller.write_all('/file', os.urandom(64 * CHUNK))
            used = free - caller.statfs()[1]
            self.assertGreaterEqual(used, 64 * CHUNK)
            self.assertLess(used, 64 * CHUNK + (2 << 20))
            code, out, _ = daemon.tool('df')
            blocks, in_use, left, _, files = out.splitlines()[1].split()
            self.assertEqual((code, int(files)), (0, 2))
            self.assertEqual(int(blocks), int(in_use) + int(left))
            self.assertAlmostEqual(int(blocks) << 10, daemon.shards * (32 << 20), delta=daemon.shards << 20)
        self.each_size(test)

    def test_attributes_and_links(self):
        def test(_, caller):
            caller.write_all('/file', b'x')
            caller.call('chmod', '/file', 0o4751)
            self.assertEqual(stat.S_IMODE(caller.stat('/file')[0]), 0o4751)
            if os.getuid() == 0:
                caller.call('chown', '/file', 7, 8)
                self.assertEqual(caller.stat('/file')[2:4], [7, 8])
            else:
                self.fails(errno.EPERM, caller.call, 'chown', '/file', 7, 8)
                self.assertEqual(caller.stat('/file')[2:4], [os.getuid(), os.getgid()])
            caller.call('utimens', '/file', 123, 456)
            self.assertEqual(caller.stat('/file')[5], 456 * 10**9 + 5)
            for number in range(5):
                caller.call('link', '/file', f'/link{number}')
            self.assertEqual(caller.stat('/link4')[1], 6)
            for number in range(5):
                caller.call('unlink', f'/link{number}')
            self.assertEqual(caller.stat('/file')[1], 1)
            for number in range(4):
                caller.call('symlink', '/file', f'/symbolic{number}')
                self.assertEqual(caller.readlink(f'/symbolic{number}'), b'/file')
                self.assertTrue(stat.S_ISLNK(caller.stat(f'/symbolic{number}', 'lstat')[0]))
                self.assertEqual(caller.read_all(f'/symbolic{number}'), b'x')
            self.fails(errno.ELOOP, caller.open, '/symbolic0', os.O_RDONLY | os.O_NOFOLLOW)
            caller.call('mkdir', '/directory', 0o755)
            self.fails(errno.EPERM, caller.call, 'link', '/directory', '/again')
            self.fails(errno.EINVAL, caller.call, 'rename', '/directory', '/directory/inner')
        self.each_size(test)


class Names(FsCase):
    def test_any_bytes_up_to_255_are_a_name(self):
        daemon = self.daemon(4, '16M')
        caller = self.caller(daemon)
        names = [b'-1', b'-9223372036854775808', b'+1', b' 1', b'99999999999999999999', b'\xff\xfe\x80', b'a\nb',
                 b'...', b'..a', b'\xc3', b'%41', b'cairn:', '\u00e4\U0001f41f'.encode()]
        names += [b'n' * length for length in (63, 64, 65, 100, 254, 255)] + [b'7' * 255, b'\x80' * 255]
        for number, name in enumerate(names):
            caller.write_all(b'/' + name, name + b'%d' % number)
        self.assertEqual(sorted(caller.list('/')), sorted(names))
        for number, name in enumerate(names):
            self.assertEqual(caller.read_all(b'/' + name), name + b'%d' % number)
            caller.call('rename', b'/' + name, b'/' + name[:254] + b'~')
            caller.call('rename', b'/' + name[:254] + b'~', b'/' + name)
            self.assertEqual(caller.read_all(b'//./' + name), name + b'%d' % number)
        self.assert_sound(daemon)
        daemon.kill()
        daemon.start()
        self.assertEqual(sorted(caller.list('/')), sorted(names))
        for name in names:
            caller.call('unlink', b'/' + name)
        self.assertEqual(caller.list('/'), [])

    def test_what_is_no_name_is_refused(self):
        daemon = self.daemon(2, '16M')
        caller = self.caller(daemon)
        for call in (lambda path: caller.open(path, os.O_CREAT | os.O_WRONLY), caller.stat,
                     lambda path: caller.call('mkdir', path, 0o755), lambda path: caller.call('unlink', path),
                     lambda path: caller.call('symlink', '/', path)):
            self.fails(errno.ENAMETOOLONG, call, b'/' + b'n' * 256)
            self.fails(errno.ENAMETOOLONG, call, b'/' + b'n' * 300 + b'/x')
            self.fails(errno.ENAMETOOLONG, call, b'/x' * 2048)
            self.fails(errno.ENOENT, call, b'/none/x')
        self.fails(errno.ENOENT, caller.stat, '')
        caller.call('mkdir', '/a', 0o755)
        caller.call('mkdir', '/a/b', 0o755)
        caller.write_all('/a/b/../file', b'up')
        self.assertEqual(caller.read_all('/a/file'), b'up')
        self.assertEqual(caller.read_all('/../../a/./b/.././/file'), b'up')
        self.fails(errno.ENOTDIR, caller.stat, '/a/file/..')
        self.fails(errno.ENOTDIR, caller.stat, '/a/file/x')
        self.fails(errno.ENOENT, caller.stat, '/a/none/../file')
        for name in ('.', '..'):
            with self.assertRaises(OSError):
                caller.call('rmdir', f'/a/b/{name}')
            with self.assertRaises(OSError):
                caller.call('rename', f'/a/b/{name}', '/c')
            self.fails(errno.EEXIST, caller.call, 'mkdir', f'/a/b/{name}', 0o755)
        self.assertEqual(caller.list('/a/b'), [])
        self.assert_sound(daemon)

    def test_offsets_beyond_what_there_is(self):
        daemon = self.daemon(2, '16M')
        caller = self.caller(daemon)
        file = caller.open('/file', os.O_CREAT | os.O_RDWR)
        self.fails(errno.EINVAL, caller.pread, file, -1, 1)
        self.fails(errno.EINVAL, caller.pwrite, file, -1, b'x')
        self.fails(errno.EFBIG, caller.pwrite, file, 2**63 - 1, b'x')
        self.assertEqual(caller.pread(file, 2**63 - 1, 1), b'')
        last = CHUNK * 2**32 - 1
        self.assertEqual(caller.pwrite(file, last, b'xy'), 1)
        self.assertEqual(caller.stat('/file')[4], last + 1)
        self.assertEqual(caller.pread(file, last - 1, 5), b'\0x')
        self.assert_sound(daemon)


class GoneDaemon(FsCase):
    def test_readers_are_told_in_time(self):
        daemon = self.daemon(2, '16M')
        caller = self.caller(daemon, timeout_ms=500)
        caller.write_all('/file', b'x' * 4 * CHUNK)
        file = caller.open('/file', os.O_RDONLY)
        daemon.kill()
        for call, arguments in ((caller.pread, (file, 0, CHUNK)), (caller.stat, ('/file',)), (caller.list, ('/',))):
            began = time.monotonic()
            self.fails(errno.EIO, call, *arguments)
            self.assertLess(time.monotonic() - began, 5)
        began = time.monotonic()
        code, _, err = daemon.tool('--timeout', '0.5', 'cat', '/file')
        self.assertEqual(code, 1)
        self.assertIn('start cairn-fsd', err)
        self.assertLess(time.monotonic() - began, 5)
        daemon.start()
        self.assertEqual(caller.pread(file, 0, 5 * CHUNK), b'x' * 4 * CHUNK)


class Damage(FsCase):
    def flip(self, daemon, pattern):
        """Flips a byte of the block that begins with these bytes."""
        found = 0
        for store in daemon.stores():
            with open(store, 'r+b') as file:
                data = file.read()
                at = data.find(pattern)
                while at >= 0:
                    if at % 4096 == 0:
                        file.seek(at + 100)
                        file.write(bytes([data[at + 100] ^ 1]))
                        found += 1
                    at = data.find(pattern, at + 1)
        return found

    def test_a_damaged_block_is_refused_and_named(self):
        for shards in (1, 2):
            with self.subTest(shards=shards):
                daemon = self.daemon(shards, '16M')
                caller = self.caller(daemon)
                caller.call('mkdir', '/deep', 0o755)
                blocks = [b'block%d' % number + os.urandom(4090) for number in range(40)]
                data = b''.join(block[:4096] for block in blocks)
                caller.write_all('/deep/a\nfile', data)
                caller.write_all('/sound', os.urandom(5 * CHUNK))
                caller.end()
                daemon.stop()
                self.assertEqual(self.flip(daemon, data[20 * 4096:20 * 4096 + 64]), 1)
                daemon.start()
                caller = self.caller(daemon)
                file = caller.open('/deep/a\nfile', os.O_RDWR)
                self.assertEqual(caller.pread(file, 0, CHUNK), data[:CHUNK])
                self.fails(errno.EIO, caller.pread, file, 20 * 4096 + 50, 100)
                self.assertEqual(caller.pread(file, 21 * 4096, 4096), data[21 * 4096:22 * 4096])
                code, out, err = daemon.tool('scrub')
                self.assertEqual((code, err), (1, ''))
                self.assertEqual(out.splitlines()[0], '/deep/a\\x0afile: 1 damaged blocks')
                self.assertIn('1 are damaged, of 1 files', out)
                self.assertEqual(daemon.tool('fsck')[0], 0)
                self.assertEqual(caller.pwrite(file, 20 * 4096, data[20 * 4096:21 * 4096]), 4096)  # this repairs it
                self.assertEqual(caller.pread(file, 0, len(data)), data)
                self.assert_sound(daemon)
                daemon.stop()
                for store in daemon.stores():
                    os.remove(store)

    def test_a_shard_of_an_older_day_is_found(self):
        files = 20  # directories' ids are random: 20 names are never all at one shard
        data = b'x' * 2 * CHUNK
        daemon = self.daemon(2, '16M')
        caller = self.caller(daemon)
        caller.call('mkdir', '/directory', 0o755)
        for number in range(files):
            caller.write_all(f'/directory/stays{number}', data)
            caller.write_all(f'/directory/goes{number}', data)
        caller.end()
        daemon.stop()
        shutil.copy(daemon.stores()[1], daemon.store + '.old')
        daemon.start()
        caller = self.caller(daemon)
        for number in range(files):
            caller.write_all(f'/directory/comes{number}', data)
            for way in 'abc':  # most of these names are at another shard than their file's home
                caller.call('link', f'/directory/comes{number}', f'/directory/{way * (number + 1)}')
            caller.call('unlink', f'/directory/goes{number}')
        caller.end()
        self.assert_sound(daemon)
        daemon.stop()
        shutil.copy(daemon.store + '.old', daemon.stores()[1])
        daemon.start()
        code, out, err = daemon.tool('fsck')
        self.assertEqual((code, err), (1, ''))
        file = r'(?m)^(/directory/\w+|file [0-9a-f-]+)'
        self.assertRegex(out, r'(?m)^/directory/\w+: names a file that is not there, [0-9a-f]{16}-[0-9a-f]{16}$')
        self.assertRegex(out, file + r': a file with \d names that counts \d$')
        self.assertRegex(out, file + r': chunk \d at shard \d \(16 blocks\) is of no file$')
        self.assertRegex(out, r'(?m)^\d+ files, \d+ names, \d+ chunks: \d+ things are wrong$')
        self.assertNotIn('stays', out)


class Standstills(FsCase):
    def test_a_client_that_gave_up_its_connection_keeps_its_files(self):
        daemon = self.daemon(4)
        caller = self.caller(daemon)
        file = caller.open('/file', os.O_CREAT | os.O_RDWR)
        data = os.urandom(4 * CHUNK)
        daemon.process.send_signal(signal.SIGSTOP)
        # The client has no channel yet to at least one shard, and waits two seconds for it.
        caller.send('pwrite', file, 0, len(data), data=data)
        time.sleep(2.5)
        daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(caller.receive('pwrite')[0], len(data))
        self.assertEqual(caller.pread(file, 0, len(data)), data)
        self.assertRegex(daemon.tool('status')[1], r'(?m)^ +fs_clients_returned +1\b')


class Strangers(FsCase):
    OWN, STRANGER = 65533, 65534

    def refused(self, daemon):
        for command in ('fsck', 'scrub'):
            code, out, err = daemon.tool(command, user=self.STRANGER)
            self.assertEqual((code, out), (1, ''))
            self.assertEqual(err, "cairn-fs: cannot ask shard '0': Operation not permitted\n")

    @unittest.skipIf(os.getuid() != 0, 'only root can become another user')
    def test_checks_are_for_superusers(self):
        daemon = self.daemon(1, '16M')
        os.chmod(self.folder, 0o755)
        self.refused(daemon)

    @unittest.skipIf(os.getuid() != 0, 'only root can become another user')
    def test_checks_are_for_whose_daemon_it_is(self):
        os.chmod(self.folder, 0o755)
        os.chown(self.folder, self.OWN, self.OWN)
        daemon = self.daemon(2, '16M', user=self.OWN)
        self.refused(daemon)
        for user in (self.OWN, None):
            self.assert_sound(daemon, user)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
