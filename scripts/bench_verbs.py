"""The suite of scripts/bench verbs: unmodified programs of perftest and rdma-core over libibverbs.so.1, two processes
on 127.0.0.0/8, compared with cairn-perf, UCX over TCP and bare sockets."""
import os
import re
import shutil
import time

import bench_rc
from bench_pairs import ROOT, Failed, Unavailable, last_json, last_line, machine, start, stop

PROGRAM = bench_rc.PROGRAM
PROGRAMS = ['lib/ibverbs/shared/libibverbs.so.1', 'lib/ibverbs/shared/librdmacm.so.1', 'apps/cairn-run',
            'tests/rulers/spin_ruler']
MEMIF, FRAME_BYTES = bench_rc.MEMIF, bench_rc.FRAME_BYTES
CAIRN_RUN = os.path.join(ROOT, 'build/apps/cairn-run')
LIBRARIES = os.path.join(ROOT, 'build/lib/ibverbs/shared')
SPIN_RULER = os.path.join(ROOT, 'build/tests/rulers/spin_ruler')
HOSTS = (machine.loopback(5), machine.loopback(6))
DATAGRAM_BYTES = bench_rc.DATAGRAM_BYTES
LARGE, SMALL = ['-s', '65536', '-n', '40000'], ['-s', '64', '-n', '1000000']
OFTEN = ['-n', '50000']


class Bench(bench_rc.Bench):
    def ends(self, program, own, cpus):
        """Runs two ends, each with a device of its own. Returns the client's output."""
        if shutil.which(program) is None:
            raise Unavailable(f'there is no {program}; scripts/deps bench installs it, as root')
        port = str(machine.free_tcp_port())

        def end(number, *more):
            environment = {**os.environ, 'LD_LIBRARY_PATH': LIBRARIES, 'CAIRN_DEVICES': f'cairn0={HOSTS[number]}'}
            return start(['taskset', '-c', cpus[number], program, '-d', 'cairn0', '-p', port, *own, *more],
                         env=environment)

        server = end(0)
        try:
            time.sleep(0.5)
            client = end(1, '127.0.0.1')
            out, err = client.communicate(timeout=60)
            if client.returncode != 0 or server.wait(timeout=20) != 0:
                raise Failed(last_line(err, f'{program} failed'))
            return out
        finally:
            stop(server)

    def perftest(self, program, own, anywhere=False):
        """Returns the figures of the last line: bytes, iterations, and the program's measurements."""
        cpus = [','.join(self.cpus)] * 2 if anywhere else self.cpus
        rows = re.findall(r'^ *\d+ +\d+ +[0-9.].*$', self.ends(program, ['-x', '1', '-F', *own], cpus), re.M)
        if not rows:
            raise Failed(f'{program} printed no figures')
        return [float(each) for each in rows[-1].split()]

    def rate(self, program, own):
        return self.perftest(program, ['--report_gbits', *own])

    def pingpong(self):
        out = self.ends('ibv_rc_pingpong', ['-g', '1'], self.cpus)
        return float(re.search(r'([0-9.]+) usec/iter', out)[1])

    def tags(self):
        """Measures messages of 64 KB by UCX over the library, in GB/s."""
        ends = [{'UCX_TLS': 'rc_verbs,ud_verbs,self', 'CAIRN_DEVICES': f'cairn0={host}'} for host in HOSTS]
        return self.ucx('tag_bw', ends, [CAIRN_RUN])

    def libfabric(self, provider, kind, *own):
        """Measures round trips of 64 KB by libfabric, in MB/s. A server finds itself by 127.0.0.1."""
        if shutil.which('fi_pingpong') is None:
            raise Unavailable('there is no fi_pingpong; scripts/deps bench installs it, as root')
        port = str(machine.free_tcp_port())
        hosts = '127.0.0.1', HOSTS[1]

        def end(number, *more):
            environment = {**os.environ, 'LD_LIBRARY_PATH': LIBRARIES, 'CAIRN_DEVICES': f'cairn0={hosts[number]}'}
            return start(['taskset', '-c', self.cpus[number], 'fi_pingpong', '-p', provider, '-e', kind, *own,
                          '-S', '65536', '-I', '300', *more], env=environment)

        server = end(0, '-B', port)
        try:
            time.sleep(1)
            client = end(1, '-P', port, '127.0.0.1')
            out, err = client.communicate(timeout=60)
            if client.returncode != 0 or server.wait(timeout=20) != 0:
                raise Failed(last_line(err, 'fi_pingpong failed'))
            return float(out.split()[-3])
        finally:
            stop(server)

    def spinning(self):
        """Measures half a round trip, anywhere on the CPUs: each end has two threads."""
        pinned = ['taskset', '-c', ','.join(self.cpus), SPIN_RULER]
        echo = start([*pinned, 'echo', HOSTS[0]])
        try:
            time.sleep(0.3)
            return last_json(start([*pinned, 'pingpong', HOSTS[0], str(DATAGRAM_BYTES), str(self.seconds)]),
                             self.seconds)['p50_us'] / 2
        finally:
            stop(echo)


def gigabytes(figures):
    return figures[3] / 8


def mops(figures):
    return figures[4]


def median(figures):
    return figures[4]


def same(value):
    return value


