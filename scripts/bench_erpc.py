"""The suite of scripts/bench erpc: each run starts two processes and gives figures."""
import os
import sys
import time

from bench_pairs import BSIZE, EAL, LARGE_BSIZE, LARGE_EAL, ROOT, RSIZE, Pairs, last_json, machine, start, stop

PROGRAM = 'apps/cairn-rpcbench'
BENCH = os.path.join(ROOT, 'build', PROGRAM)
MEMIF = {'rsize': RSIZE, 'bsize': BSIZE, 'large_bsize': LARGE_BSIZE}
FRAME_BYTES = 114  # of a 32-byte request or response, without FCS
DATAGRAM_BYTES = 72  # BTH ... ICRC of a 32-byte request or response
LARGE = ['--req', '8388608', '--resp', '32', '--window', '1', '--sessions', '1', '--path-mtu', '4096',
         '--credits', '96']
CONTROL = ['--cc', 'timely', '--link-gbit', '100']
SERVER, CLIENT, THIRD = (machine.loopback(host) for host in (1, 2, 3))


class Bench(Pairs):
    def rpcbench(self, cpu, vdev, address, *own, wrap=(), eal=EAL, seconds=None):
        return start([*wrap, BENCH, '--lcores', f'0@{cpu}', self.prefix(), *eal, vdev, '--', '--poll', 'spin', '--ip',
                      address, '--duration', str(seconds or self.seconds), '--json', *own])

    def pair(self, first_own, second_own, bsize=BSIZE, **options):
        """Returns the results of the processes that end by themselves."""
        with self.joined(lambda *where: self.rpcbench(*where, '10.77.0.1', *first_own, **options),
                         bsize) as (first, where):
            second = self.rpcbench(*where, '10.77.0.2', *second_own, **options)
            line = self.line_beside(first, second)
            results = [last_json(second, self.seconds) | line]
            if '--peer' in first_own:
                results.append(last_json(first, self.seconds))
            return results

    def oneway(self):
        return self.pair(['--server', '--burst', '32'], ['--peer', '10.77.0.1'])[0]

    def symmetric(self):
        both = self.pair(['--server', '--peer', '10.77.0.2', '--burst', '32'],
                         ['--server', '--peer', '10.77.0.1', '--burst', '32'])
        return sum(result['rate_mops'] for result in both) / 2

    def latency(self):
        return self.pair(['--server'], ['--peer', '10.77.0.1', '--window', '1', '--sessions', '1'])[0]

    def oneway_controlled(self):
        return self.pair(['--server', '--burst', '32', *CONTROL], ['--peer', '10.77.0.1', *CONTROL])[0]

    def sessions(self, count):
        """Measures calls over this many sessions in turn, and over 8, in the same run."""
        many = self.pair(['--server', '--burst', '32'], ['--peer', '10.77.0.1', '--sessions', str(count)],
                         eal=LARGE_EAL)[0]
        return many['rate_mops'], self.oneway()['rate_mops']

    def large(self, drop_per_million=0, client=()):
        own = [*LARGE, *CONTROL, '--burst', '32', '--drop-per-million', str(drop_per_million)]
        return self.pair(['--server', *own], ['--peer', '10.77.0.1', *own, *client], eal=LARGE_EAL,
                         bsize=LARGE_BSIZE)[0]

    def sockets(self, server_own, client_own, poll='spin', cpus=None, third=False):
        """Measures a server and a client over UDP sockets, pinned unless `cpus` says otherwise. With `third` another
        client is connected and makes no calls."""
        cpus = self.cpus if cpus is None else cpus
        lcores = [['-l', cpu] if cpu else [] for cpu in cpus]
        common = ['--poll', poll, '--json', '--duration', str(self.seconds)]
        memory = ['--no-huge', '-m', '768'] if '--req' in client_own else []
        first = start([BENCH, *lcores[0], *memory, '--', '--port', f'uring:{SERVER}', '--server', *common, *server_own])
        idle = None
        try:
            time.sleep(1)
            if third:
                idle = start([BENCH, '--', '--port', f'uring:{THIRD}', '--peer', SERVER, '--window', '0', '--poll',
                              poll, '--duration', '60'])
                time.sleep(1)
            return last_json(start([BENCH, *lcores[1], *memory, '--', '--port', f'uring:{CLIENT}', '--peer', SERVER,
                                    *common, *client_own]), self.seconds)
        finally:
            stop(first)
            if idle is not None:
                stop(idle)

    def beside_idle_third(self):
        """Returns the rate of a client while a third process is only connected, over its rate without: all adaptive and
        unpinned."""
        free = [None, None]
        alone = self.sockets([], [], poll='adaptive', cpus=free)
        beside = self.sockets([], [], poll='adaptive', cpus=free, third=True)
        return beside['rate_mops'] / alone['rate_mops']

    def beside_busy(self):
        """Returns round trips per second of an unpinned adaptive pair while another process never rests."""
        busy = start([sys.executable, '-c', 'while True: pass'])
        try:
            one = ['--window', '1', '--sessions', '1']
            return self.sockets([], one, poll='adaptive', cpus=[None, None])['rate_mops'] * 1e6
        finally:
            busy.kill()
            busy.communicate()

    def macswap(self):
        """Returns echoed frames, in Mpps."""
        return self.testpmd_pair('macswap', 'flowgen', FRAME_BYTES, BSIZE, looked_at=1)

    def af_packet(self):
        with machine.namespaces(2) as names:
            machine.join(*names, ('cva', 'cvb'))
            both = [self.rpcbench(self.cpus[i], f'--vdev=net_af_packet0,iface={link}', f'10.77.1.{i + 1}', '--server',
                                  '--peer', f'10.77.1.{2 - i}', '--burst', '32',
                                  wrap=('ip', 'netns', 'exec', names[i]))
                    for i, link in enumerate(('cva', 'cvb'))]
            try:
                return sum(last_json(process, self.seconds)['rate_mops'] for process in both) / 2
            finally:
                for process in both:
                    stop(process)


