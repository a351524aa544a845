"""Shared by tests of the file system's programs. A daemon can be killed and started again. Some clients do what a test
says; others send messages that the library would not send."""
import contextlib
import errno
import mmap
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
import urllib.parse

MAGIC, VERSION, HELLO, WELCOME, CHANNEL, REFUSAL = 0x73664363, 1, 1, 2, 3, 4
HEAD = struct.Struct('<IHH')
RESULT_S = 60  # how long a test waits for short operations


class Folder:
    """The folder of the programs under test."""

    def __init__(self, fsd, tool, caller):
        self.fsd, self.tool, self.caller = map(os.path.abspath, (fsd, tool, caller))


class Failed(OSError):
    """The error that the library returned."""


class Daemon:
    """cairn-fsd on stores of its own; it can be killed and started again."""

    def __init__(self, programs, folder, shards=1, capacity='64M', *more):
        self.programs, self.folder = programs, folder
        self.prefix = os.path.join(folder, 'fs')
        self.socket = self.prefix + '.sock'
        self.store = os.path.join(folder, 'store')
        self.arguments = [programs.fsd, '--pmem-path', self.store, '--allow-fake-pmem', '--capacity', capacity,
                          '--chunk-size', '64K', '--daemons-per-node', str(shards), '--shm-prefix', self.prefix, *more]
        self.shards, self.process, self.lines = shards, None, []
        self.user = None  # the user that starts it

    def stores(self):
        return [self.store] if self.shards == 1 else [f'{self.store}.{shard}' for shard in range(self.shards)]

    def start(self):
        self.process = subprocess.Popen(self.arguments, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        user=self.user)
        self.lines = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip('\n'))
            if line.startswith('ready on '):
                return self
        raise AssertionError(f'cairn-fsd: {self.process.stderr.read()}')

    def stop(self, how=signal.SIGTERM):
        """Stops the daemon. Returns its exit code."""
        self.process.send_signal(how)
        code = self.process.wait(timeout=RESULT_S)
        self.process.stdout.close()
        self.process.stderr.close()
        self.process = None
        return code

    def kill(self):
        assert self.stop(signal.SIGKILL) == -signal.SIGKILL

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process.stderr.close()

    def descriptors(self):
        return len(os.listdir(f'/proc/{self.process.pid}/fd'))

    def has_channels(self):
        with open(f'/proc/{self.process.pid}/maps', encoding='utf-8') as maps:
            return 'cairn-channel' in maps.read()

    def tool(self, *arguments, data=None, user=None):
        """Runs cairn-fs. Returns the exit code, its output, and its complaints."""
        done = subprocess.run([self.programs.tool, '--socket', self.socket, *arguments], input=data,
                              capture_output=True, check=False, timeout=RESULT_S, user=user)
        return done.returncode, done.stdout.decode(errors='surrogateescape'), done.stderr.decode()


class Caller:
    """A process that uses the library. A failed call raises Failed, with the errno."""

    def __init__(self, daemon, timeout_ms=30000, user=None, **environment):
        self.process = subprocess.Popen([daemon.programs.caller, daemon.socket, str(timeout_ms)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user,
                                        env={**os.environ, **environment})
        if self.process.stdout.readline() != b'ready\n':
            raise AssertionError('fs_caller cannot connect')

    def send(self, name, *words, data=b''):
        coded = [urllib.parse.quote_from_bytes(word) if isinstance(word, bytes) else
                 urllib.parse.quote(word) if isinstance(word, str) else str(word) for word in words]
        self.process.stdin.write(' '.join([name, *coded]).encode() + b'\n' + data)
        self.process.stdin.flush()

    def receive(self, name='', brings=False):
        line = self.process.stdout.readline().decode()
        if not line.endswith('\n'):
            raise AssertionError(f'fs_caller has ended in {name}')
        result, *words = line.split()
        if int(result) < 0:
            raise Failed(-int(result), f'{name}: {errno.errorcode.get(-int(result), result)}')
        if brings:
            return self.process.stdout.read(int(result))
        return (int(result), words)

    def call(self, name, *words, data=b''):
        self.send(name, *words, data=data)
        return self.receive(name)[0]

    def open(self, path, flags, mode=0o644):
        return self.call('open', path, flags, mode)

    def pread(self, file, offset, length):
        self.send('pread', file, offset, length)
        return self.receive('pread', brings=True)

    def pwrite(self, file, offset, data):
        return self.call('pwrite', file, offset, len(data), data=data)

    def stat(self, path, name='stat'):
        """Returns mode, links, uid, gid, size, time of the last change in ns."""
        self.send(name, path)
        return [int(word) for word in self.receive(name)[1]]

    def list(self, path):
        self.send('list', path)
        return [bytes.fromhex(word) for word in self.receive('list')[1]]

    def statfs(self):
        """Returns bytes, free bytes."""
        self.send('statfs')
        return [int(word) for word in self.receive('statfs')[1]]

    def readlink(self, path):
        self.send('readlink', path)
        return self.receive('readlink', brings=True)

    def read_all(self, path):
        file = self.open(path, os.O_RDONLY)
        data = self.pread(file, 0, self.stat(file, 'fstat')[4] + 1)
        self.call('close', file)
        return data

    def write_all(self, path, data, flags=os.O_CREAT | os.O_TRUNC):
        file = self.open(path, os.O_WRONLY | flags)
        assert self.pwrite(file, 0, data) == len(data)
        self.call('close', file)

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=RESULT_S)