GROUPS = [
    [('ruler.cpu.line', Bench.line, [('', 'ns, there and back', same)])],
    [('ruler.ucx.tcp.put.64k', lambda bench: bench.ucx('ucp_put_bw'), [('', 'GB/s', same)]),
     *((f'ruler.rc.{op}.64k.uring', lambda bench, op=op: bench.sockets('--op', op, *bench_rc.LARGE),
        [('', 'GB/s', bench_rc.gigabytes)]) for op in ('write', 'read', 'send')),
     *((f'verbs.{op}_bw.64k', lambda bench, op=op: bench.rate(f'ib_{op}_bw', LARGE), [('', 'GB/s', gigabytes)])
       for op in ('write', 'read', 'send'))],
    [('ruler.ucx.tcp.tag.64k', lambda bench: bench.ucx('tag_bw'), [('', 'GB/s', same)]),
     ('verbs.ucx.tag.64k', Bench.tags, [('', 'GB/s', same)])],
    [('ruler.fi.udp.64k', lambda bench: bench.libfabric('udp;ofi_rxd', 'rdm'), [('', 'MB/s', same)]),
     *((f'verbs.fi.{kind}.64k',
        lambda bench, provider=provider, kind=kind: bench.libfabric(provider, kind, '-d', 'cairn0'),
        [('', 'MB/s', same)]) for provider, kind in (('verbs', 'msg'), ('verbs;ofi_rxm', 'rdm')))],
    [('ruler.rc.send.64B.uring', lambda bench: bench.sockets('--op', 'send', '--size', '64', '--depth', '128'),
      [('', 'Mops', lambda result: result['rate_mops'])]),
     ('verbs.send_bw.64B', lambda bench: bench.rate('ib_send_bw', SMALL), [('', 'Mops', mops)])],
    [('ruler.udp.pingpong', lambda bench: bench.ruler('pingpong', str(DATAGRAM_BYTES)),
      [('.half', 'us', lambda result: result['p50_us'] / 2)]),
     ('ruler.rc.send_lat.8B.uring', lambda bench: bench.sockets('--op', 'send', *bench_rc.LATENCY),
      [('', 'us, p50 of half a round trip', lambda result: result['p50_us'])]),
     ('verbs.send_lat.64B', lambda bench: bench.perftest('ib_send_lat', ['-s', '64', *OFTEN]),
      [('', 'us, p50 of half a round trip', median)]),
     ('verbs.rc_pingpong.default', Bench.pingpong, [('', 'us per iteration', same)])],
    [('ruler.udp.helper', Bench.spinning, [('', 'us, p50 of half a round trip', same)]),
     ('verbs.write_lat.8B', lambda bench: bench.perftest('ib_write_lat', ['-s', '8', *OFTEN], anywhere=True),
      [('', 'us, p50 of half a round trip', median)])],
]

RATIOS = [
    ('verbs.write_bw.64k.ratio', 'verbs.write_bw.64k', 'ruler.rc.write.64k.uring'),
    ('verbs.write_bw.64k.ucx.ratio', 'verbs.write_bw.64k', 'ruler.ucx.tcp.put.64k'),
    ('verbs.read_bw.64k.ratio', 'verbs.read_bw.64k', 'ruler.rc.read.64k.uring'),
    ('verbs.send_bw.64k.ratio', 'verbs.send_bw.64k', 'ruler.rc.send.64k.uring'),
    ('verbs.ucx.tag.64k.ratio', 'verbs.ucx.tag.64k', 'ruler.ucx.tcp.tag.64k'),
    ('verbs.fi.msg.64k.ratio', 'verbs.fi.msg.64k', 'ruler.fi.udp.64k'),
    ('verbs.fi.rdm.64k.ratio', 'verbs.fi.rdm.64k', 'ruler.fi.udp.64k'),
    ('verbs.send_bw.64B.ratio', 'verbs.send_bw.64B', 'ruler.rc.send.64B.uring'),
    ('verbs.send_lat.64B.ratio', 'verbs.send_lat.64B', 'ruler.udp.pingpong.half'),
    ('verbs.rc_pingpong.default.ratio', 'verbs.rc_pingpong.default', 'ruler.udp.pingpong.half'),
    ('verbs.write_lat.8B.ratio', 'verbs.write_lat.8B', 'ruler.udp.helper'),
]

GOALS = {
    'verbs.write_bw.64k.ratio': '>= 0.9',
    'verbs.write_bw.64k.ucx.ratio': '>= 2',
    'verbs.read_bw.64k.ratio': '>= 0.9',
    'verbs.ucx.tag.64k.ratio': '>= 1.0',
    'verbs.fi.msg.64k.ratio': '>= 20',
    'verbs.send_bw.64B': '>= 2.5',
    'verbs.send_lat.64B.ratio': '<= 1.4',
    'verbs.write_lat.8B.ratio': '<= 1.3',
    'verbs.rc_pingpong.default.ratio': '<= 5',
}

ABOUT = {
    'ruler.ucx.tcp.put.64k': 'ucx_perftest -t ucp_put_bw over TCP',
    'ruler.rc.write.64k.uring': 'cairn-perf over UDP sockets',
    'verbs.write_bw.64k': 'ib_write_bw, 128 under way',
    'ruler.ucx.tcp.tag.64k': 'ucx_perftest -t tag_bw over TCP',
    'verbs.ucx.tag.64k': 'the same over rc_verbs',
    'ruler.fi.udp.64k': 'fi_pingpong -p "udp;ofi_rxd" -e rdm',
    'verbs.fi.msg.64k': 'fi_pingpong -p verbs -e msg',
    'verbs.fi.rdm.64k': 'fi_pingpong -p "verbs;ofi_rxm" -e rdm',
    'verbs.send_bw.64B': 'ib_send_bw, 128 under way',
    'verbs.send_lat.64B': 'ib_send_lat: both ends poll',
    'verbs.rc_pingpong.default': 'ibv_rc_pingpong: 1,000 times 4,096 bytes there and back',
    'ruler.udp.helper': 'bare UDP: a helper asleep in the socket writes the word that main spins on',
    'verbs.write_lat.8B': 'ib_write_lat: both ends spin on memory',
}
