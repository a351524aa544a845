"""The suite of scripts/bench fs: a daemon's shard and a client on a CPU each. The store is in shared memory, with
forced flushes and checksums. The same driver on a directory of tmpfs is the ruler."""
import contextlib
import os
import re
import shutil
import signal
import tempfile
import time

import bench_rc
from bench_pairs import LARGE_BSIZE, LARGE_EAL, ROOT, Failed, Pairs, Unavailable, last_json, last_line, start, stop

PROGRAM = 'apps/cairn-fsd'
PROGRAMS = ['apps/cairn-fs', bench_rc.PROGRAM]
DAEMON, TOOL = (os.path.join(ROOT, 'build/apps', name) for name in ('cairn-fsd', 'cairn-fs'))
MEMIF, FRAME_BYTES = bench_rc.MEMIF, bench_rc.FRAME_BYTES
SHARED = '/dev/shm'
MANY, ONE = ['md', '--files', '200000'], ['md', '--files', '30000', '--in-flight', '1']
FAR = ['md', '--files', '100000', '--in-flight', '64']
SMALL = ['small', '--files', '50000']
RESTART_CHUNKS = 1_000_000
HOSTS = ['10.77.0.1', '10.77.0.2']


class Bench(Pairs):
    @contextlib.contextmanager
    def folder(self, gib):
        """Makes a folder in tmpfs with this much room."""
        if not os.path.isdir(SHARED) or shutil.disk_usage(SHARED).free < (gib + 1) << 30:
            raise Unavailable(f'{SHARED} has not {gib} GiB')
        with tempfile.TemporaryDirectory(dir=SHARED, prefix='cairn-bench-') as folder:
            yield folder

    def serve(self, folder, gib, cpus, *more, eal=()):
        """Starts a daemon. Returns it when it is ready, and its line about its store."""
        daemon = start(['taskset', '-c', cpus, DAEMON, *eal, '--pmem-path', os.path.join(folder, 'store'),
                        '--allow-fake-pmem', '--capacity', f'{gib}G', '--shm-prefix', os.path.join(folder, 'fs'),
                        *more])
        return self.await_ready(daemon)

    @staticmethod
    def await_ready(daemon):
        said = ''
        for line in daemon.stdout:
            if line.startswith('shard 0'):
                said = line
            if line.startswith('ready on'):
                return daemon, said
        raise Failed(last_line(daemon.communicate()[1], 'the daemon ended'))

    def tool(self, folder, cpus, *own):
        return start(['taskset', '-c', cpus, TOOL, '--socket', os.path.join(folder, 'fs.sock'), 'bench', *own])

    def measured(self, own):
        with self.folder(2) as folder:
            daemon, _ = self.serve(folder, 2, self.cpus[0], '--poll', 'spin')
            try:
                return last_json(self.tool(folder, self.cpus[1], *own), 60)
            finally:
                stop(daemon)

    def kernel(self, own):
        with self.folder(2) as folder:
            return last_json(start(['taskset', '-c', self.cpus[1], TOOL, 'bench', *own, '--directory',
                                    os.path.join(folder, 'files')]), 60)

    def crowd(self, many):
        """Returns the joint write rate of this many clients and shards, anywhere on the CPUs."""
        with self.folder(4) as folder:
            cpus = ','.join(self.cpus)
            daemon, _ = self.serve(folder, 2, cpus, '--daemons-per-node', str(many))
            try:
                clients = [self.tool(folder, cpus, 'easy', '--size', '512M') for _ in range(many)]
                return sum(last_json(client, 60)['easy_write_mib_s'] for client in clients)
            finally:
                stop(daemon)

    @contextlib.contextmanager
    def node(self, number, folder, vdev):
        """Starts a daemon of two that a link joins, and makes its folder."""
        own = os.path.join(folder, f'node{number}')
        os.mkdir(own)
        cpu = self.cpus[number]
        daemon, _ = self.serve(own, 2, ','.join(self.cpus), '--ip', HOSTS[number], '--nodes', ','.join(HOSTS),
                               '--key-file', os.path.join(folder, 'key'), '--queue-depth', '64', '--stats', '1',
                               eal=[f'--lcores=0@{cpu}', self.prefix(), *LARGE_EAL, vdev, '--'])
        try:
            yield daemon, own
        finally:
            stop(daemon)

    def remote(self, own):
        """Measures a client at one node whose files lie at the other one. Each daemon has a CPU, and the client shares
        both."""
        with self.folder(4) as folder:
            with open(os.path.join(folder, 'key'), 'wb') as key:
                key.write(os.urandom(32))
            os.chmod(key.name, 0o600)
            with contextlib.ExitStack() as ends:
                def first_end(_cpu, vdev):
                    daemon, near = ends.enter_context(self.node(0, folder, vdev))
                    nears.append(near)
                    return daemon

                nears = []
                _, (_, vdev) = ends.enter_context(self.joined(first_end, LARGE_BSIZE))
                far, _ = ends.enter_context(self.node(1, folder, vdev))
                for line in far.stdout:
                    if ' fs_peers_found 1' in line:
                        return last_json(self.tool(nears[0], ','.join(self.cpus), *own, '--elsewhere'), 60)
                raise Failed(last_line(far.communicate()[1], 'the second daemon ended'))

    def connection(self, operation):
        """Measures 64 KB operations over a reliable connection, in MiB/s."""
        rc = bench_rc.Bench(self.seconds, self.given_cpus, self.work)
        return bench_rc.gbit(rc.memif('--op', operation, *bench_rc.LARGE)) * 1e9 / 8 / (1 << 20)

    def balance(self):
        return last_json(start([TOOL, 'bench', 'balance']), 60)

    def restart(self):
        """Returns the seconds until a killed daemon with this many chunks serves again, and the seconds of reading its
        log."""
        with self.folder(8) as folder:
            daemon, _ = self.serve(folder, 7, self.cpus[0], '--poll', 'spin')
            try:
                filled = self.tool(folder, self.cpus[1], 'fill', '--files', str(RESTART_CHUNKS))
                last_json(filled, 60)
            finally:
                daemon.send_signal(signal.SIGKILL)
                daemon.communicate()
            begin = time.monotonic()
            daemon, said = self.serve(folder, 7, ','.join(self.cpus))
            seconds = time.monotonic() - begin
            stop(daemon)
            chunks = re.search(r'opened in ([0-9.]+) ms: .* (\d+) chunks', said)
            if not chunks or int(chunks[2]) != RESTART_CHUNKS:
                raise Failed(f'the daemon has other chunks: {said}')
            return {'seconds': seconds, 'opened_s': float(chunks[1]) / 1e3}