def mops(result):
    return result['rate_mops']


def gbit(result):
    return result['gbit_s']


def gso(mode):
    """Returns a measurement of trains of datagrams as long as ours, with as many of them under way."""
    return lambda bench: bench.ruler(mode, str(DATAGRAM_BYTES), '60', echo=f'echo-{mode}')


P50 = ('.p50', 'us', lambda result: result['p50_us'])
# As P50, in units of the time of a cache line between the CPUs.
LINES = ('.lines', 'lines', lambda result: result['p50_us'] * 1e3 / result['line_ns'])

# The figures of a run, rulers next to the figures that they are compared with: label, function, and [(rest of the
# result's name, unit, how it is read)].
GROUPS = [
    [('ruler.cpu.line', Bench.line, [('', 'ns, there and back', lambda ns: ns)])],
    [('ruler.testpmd.macswap.memif', Bench.macswap, [('', 'Mpps', lambda rate: rate)]),
     ('erpc.small.oneway.memif', Bench.oneway, [('', 'Mops', mops)]),
     ('erpc.small.oneway.cc.memif', Bench.oneway_controlled, [('', 'Mops', mops)]),
     ('erpc.small.symmetric.memif', Bench.symmetric, [('', 'Mops per core', lambda rate: rate)])],
    [('ruler.frame.memif', lambda bench: bench.frame(FRAME_BYTES), [P50, LINES]),
     ('erpc.lat.memif', Bench.latency, [P50, ('.p99', 'us', lambda result: result['p99_us']), LINES])],
    [('erpc.small.symmetric.af_packet', Bench.af_packet, [('', 'Mops per core', lambda rate: rate)])],
    [('erpc.sessions20k.memif', lambda bench: bench.sessions(20000),
      [('', 'Mops', lambda rates: rates[0]), ('.ratio', 'of 8 sessions', lambda rates: rates[0] / rates[1])])],
    [('ruler.testpmd.oneway.memif', Bench.testpmd_oneway, [('', 'Gbit/s', lambda rate: rate)]),
     ('ruler.mem.stream', Bench.stream, [('', 'Gbit/s', lambda rate: rate)]),
     ('erpc.large.memif', Bench.large, [('', 'Gbit/s', gbit)]),
     ('erpc.large.memif.checked', lambda bench: bench.large(client=['--check']), [('', 'Gbit/s', gbit)]),
     ('erpc.large.memif.loss1e-3', lambda bench: bench.large(1000), [('', 'Gbit/s', gbit)]),
     ('erpc.large.memif.loss1e-2', lambda bench: bench.large(10000), [('', 'Gbit/s', gbit)])],
    [('ruler.udp.mmsg', lambda bench: bench.ruler('mmsg', str(DATAGRAM_BYTES), '60'), [('', 'Mops', mops)]),
     ('ruler.udp.gso', gso('gso'), [('', 'Mops', mops)]),
     ('ruler.udp.gso.crc', gso('crc'), [('', 'Mops', mops)]),
     ('erpc.small.oneway.uring', lambda bench: bench.sockets([], []), [('', 'Mops', mops)])],
    [('ruler.udp.pingpong', lambda bench: bench.ruler('pingpong', str(DATAGRAM_BYTES)), [P50]),
     ('erpc.lat.uring', lambda bench: bench.sockets([], ['--window', '1', '--sessions', '1']), [P50])],
    [('erpc.large.uring', lambda bench: bench.sockets(LARGE, LARGE), [('', 'Gbit/s', gbit)])],
    [('erpc.adaptive.third.uring', Bench.beside_idle_third, [('', 'of the undisturbed rate', lambda ratio: ratio)])],
    [('erpc.adaptive.busy.uring', Bench.beside_busy, [('', 'round trips/s', lambda rate: rate)])],
]

