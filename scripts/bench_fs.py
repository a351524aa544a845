"""What scripts/bench fs measures: a daemon's shard and a client on a CPU each, over a store in shared memory with
forced flushes and checksums, beside the same driver on a directory of tmpfs."""
import contextlib
import os
import re
import shutil
import signal
import tempfile
import time

from bench_pairs import ROOT, Failed, Pairs, Unavailable, last_json, last_line, start, stop

PROGRAM = 'apps/cairn-fsd'
PROGRAMS = ['apps/cairn-fs']
DAEMON, TOOL = (os.path.join(ROOT, 'build/apps', name) for name in ('cairn-fsd', 'cairn-fs'))
MEMIF = {}
FRAME_BYTES = 0
SHARED = '/dev/shm'
MANY, ONE = ['md', '--files', '200000'], ['md', '--files', '30000', '--in-flight', '1']
SMALL = ['small', '--files', '50000']
RESTART_CHUNKS = 1_000_000


class Bench(Pairs):
    @contextlib.contextmanager
    def folder(self, gib):
        """A folder in tmpfs with so much room."""
        if not os.path.isdir(SHARED) or shutil.disk_usage(SHARED).free < (gib + 1) << 30:
            raise Unavailable(f'{SHARED} has not {gib} GiB')
        with tempfile.TemporaryDirectory(dir=SHARED, prefix='cairn-bench-') as folder:
            yield folder

    def serve(self, folder, gib, cpus, *more):
        """A daemon that is ready, and the line that it says of its store."""
        daemon = start(['taskset', '-c', cpus, DAEMON, '--pmem-path', os.path.join(folder, 'store'),
                        '--allow-fake-pmem', '--capacity', f'{gib}G', '--shm-prefix', os.path.join(folder, 'fs'),
                        *more])
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
        """What so many clients of as many shards write together, anywhere on the CPUs."""
        with self.folder(4) as folder:
            cpus = ','.join(self.cpus)
            daemon, _ = self.serve(folder, 2, cpus, '--daemons-per-node', str(many))
            try:
                clients = [self.tool(folder, cpus, 'easy', '--size', '512M') for _ in range(many)]
                return sum(last_json(client, 60)['easy_write_mib_s'] for client in clients)
            finally:
                stop(daemon)

    def restart(self):
        """Seconds until a daemon that was killed serves again, with so many chunks; and those of reading its log."""
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
    [('fs.restart', Bench.restart, [('', 's', lambda result: result['seconds']),
                                    ('.log', 's', lambda result: result['opened_s'])])],
]

RATIOS = [
    *((f'fs.{name}.ratio', f'fs.{name}', f'ruler.tmpfs.{name}')
      for name in ('easy.write', 'easy.read', 'hard.write', 'hard.read', 'md.sync.create', 'md.sync.stat',
                   'md.sync.open', 'md.sync.remove')),
    ('fs.crowd.ratio', 'fs.crowd.write', 'fs.crowd.one.write'),
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
    'fs.restart': 'until a daemon that was killed serves 1,000,000 chunks again',
    'fs.restart.log': '... of which it reads its log',
}
