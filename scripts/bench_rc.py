"""The suite of scripts/bench rc: reliable connections between two processes."""
import os
import shutil
import time

from bench_pairs import LARGE_BSIZE, LARGE_EAL, ROOT, RSIZE, Failed, Pairs, last_json, last_line, machine, start, stop

PROGRAM = 'apps/cairn-perf'
PERF = os.path.join(ROOT, 'build', PROGRAM)
MEMIF = {'rsize': RSIZE, 'bsize': LARGE_BSIZE}
FRAME_BYTES = 4154  # of a WRITE in the middle of a message, path MTU 4096, without FCS
DATAGRAM_BYTES = 24  # BTH ... ICRC of an 8-byte SEND
SERVER, CLIENT, THIRD = (machine.loopback(host) for host in (1, 2, 3))
LARGE = ['--size', '65536']
SMALL = ['--size', '8', '--depth', '64']
LOSSES = ['--drop-per-million', '1000']
LATENCY = ['--size', '8', '--test', 'lat']


class Bench(Pairs):
    def memif(self, *own):
        """Returns the result of a client over memif."""
        def perf(cpu, vdev, address, *rest):
            return start([PERF, '--lcores', f'0@{cpu}', self.prefix(), *LARGE_EAL, vdev, '--', '--poll', 'spin', '--ip',
                          address, '--json', '--path-mtu', '4096', *rest])

        with self.joined(lambda *where: perf(*where, '10.77.0.1', '--server', *self.losses(own)),
                         LARGE_BSIZE) as (server, where):
            client = perf(*where, '10.77.0.2', '--peer', '10.77.0.1', '--duration', str(self.seconds), *own)
            line = self.line_beside(server, client)
            return last_json(client, self.seconds) | line

    @staticmethod
    def losses(own):
        """Measures with a server that loses as many packets as its client."""
        at = own.index('--drop-per-million') if '--drop-per-million' in own else len(own)
        return own[at:at + 2]

    def many(self, count):
        """Measures short WRITEs over this many queue pairs in turn, and over 8, in the same run."""
        return tuple(self.memif(*SMALL, '--qps', str(qps))['rate_mops'] for qps in (count, 8))

    def sockets(self, *own, poll='spin', cpus=None, third=False):
        """Returns the result of a client over UDP sockets, pinned unless `cpus` says otherwise. With `third` another
        process is connected to the same server and idle."""
        lcores = [['-l', cpu, '--no-huge', '-m', '512', '--'] if cpu else [] for cpu in cpus or self.cpus]
        server = start([PERF, *lcores[0], '--port', f'uring:{SERVER}', '--server', '--poll', poll])
        idle = None
        try:
            time.sleep(1)
            if third:
                idle = start([PERF, '--port', f'uring:{THIRD}', '--peer', SERVER, '--depth', '0', '--duration', '60',
                              '--poll', poll])
                time.sleep(1)
            client = start([PERF, *lcores[1], '--port', f'uring:{CLIENT}', '--peer', SERVER, '--poll', poll, '--json',
                            '--path-mtu', '4096', '--duration', str(self.seconds), *own])
            return last_json(client, self.seconds)
        finally:
            stop(server)
            if idle is not None:
                stop(idle)

    def ucx(self, test, ends=({'UCX_TLS': 'tcp', 'UCX_NET_DEVICES': 'lo'},) * 2, prefix=()):
        """Measures 64 KB operations by UCX, over TCP unless the variables of the ends say otherwise, in GB/s."""
        if shutil.which('ucx_perftest') is None:
            raise machine.Unavailable('there is no ucx_perftest; scripts/deps bench installs it, as root')
        port = str(machine.free_tcp_port())
        count = int(self.seconds * 50_000)

        def end(number, *own):
            return start(['taskset', '-c', self.cpus[number], *prefix, 'ucx_perftest', *own, '-p', port],
                         env={**os.environ, **ends[number]})
        server = client = end(0)
        try:
            time.sleep(1)
            client = end(1, '127.0.0.1', '-t', test, '-s', '65536', '-n', str(count), '-w', str(count // 10), '-f')
            out, err = client.communicate(timeout=60)
            if client.returncode != 0:
                raise Failed(last_line(err, 'ucx_perftest failed'))
            return float(out.strip().splitlines()[-1].split()[5]) * 2**20 / 1e9
        finally:
            stop(client)
            stop(server)


def gigabytes(result):
    return result['gbit_s'] / 8


def gbit(result):
    return result['gbit_s']


def one(rate):
    return rate


# As in bench_erpc.
GROUPS = [
    [('ruler.cpu.line', Bench.line, [('', 'ns, there and back', one)])],
    [('ruler.testpmd.oneway.memif', lambda bench: bench.testpmd_oneway(FRAME_BYTES), [('', 'Gbit/s', one)]),
     ('ruler.mem.stream', Bench.stream, [('', 'Gbit/s', one)]),
     *((f'rc.{op}.64k.memif', lambda bench, op=op: bench.memif('--op', op, *LARGE), [('', 'Gbit/s', gbit)])
       for op in ('write', 'read', 'send')),
     *((f'rc.{op}.64k.memif.checked', lambda bench, op=op: bench.memif('--op', op, *LARGE, '--check'),
        [('', 'Gbit/s', gbit)]) for op in ('read', 'send')),
     *((f'rc.write.64k.memif.loss1e-3{name}', lambda bench, own=own: bench.memif(*LARGE, *LOSSES, *own),
        [('', 'Gbit/s', gbit)])
       for name, own in (('', ['--go-back-n']), ('.selective', [])))],
    [('rc.write.8B.memif', lambda bench: bench.memif(*SMALL), [('', 'Mops', lambda result: result['rate_mops'])]),
     ('rc.write.8B.memif.qps10000', lambda bench: bench.many(10000),
      [('', 'Mops', lambda rates: rates[0]), ('.ratio', 'of 8 queue pairs', lambda rates: rates[0] / rates[1])])],
    [(f'rc.{op}_lat.8B.memif', lambda bench, op=op: bench.memif('--op', op, *LATENCY),
      [('', 'us, p50 of half a round trip', lambda result: result['p50_us']),
       ('.idle_bytes', 'bytes per idle connection beside its queues',
        lambda result: result['idle_connection_bytes'])]) for op in ('write', 'send')],
    [('ruler.ucx.tcp.put.64k', lambda bench: bench.ucx('ucp_put_bw'), [('', 'GB/s', one)]),
     ('ruler.ucx.tcp.tag.64k', lambda bench: bench.ucx('tag_bw'), [('', 'GB/s', one)]),
     *((f'rc.{op}.64k.uring', lambda bench, op=op: bench.sockets('--op', op, *LARGE), [('', 'GB/s', gigabytes)])
       for op in ('write', 'read', 'send')),
     ('rc.send.64k.uring.checked', lambda bench: bench.sockets('--op', 'send', *LARGE, '--check'),
      [('', 'GB/s', gigabytes)])],
    [('ruler.udp.pingpong', lambda bench: bench.ruler('pingpong', str(DATAGRAM_BYTES)),
      [('.half', 'us', lambda result: result['p50_us'] / 2)]),
     ('rc.send_lat.8B.uring', lambda bench: bench.sockets('--op', 'send', *LATENCY),
      [('', 'us, p50 of half a round trip', lambda result: result['p50_us'])])],
    [('rc.adaptive.third.uring',
      lambda bench: [bench.sockets(*SMALL, poll='adaptive', cpus=[None, None], third=third)['rate_mops']
                     for third in (True, False)],
      [('', 'of the undisturbed rate', lambda rates: rates[0] / rates[1])])],
]

RATIOS = [
    ('rc.write.64k.memif.ratio', 'rc.write.64k.memif', 'ruler.testpmd.oneway.memif'),
    ('rc.write.64k.memif.stream.ratio', 'rc.write.64k.memif', 'ruler.mem.stream'),
    ('rc.send.64k.memif.checked.stream.ratio', 'rc.send.64k.memif.checked', 'ruler.mem.stream'),
    ('rc.write.64k.memif.loss1e-3.ratio', 'rc.write.64k.memif.loss1e-3', 'rc.write.64k.memif'),
    ('rc.write.64k.memif.loss1e-3.selective.ratio', 'rc.write.64k.memif.loss1e-3.selective', 'rc.write.64k.memif'),
    ('rc.write.64k.uring.ratio', 'rc.write.64k.uring', 'ruler.ucx.tcp.put.64k'),
    ('rc.send.64k.uring.tag.ratio', 'rc.send.64k.uring', 'ruler.ucx.tcp.tag.64k'),
    ('rc.send.64k.uring.checked.tag.ratio', 'rc.send.64k.uring.checked', 'ruler.ucx.tcp.tag.64k'),
    ('rc.send_lat.8B.uring.ratio', 'rc.send_lat.8B.uring', 'ruler.udp.pingpong.half'),
]

GOALS = {
    'rc.write.64k.memif': '>= 60',
    'rc.write.64k.memif.ratio': '>= 0.45',
    'rc.write.64k.memif.stream.ratio': '>= 0.6',
    'rc.read.64k.memif': '>= 50',
    'rc.send.64k.memif': '>= 50',
    'rc.write.8B.memif': '>= 8',
    'rc.write_lat.8B.memif': '<= 0.65',
    'rc.write_lat.8B.memif.idle_bytes': '<= 4096',
    'rc.send_lat.8B.memif': '<= 0.75',
    'rc.write.64k.memif.loss1e-3.ratio': '>= 0.5',
    'rc.write.64k.memif.loss1e-3.selective.ratio': '>= 0.8',
    'rc.write.8B.memif.qps10000.ratio': '>= 0.7',
    'rc.write.64k.uring': '>= 5.0',
    'rc.read.64k.uring': '>= 4.0',
    'rc.write.64k.uring.ratio': '>= 2',
    'rc.send.64k.uring.tag.ratio': '>= 1.2',
    'rc.send_lat.8B.uring.ratio': '<= 1.3',
    'rc.adaptive.third.uring': '>= 0.6',
}

ABOUT = {
    'ruler.testpmd.oneway.memif': 'dpdk-testpmd sends and takes the same frames, looking at none',
    'ruler.mem.stream': 'copied in and out, CRC32 on both sides, memory that no cache holds',
    'rc.write.64k.memif': 'path MTU 4096',
    'rc.read.64k.memif.checked': 'every byte verified, within the time',
    'rc.send.64k.memif.checked': 'every byte written before and verified after, within the time',
    'rc.send.64k.uring.checked': 'likewise',
    'rc.write.64k.memif.loss1e-3': '0.1 % of the packets lost, go-back-N',
    'rc.write.64k.memif.loss1e-3.selective': 'the same with selective retransmission',
    'rc.write.8B.memif.qps10000': '10,000 queue pairs in turn',
    'ruler.ucx.tcp.put.64k': 'ucx_perftest -t ucp_put_bw over TCP',
    'ruler.ucx.tcp.tag.64k': 'ucx_perftest -t tag_bw over TCP',
    'rc.write.64k.uring': 'UDP sockets, unprivileged',
    'rc.adaptive.third.uring': 'adaptive polling, beside a third process that is connected and idle',
}