def rows(names, unit):
    return [('.' + name, unit, lambda result, key=key: result[key]) for name, key in names.items()]


EASY = rows({'write': 'easy_write_mib_s', 'read': 'easy_read_mib_s'}, 'MiB/s')
HARD = rows({'write': 'hard_write_mib_s', 'read': 'hard_read_mib_s'}, 'MiB/s')
NAMES = rows({each: f'{each}_k_s' for each in ('create', 'stat', 'open', 'remove')}, 'k/s')
FILES = rows({each: f'{each}_k_s' for each in ('create', 'read')}, 'k/s')
BALANCES = {'consecutive': '<= 1.1', 'strided': '<= 1.3', 'random': '<= 1.3'}
VALUE = [('', 'MiB/s', lambda value: value)]


def both(name, own, results):
    return [(f'ruler.tmpfs.{name}', lambda bench: bench.kernel(own), results),
            (f'fs.{name}', lambda bench: bench.measured(own), results)]


GROUPS = [
    [('ruler.cpu.line', Bench.line, [('', 'ns, there and back', lambda ns: ns)])],
    both('easy', ['easy'], EASY),
    both('hard', ['hard'], HARD),
    both('md', MANY, NAMES),
    both('md.sync', ONE, NAMES),
    both('md3901', SMALL, FILES),
    [('fs.crowd.one.write', lambda bench: bench.crowd(1), VALUE),
     ('fs.crowd.write', lambda bench: bench.crowd(2), VALUE)],
    [*((f'ruler.rc.{operation}.64k.memif', lambda bench, operation=operation: bench.connection(operation), VALUE)
       for operation in ('write', 'read')),
     ('fs.remote.easy', lambda bench: bench.remote(['easy', '--size', '512M']), EASY),
     ('fs.remote.md', lambda bench: bench.remote(FAR), NAMES)],
    [('fs.balance', Bench.balance, rows({each: each for each in BALANCES}, 'of the mean'))],
    [('fs.restart', Bench.restart, [('', 's', lambda result: result['seconds']),
                                    ('.log', 's', lambda result: result['opened_s'])])],
]