# The ratios of one run: name, dividend, divisor.
RATIOS = [
    ('erpc.small.oneway.ratio', 'erpc.small.oneway.memif', 'ruler.testpmd.macswap.memif'),
    ('erpc.small.oneway.cc.ratio', 'erpc.small.oneway.cc.memif', 'erpc.small.oneway.memif'),
    ('erpc.small.symmetric.ratio', 'erpc.small.symmetric.memif', 'erpc.small.oneway.memif'),
    ('erpc.lat.memif.ratio', 'erpc.lat.memif.p50', 'ruler.frame.memif.p50'),
    ('erpc.large.ratio', 'erpc.large.memif', 'ruler.testpmd.oneway.memif'),
    ('erpc.large.stream.ratio', 'erpc.large.memif', 'ruler.mem.stream'),
    ('erpc.large.checked.stream.ratio', 'erpc.large.memif.checked', 'ruler.mem.stream'),
    ('erpc.large.loss1e-3.ratio', 'erpc.large.memif.loss1e-3', 'erpc.large.memif'),
    ('erpc.large.loss1e-2.ratio', 'erpc.large.memif.loss1e-2', 'erpc.large.memif'),
    ('erpc.small.uring.ratio', 'erpc.small.oneway.uring', 'ruler.udp.mmsg'),
    ('erpc.small.uring.gso.ratio', 'erpc.small.oneway.uring', 'ruler.udp.gso'),
    ('erpc.small.uring.crc.ratio', 'erpc.small.oneway.uring', 'ruler.udp.gso.crc'),
    ('erpc.lat.uring.ratio', 'erpc.lat.uring.p50', 'ruler.udp.pingpong.p50'),
]

GOALS = {
    'erpc.small.oneway.memif': '>= 8.5',
    'erpc.small.oneway.ratio': '>= 0.8',
    'erpc.small.oneway.cc.ratio': '>= 0.95',
    'erpc.small.symmetric.memif': '>= 5.0',
    'erpc.small.symmetric.ratio': '>= 0.53',
    'erpc.lat.memif.p50': '<= 1.2',
    'erpc.lat.memif.p99': '<= 1.5',
    'erpc.lat.memif.lines': '<= 5.3',
    'erpc.lat.memif.ratio': '<= 1.4',
    'erpc.small.symmetric.af_packet': '>= 0.36',
    'erpc.sessions20k.memif.ratio': '>= 0.8',
    'erpc.large.memif': '>= 60',
    'erpc.large.ratio': '>= 0.45',
    'erpc.large.stream.ratio': '>= 0.6',
    'erpc.large.loss1e-3.ratio': '>= 0.5',
    'erpc.large.loss1e-2.ratio': '>= 0.1',
    'erpc.small.oneway.uring': '>= 4.0',
    'erpc.small.uring.crc.ratio': '>= 0.6',
    'erpc.lat.uring.ratio': '<= 1.3',
    'erpc.large.uring': '>= 36',
    'erpc.adaptive.third.uring': '>= 0.8',
    'erpc.adaptive.busy.uring': '>= 100000',
}

# For the tables of PERFORMANCE.md.
ABOUT = {
    'ruler.cpu.line': 'a cache line there and back',
    'ruler.testpmd.macswap.memif': 'dpdk-testpmd echoes the same frames',
    'erpc.small.oneway.memif': '32-byte requests and responses, 60 under way',
    'erpc.small.oneway.cc.memif': 'the same with Timely',
    'erpc.small.symmetric.memif': 'each core calls and serves',
    'ruler.frame.memif.p50': 'one frame there and back, nothing looks at it',
    'erpc.lat.memif.p50': 'one call under way',
    'erpc.lat.memif.lines': 'p50 over a cache line meanwhile',
    'erpc.sessions20k.memif': '20,000 sessions in turn',
    'ruler.testpmd.oneway.memif': 'dpdk-testpmd sends and takes frames of 4 KB, looking at none',
    'ruler.mem.stream': 'copied in and out, CRC32 on both sides, memory that no cache holds',
    'erpc.large.memif': '8 MB requests, path MTU 4096, Timely',
    'erpc.large.memif.checked': 'every byte written before and looked at after',
    'erpc.large.memif.loss1e-3': '0.1 % of the packets lost',
    'erpc.large.memif.loss1e-2': '1 % lost',
    'ruler.udp.mmsg': 'echo by sendmmsg and recvmmsg, 60 under way',
    'ruler.udp.gso': 'echo by UDP_SEGMENT and UDP_GRO, 60 under way',
    'ruler.udp.gso.crc': 'the same with a CRC32 made and verified at both ends',
    'erpc.small.oneway.uring': 'UDP sockets, unprivileged',
    'ruler.udp.pingpong.p50': 'one datagram under way',
    'erpc.adaptive.third.uring': 'adaptive polling, beside a third process that is connected and idle',
    'erpc.adaptive.busy.uring': 'adaptive polling, beside a process that never rests',
}
