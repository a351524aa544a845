#!/usr/bin/env python3
"""Attacks on a daemon of the file system, by processes of its machine, while an honest client of another user works.

    fs_hostile_test.py CAIRN_FSD CAIRN_FS FS_CALLER FS_HOSTILE [TEST...]

Each attack must leave this true. The daemon lives. No honest call fails or hangs, and written data is there. No process
gets data that is not its own. The daemon's memory and descriptors do not grow with the attack. Its counters name the
reasons. When all attackers are gone, their space is free and fsck finds nothing. $CAIRN_SOAK_MINUTES makes the attacks
longer.
"""
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'programs'))

from fs_programs import Folder, FsCase  # noqa: E402

FsCase.programs = Folder(*sys.argv[1:4])
ATTACKER = os.path.abspath(sys.argv[4])
SECONDS = max(0.6, 60 * float(os.environ.get('CAIRN_SOAK_MINUTES', '0')) / 20)
SEED = int(os.environ.get('CAIRN_FS_SEED', time.time_ns() % 10**9))
MOST_MEMORY_KB = 16 * 1024
PATIENCE_MS = 10000  # of the honest client: a call that takes longer has failed
BLOCK, BLOCKS = 4096, 96
HONEST, OTHER = 20001, 20002  # two users
REASONS = {  # that the daemon's counters must name
    'silent': ['fs_refused_crowded'], 'stammer': ['fs_refused_nonsense'], 'unread': ['fs_refused_channels'],
    'hoard': ['fs_refused_share'], 'miscount': ['fs_refused_breach', 'fs_breaches', 'fs_malformed'],
    'scribble': ['fs_refused_breach'], 'scribble-requests': ['fs_malformed'],
    'forge': ['fs_malformed', 'fs_other_shard'],
}
MANY = 6  # attackers at once


class Honest(threading.Thread):
    """Writes into a file of its own, reads it back, and makes and removes names, until it is stopped."""

    def __init__(self, caller, seed):
        super().__init__(daemon=True)
        self.caller, self.random = caller, random.Random(seed)
        self.stops, self.failure, self.calls, self.longest_s = False, None, 0, 0
        caller.call('mkdir', '/honest', 0o700)
        self.file = caller.open('/honest/file', os.O_CREAT | os.O_RDWR, 0o600)
        self.content = bytearray(BLOCK * BLOCKS)
        self.timed(caller.pwrite, self.file, 0, bytes(self.content))

    def timed(self, call, *arguments):
        began = time.monotonic()
        result = call(*arguments)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        self.calls += 1
        return result

    def run(self):
        try:
            while not self.stops:
                self.work()
        except Exception as failure:
            self.failure = repr(failure)

    def work(self):
        at, length = self.random.randrange(BLOCK * (BLOCKS - 20)), self.random.randrange(1, BLOCK * 20)
        data = self.random.randbytes(length)
        assert self.timed(self.caller.pwrite, self.file, at, data) == length
        self.content[at:at + length] = data
        at = self.random.randrange(BLOCK * (BLOCKS - 20))
        assert self.timed(self.caller.pread, self.file, at, length) == self.content[at:at + length], 'other bytes'
        name = f'/honest/name{self.random.randrange(8)}'
        self.timed(self.caller.call, 'close', self.timed(self.caller.open, name, os.O_CREAT | os.O_RDWR))
        self.timed(self.caller.call, 'rename', name, name + '.new')
        self.timed(self.caller.call, 'unlink', name + '.new')