RATIOS = [
    *((f'fs.{name}.ratio', f'fs.{name}', f'ruler.tmpfs.{name}')
      for name in ('easy.write', 'easy.read', 'hard.write', 'hard.read', 'md.sync.create', 'md.sync.stat',
                   'md.sync.open', 'md.sync.remove')),
    ('fs.crowd.ratio', 'fs.crowd.write', 'fs.crowd.one.write'),
    *((f'fs.remote.easy.{operation}.ratio', f'fs.remote.easy.{operation}', f'ruler.rc.{operation}.64k.memif')
      for operation in ('write', 'read')),
]

GOALS = {
    'fs.easy.write.ratio': '>= 1.2',
    'fs.easy.read.ratio': '>= 1.0',
    'fs.hard.write.ratio': '>= 1.0',
    'fs.hard.read.ratio': '>= 0.8',
    'fs.hard.write': '>= 3000',
    'fs.hard.read': '>= 3200',
    'fs.md.create': '>= 500',
    'fs.md.stat': '>= 1200',
    'fs.md.open': '>= 800',
    'fs.md.remove': '>= 400',
    **{f'fs.md.sync.{each}.ratio': '>= 0.7' for each in ('create', 'stat', 'open', 'remove')},
    'fs.md3901.create': '>= 120',
    'fs.md3901.read': '>= 250',
    'fs.crowd.ratio': '>= 0.6',
    **{f'fs.remote.easy.{operation}': '>= 2000' for operation in ('write', 'read')},
    **{f'fs.remote.easy.{operation}.ratio': '>= 0.45' for operation in ('write', 'read')},
    'fs.remote.md.create': '>= 250',
    **{f'fs.balance.{names}': goal for names, goal in BALANCES.items()},
    'fs.restart': '<= 3',
}

ABOUT = {
    'fs.easy.write': 'a new file, written in pieces of 1 MiB',
    'fs.hard.write': '... of 47,008 bytes',
    'fs.md.create': 'empty files of one directory, made and closed, 32 under way',
    'fs.md.open': 'opened and closed',
    'fs.md.sync.create': 'the same, one at a time',
    'fs.md3901.create': 'files of 3,901 bytes, made, written and closed, 32 under way',
    'fs.md3901.read': 'opened, read and closed',
    'fs.crowd.one.write': 'a shard and a client, anywhere on two CPUs',
    'fs.crowd.write': 'two shards and two clients, both together',
    'ruler.rc.write.64k.memif': 'WRITEs of cairn-perf, path MTU 4096',
    'fs.remote.easy.write': 'from a client at another node than the chunks, over memif; three processes on two CPUs',
    'fs.remote.md.create': 'likewise, 64 under way',
    'fs.balance.consecutive': '10,000 names under a new key: the most that one of 100 shards has',
    'fs.balance.strided': 'numbers in steps, the worst of seven',
    'fs.balance.random': 'eight letters',
    'fs.restart': 'until a daemon that was killed serves 1,000,000 chunks again',
    'fs.restart.log': '... of which it reads its log',
}