class Raw:
    """Sends the messages of a client, and others, without the library."""

    def __init__(self, path, number=0):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.send(HELLO, struct.pack('<Q', number))
        kind, self.facts, _ = self.receive()
        assert kind == WELCOME, kind
        self.number = struct.unpack_from('<Q', self.facts)[0]

    def send(self, kind, body):
        self.socket.send(HEAD.pack(MAGIC, VERSION, kind) + body)

    def receive(self):
        """Returns the kind of the message, its body, and its descriptors; None if the daemon closed the connection."""
        packet, fds, _, _ = socket.recv_fds(self.socket, 65536, 4)
        if not packet:
            return None, b'', []
        magic, version, kind = HEAD.unpack_from(packet)
        assert (magic, version) == (MAGIC, VERSION)
        return kind, packet[HEAD.size:], fds

    def channel_descriptors(self, shard=0):
        self.send(CHANNEL, struct.pack('<H', shard))
        kind, _, fds = self.receive()
        assert kind == CHANNEL and len(fds) == 2
        return fds

    def channel(self, shard=0):
        """Returns the mapped segment and the doorbell's descriptor."""
        fds = self.channel_descriptors(shard)
        memory = mmap.mmap(fds[0], 0)
        os.close(fds[0])
        return memory, fds[1]

    def close(self):
        self.socket.close()


class FsCase(unittest.TestCase):
    """Ends the processes that it has started."""
    programs = None

    def setUp(self):
        where = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix='cairn-', dir=where))

    def daemon(self, shards=1, capacity='64M', *more, user=None):
        daemon = Daemon(self.programs, self.folder, shards, capacity, *more)
        daemon.user = user
        self.addCleanup(daemon.end)
        return daemon.start()

    def caller(self, daemon, **how):
        caller = Caller(daemon, **how)
        self.addCleanup(caller.kill)
        return caller

    def fails(self, number, call, *arguments):
        """Checks that the call fails with this errno."""
        with self.assertRaises(Failed) as failed:
            call(*arguments)
        self.assertEqual(errno.errorcode[failed.exception.errno], errno.errorcode[number])

    def await_that(self, what, is_so, seconds=RESULT_S):
        until = time.monotonic() + seconds
        while not is_so():
            self.assertLess(time.monotonic(), until, f'not in {seconds} s: {what}')
            time.sleep(0.01)

    def assert_sound(self, daemon, user=None):
        """Checks that neither fsck nor scrub finds anything."""
        for command, words in (('fsck', 'nothing is wrong'), ('scrub', 'nothing is damaged')):
            code, out, err = daemon.tool(command, user=user)
            self.assertEqual((code, err), (0, ''), out)
            self.assertIn(words, out)

    def assert_sound_but_for_chunks(self, daemon):
        """As assert_sound(), but ignores unreported chunks, which are looked for a minute later (fs/shard/sweeper.hpp).
        Returns fsck's last line."""
        _, out, err = daemon.tool('fsck')
        *findings, summary = out.splitlines()
        self.assertEqual(err, '')
        for finding in findings:
            self.assertRegex(finding, r'^file [0-9a-f-]+: chunk \d+ at shard \d \(\d+ blocks\) is of no file$')
        self.assertEqual(daemon.tool('scrub')[0], 0)
        return summary