class Attacks(FsCase):
    @classmethod
    def setUpClass(cls):
        if os.getuid() != 0:
            raise unittest.SkipTest('only root can become other users')
        print(f'CAIRN_FS_SEED={SEED}')

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.server = self.daemon(2, '64M', '--extra-buffer-size', '64K')
        self.honest = Honest(self.caller(self.server, timeout_ms=PATIENCE_MS, user=HONEST), SEED)
        self.victim = re.search(r'Id: (\S+)', self.server.tool('stat', '/honest/file')[1]).group(1)
        self.free = self.honest.caller.statfs()[1]
        self.longest_newcomer_s = 0
        self.honest.start()

    def attacker(self, attack, user, seconds, number=0):
        words = ['--victim', self.victim] if user != 0 else []
        process = subprocess.Popen([ATTACKER, '--socket', self.server.socket, '--attack', attack, '--seconds',
                                    str(seconds), '--seed', str(SEED + number), *words], text=True, user=user,
                                   stdout=subprocess.PIPE, cwd='/')
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def result(self, process):
        out = process.communicate(timeout=SECONDS + 60)[0]
        self.assertEqual(process.returncode, 0)
        result = json.loads(out)
        self.assertEqual(result['leaks'], 0, result)
        return result

    def anonymous_kb(self):
        with open(f'/proc/{self.server.process.pid}/status', encoding='utf-8') as status:
            return int(re.search(r'RssAnon:\s+(\d+) kB', status.read()).group(1))

    def newcomers(self, attackers, user):
        """Checks that new clients of the honest user are served while the attackers are there. Only the superuser may
        take all places."""
        while any(attacker.poll() is None for attacker in attackers):
            began = time.monotonic()
            code, out, err = self.server.tool('stat', '/honest/file', user=HONEST)
            if user != 0 or '--max-clients' not in err:
                self.assertEqual((code, err), (0, ''), out)
            self.longest_newcomer_s = max(self.longest_newcomer_s, time.monotonic() - began)

    def settled(self, descriptors, what):
        """Waits until the honest client is the only one."""
        self.await_that(f'descriptors of {what} are closed', lambda: self.server.descriptors() <= descriptors)

    def attack(self, name, user=OTHER, many=1):
        """Returns the results of attackers that ran together. The first ones let buffers grow."""
        descriptors = self.server.descriptors() + 1  # a worker has one more from its first doorbell on
        for round_s in (SECONDS / 3, SECONDS):
            before_kb, calls = self.anonymous_kb(), self.honest.calls
            attackers = [self.attacker(name, user, round_s, number) for number in range(many)]
            self.newcomers(attackers, user)
            results = [self.result(attacker) for attacker in attackers]
            self.settled(descriptors, name)
        self.assertLess(self.anonymous_kb() - before_kb, MOST_MEMORY_KB, name)
        self.assertIsNone(self.server.process.poll(), name)
        self.assertIsNone(self.honest.failure, name)
        self.assertGreater(self.honest.calls, calls, name)
        told = self.server.tool('status')[1]
        for counter in REASONS.get(name, ()):
            self.assertRegex(told, rf'(?m)^  {counter} +\d', name)
        print(f'{name}: {results[-1]}, longest honest call '
              f'{self.honest.longest_s:.3f} s, newcomer {self.longest_newcomer_s:.3f} s')
        self.honest.longest_s = self.longest_newcomer_s = 0
        return results

    def end(self):
        """Checks that after all have gone their resources are free again, and the file system is sound."""
        self.honest.stops = True
        self.honest.join(timeout=60)
        self.assertFalse(self.honest.is_alive(), 'it hangs')
        self.assertIsNone(self.honest.failure)
        caller = self.honest.caller
        self.assertEqual(caller.pread(self.honest.file, 0, BLOCK * BLOCKS), self.honest.content)
        self.assertEqual(caller.list('/honest'), [b'file'])
        root = self.caller(self.server)
        for name in root.list('/'):
            if name != b'honest':
                root.call('unlink', b'/' + name)
        self.await_that('space is free', lambda: caller.statfs()[1] >= self.free - self.server.shards * (2 << 20))
        self.assertRegex(self.assert_sound_but_for_chunks(self.server), '^3 files, 2 names, ')

    def test_at_the_socket(self):
        for user in (OTHER, 0):
            for name in ('silent', 'stammer', 'flicker', 'unread', 'descriptors'):
                self.attack(name, user, many=2)
        self.end()

    def test_one_user_takes_all_that_it_may(self):
        results = self.attack('hoard', many=2)
        # All that a user may have. A slower attacker also takes what the first one leaves.
        self.assertGreaterEqual(sum(result['channels'] for result in results), 16 * 16 * 2)
        for result in results:
            self.assertIn('--max-user-clients', result['last_refusal'])
        self.end()

    def test_in_shared_memory(self):
        for user in (OTHER, 0):
            for name in ('miscount', 'bells'):
                self.attack(name, user, many=2)
        for name in ('scribble', 'scribble-requests'):
            self.attack(name, many=2)
        self.end()

    def test_by_requests(self):
        self.assertGreater(self.attack('forge', many=2)[0]['answers'], 0)
        self.attack('greedy', many=2)
        self.attack('sparse', many=2)
        self.end()

    def test_all_at_once_and_killed(self):
        chance = random.Random(SEED)
        descriptors = self.server.descriptors() + 1
        names = ('silent', 'stammer', 'flicker', 'scribble', 'miscount', 'bells', 'forge', 'greedy')
        until = time.monotonic() + 4 * SECONDS
        killed = 0
        while time.monotonic() < until:
            attackers = [self.attacker(chance.choice(names), OTHER + number, 60, killed + number)
                         for number in range(MANY)]
            time.sleep(chance.random() * 0.5)
            for attacker in attackers:
                attacker.kill()
                attacker.wait()
            killed += MANY
        self.settled(descriptors, 'the killed')
        self.assertIsNone(self.server.process.poll())
        print(f'{killed} killed, longest honest call {self.honest.longest_s:.3f} s')
        self.end()


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
