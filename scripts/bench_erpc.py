"""What scripts/bench erpc measures: each run starts two processes and gives figures."""
import json
import os
import re
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, 'build/apps/cairn-rpcbench')
RULER = os.path.join(ROOT, 'build/tests/rulers/udp_ruler')
LINE_RULER = os.path.join(ROOT, 'build/tests/rulers/line_ruler')
RSIZE, BSIZE = 9, 2048
LARGE_BSIZE = 4288
FRAME_BYTES = 114  # of a 32-byte request or response, without FCS
LARGE_FRAME_BYTES = 4178  # path MTU 4096
DATAGRAM_BYTES = 72  # BTH ... ICRC of a 32-byte request or response
EAL = ['--no-huge', '-m', '256', '--no-pci', '--no-telemetry']
LARGE_EAL = ['--no-huge', '-m', '768', '--no-pci', '--no-telemetry']
LARGE = ['--req', '8388608', '--resp', '32', '--window', '1', '--sessions', '1', '--path-mtu', '4096',
         '--credits', '96', '--burst', '32']
CONTROL = ['--cc', 'timely', '--link-gbit', '100']
SERVER, CLIENT, THIRD = '127.66.0.1', '127.66.0.2', '127.66.0.3'


class Failed(Exception):
    """A run that gave no figure; says why."""


def memif(role, socket, bsize=BSIZE):
    return f'--vdev=net_memif0,role={role},socket={socket},socket-abstract=no,rsize={RSIZE},bsize={bsize}'


def start(command, **options):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def stop(process):
    if process.poll() is None:
        process.terminate()
    try:
        return process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def wait_for(path, process):
    for _ in range(100):
        if os.path.exists(path):
            return
        if process.poll() is not None:
            raise Failed(process.communicate()[1].strip().splitlines()[-1])
        time.sleep(0.05)
    raise Failed(f'{path} did not appear')


def last_json(process, seconds):
    try:
        out, err = process.communicate(timeout=seconds + 30)
    except subprocess.TimeoutExpired as late:
        process.kill()
        process.communicate()
        raise Failed('no result in time') from late
    if process.returncode != 0 or not out.strip():
        raise Failed((err.strip().splitlines() or ['no output'])[-1])
    return json.loads(out.strip().splitlines()[-1])


class Bench:
    def __init__(self, options, work):
        self.seconds = options.seconds
        self.cpus = options.cpus
        self.work = work
        self.count = 0

    def prefix(self):
        self.count += 1
        return f'--file-prefix=cairn-bench-{os.getpid()}-{self.count}'

    def rpcbench(self, cpu, vdev, address, *own, wrap=(), eal=EAL):
        return start([*wrap, BENCH, '--lcores', f'0@{cpu}', self.prefix(), *eal, vdev, '--', '--poll', 'spin', '--ip',
                      address, '--duration', str(self.seconds), '--json', *own])

    def pair(self, first_own, second_own, eal=EAL, bsize=BSIZE):
        """Two processes over memif; the results of those that end by themselves, and the other's error text."""
        socket = os.path.join(self.work, f'memif-{self.count}.sock')
        first = self.rpcbench(self.cpus[0], memif('server', socket, bsize), '10.77.0.1', *first_own, eal=eal)
        try:
            wait_for(socket, first)
            second = self.rpcbench(self.cpus[1], memif('client', socket, bsize), '10.77.0.2', *second_own, eal=eal)
            results = [last_json(second, self.seconds)]
            if '--peer' in first_own:
                results.append(last_json(first, self.seconds))
            return results
        finally:
            stop(first)
            if os.path.exists(socket):
                os.remove(socket)

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
        """Calls over so many sessions in turn, and over 8, in the same run."""
        many = self.pair(['--server', '--burst', '32'], ['--peer', '10.77.0.1', '--sessions', str(count)],
                         eal=LARGE_EAL)[0]
        return many['rate_mops'], self.oneway()['rate_mops']

    def large(self, drop_per_million=0):
        own = [*LARGE, *CONTROL, '--drop-per-million', str(drop_per_million)]
        return self.pair(['--server', *own], ['--peer', '10.77.0.1', *own], eal=LARGE_EAL, bsize=LARGE_BSIZE)[0]

    def sockets(self, server_own, client_own, poll='spin', cpus=None, third=False):
        """A server and a client over UDP sockets, pinned unless `cpus` says otherwise; perhaps a third one that is
        connected and calls nothing."""
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

    def line(self):
        return last_json(start([LINE_RULER, *self.cpus]), self.seconds)['roundtrip_ns']

    def ruler(self, mode, *own):
        pinned = lambda cpu: ['taskset', '-c', cpu, RULER]
        echo = start([*pinned(self.cpus[0]), 'echo', SERVER])
        try:
            time.sleep(0.3)
            return last_json(start([*pinned(self.cpus[1]), mode, SERVER, *own, str(self.seconds)]), self.seconds)
        finally:
            echo.kill()
            echo.communicate()

    def beside_idle_third(self):
        """What a client reaches beside a third process that is only connected, over what it reaches without: all
        adaptive and unpinned."""
        free = [None, None]
        alone = self.sockets([], [], poll='adaptive', cpus=free)
        beside = self.sockets([], [], poll='adaptive', cpus=free, third=True)
        return beside['rate_mops'] / alone['rate_mops']

    def beside_busy(self):
        """Round trips per second of an unpinned adaptive pair beside a process that never rests."""
        busy = start([sys.executable, '-c', 'while True: pass'])
        try:
            one = ['--window', '1', '--sessions', '1']
            return self.sockets([], one, poll='adaptive', cpus=[None, None])['rate_mops'] * 1e6
        finally:
            busy.kill()
            busy.communicate()

    def testpmd(self, cpu, vdev, mode, *own, bsize=BSIZE):
        # The forwarding lcore and the prompt's share the CPU; the prompt sleeps.
        return start(['dpdk-testpmd', '--lcores', f'0@{cpu},1@{cpu}', self.prefix(), *EAL, vdev, '--',
                      '--no-lsc-interrupt', f'--forward-mode={mode}', '--auto-start', f'--mbuf-size={bsize + 128}',
                      '--total-num-mbufs=16384', '--nb-cores=1', '-i', *own], stdin=subprocess.PIPE)

    def macswap(self):
        """Frames echoed, in Mpps."""
        return self.testpmd_pair('macswap', 'flowgen', FRAME_BYTES, BSIZE, looked_at=1)

    def testpmd_oneway(self):
        """Large frames sent and received, in Gbit/s."""
        return self.testpmd_pair('rxonly', 'txonly', LARGE_FRAME_BYTES, LARGE_BSIZE, 0) * LARGE_FRAME_BYTES * 8 / 1e3

    def testpmd_pair(self, server_mode, client_mode, frame_bytes, bsize, looked_at):
        """What the server (0) or the client (1) of two testpmds receives, in Mpps."""
        socket = os.path.join(self.work, f'ruler-{self.count}.sock')
        pair = [self.testpmd(self.cpus[0], memif('server', socket, bsize), server_mode, bsize=bsize)]
        try:
            wait_for(socket, pair[0])
            pair.append(self.testpmd(self.cpus[1], memif('client', socket, bsize), client_mode,
                                     f'--txpkts={frame_bytes}', bsize=bsize))
            time.sleep(2)
            for pause in (self.seconds, 0.3):
                pair[looked_at].stdin.write('show port stats all\n')
                pair[looked_at].stdin.flush()
                time.sleep(pause)
            out, _ = pair[looked_at].communicate('quit\n', timeout=20)
        finally:
            for each in pair:
                if each.poll() is None:
                    try:
                        each.communicate('quit\n', timeout=20)
                    except (subprocess.TimeoutExpired, ValueError):
                        each.kill()
        rates = [int(rate) for rate in re.findall(r'Rx-pps:\s+(\d+)', out)]
        if len(rates) < 2 or rates[1] == 0:
            raise Failed('testpmd received nothing')
        return rates[1] / 1e6

    def af_packet(self):
        if os.geteuid() != 0:
            raise Failed('network namespaces need root')
        names = [f'cairnbench{os.getpid()}{side}' for side in 'ab']
        run = lambda *command: subprocess.run(command, check=True, capture_output=True, text=True)
        try:
            for name in names:
                run('ip', 'netns', 'add', name)
            run('ip', 'link', 'add', 'cva', 'netns', names[0], 'type', 'veth', 'peer', 'name', 'cvb', 'netns', names[1])
            for name, link in zip(names, ('cva', 'cvb')):
                run('ip', '-n', name, 'link', 'set', link, 'up')
            both = [self.rpcbench(self.cpus[i], f'--vdev=net_af_packet0,iface={link}', f'10.77.1.{i + 1}', '--server',
                                  '--peer', f'10.77.1.{2 - i}', '--burst', '32',
                                  wrap=('ip', 'netns', 'exec', names[i]))
                    for i, link in enumerate(('cva', 'cvb'))]
            try:
                return sum(last_json(process, self.seconds)['rate_mops'] for process in both) / 2
            finally:
                for process in both:
                    stop(process)
        except subprocess.CalledProcessError as error:
            raise Failed(error.stderr.strip() or 'ip refused') from error
        finally:
            for name in names:
                subprocess.run(['ip', 'netns', 'del', name], capture_output=True, check=False)


# What a run gives: label, what is started, and [(result name, unit, how it is read)]. Rulers stand next to what is
# compared with them.
MEASUREMENTS = [
    ('ruler.cpu.line', Bench.line, [('', 'ns, there and back', lambda ns: ns)]),
    ('ruler.testpmd.macswap.memif', Bench.macswap, [('', 'Mpps', lambda rate: rate)]),
    ('erpc.small.oneway.memif', Bench.oneway, [('', 'Mops', lambda result: result['rate_mops'])]),
    ('erpc.small.oneway.cc.memif', Bench.oneway_controlled, [('', 'Mops', lambda result: result['rate_mops'])]),
    ('erpc.small.symmetric.memif', Bench.symmetric, [('', 'Mops per core', lambda rate: rate)]),
    ('erpc.lat.memif', Bench.latency, [('.p50', 'us', lambda result: result['p50_us']),
                                       ('.p99', 'us', lambda result: result['p99_us'])]),
    ('erpc.small.symmetric.af_packet', Bench.af_packet, [('', 'Mops per core', lambda rate: rate)]),
    ('erpc.sessions20k.memif', lambda bench: bench.sessions(20000),
     [('', 'Mops', lambda rates: rates[0]), ('.ratio', 'of 8 sessions', lambda rates: rates[0] / rates[1])]),
    ('ruler.testpmd.oneway.memif', Bench.testpmd_oneway, [('', 'Gbit/s', lambda rate: rate)]),
    ('erpc.large.memif', Bench.large, [('', 'Gbit/s', lambda result: result['gbit_s'])]),
    ('erpc.large.memif.loss1e-3', lambda bench: bench.large(1000), [('', 'Gbit/s', lambda result: result['gbit_s'])]),
    ('erpc.large.memif.loss1e-2', lambda bench: bench.large(10000), [('', 'Gbit/s', lambda result: result['gbit_s'])]),
    ('ruler.udp.mmsg', lambda bench: bench.ruler('mmsg', str(DATAGRAM_BYTES), '60'),
     [('', 'Mops', lambda result: result['rate_mops'])]),
    ('erpc.small.oneway.uring', lambda bench: bench.sockets([], []),
     [('', 'Mops', lambda result: result['rate_mops'])]),
    ('ruler.udp.pingpong', lambda bench: bench.ruler('pingpong', str(DATAGRAM_BYTES)),
     [('.p50', 'us', lambda result: result['p50_us'])]),
    ('erpc.lat.uring', lambda bench: bench.sockets([], ['--window', '1', '--sessions', '1']),
     [('.p50', 'us', lambda result: result['p50_us'])]),
    ('erpc.large.uring', lambda bench: bench.sockets(LARGE, LARGE), [('', 'Gbit/s', lambda result: result['gbit_s'])]),
    ('erpc.adaptive.third.uring', Bench.beside_idle_third, [('', 'of the undisturbed rate', lambda ratio: ratio)]),
    ('erpc.adaptive.busy.uring', Bench.beside_busy, [('', 'round trips/s', lambda rate: rate)]),
]

# A median over a median: name, of what, over what.
RATIOS = [
    ('erpc.small.oneway.ratio', 'erpc.small.oneway.memif', 'ruler.testpmd.macswap.memif'),
    ('erpc.small.oneway.cc.ratio', 'erpc.small.oneway.cc.memif', 'erpc.small.oneway.memif'),
    ('erpc.large.ratio', 'erpc.large.memif', 'ruler.testpmd.oneway.memif'),
    ('erpc.large.loss1e-3.ratio', 'erpc.large.memif.loss1e-3', 'erpc.large.memif'),
    ('erpc.large.loss1e-2.ratio', 'erpc.large.memif.loss1e-2', 'erpc.large.memif'),
    ('erpc.small.uring.ratio', 'erpc.small.oneway.uring', 'ruler.udp.mmsg'),
    ('erpc.lat.uring.ratio', 'erpc.lat.uring.p50', 'ruler.udp.pingpong.p50'),
]

GOALS = {
    'erpc.small.oneway.memif': '>= 8.5',
    'erpc.small.oneway.ratio': '>= 0.8',
    'erpc.small.oneway.cc.ratio': '>= 0.95',
    'erpc.small.symmetric.memif': '>= 5.0',
    'erpc.lat.memif.p50': '<= 1.2',
    'erpc.lat.memif.p99': '<= 1.5',
    'erpc.small.symmetric.af_packet': '>= 0.36',
    'erpc.sessions20k.memif.ratio': '>= 0.8',
    'erpc.large.memif': '>= 60',
    'erpc.large.ratio': '>= 0.45',
    'erpc.large.loss1e-3.ratio': '>= 0.5',
    'erpc.large.loss1e-2.ratio': '>= 0.1',
    'erpc.small.oneway.uring': '>= 4.0',
    'erpc.small.uring.ratio': '>= 2',
    'erpc.lat.uring.ratio': '<= 1.3',
    'erpc.large.uring': '>= 36',
    'erpc.adaptive.third.uring': '>= 0.8',
    'erpc.adaptive.busy.uring': '>= 100000',
}


def measure(bench, runs, pattern):
    """{name: (unit, [values])} and {label: why not}; rulers and what is compared with them alternate in each run."""
    values, missing = {}, {}
    for run in range(runs):
        print(f'run {run + 1} of {runs}', file=sys.stderr)
        for label, function, readings in MEASUREMENTS:
            if not re.search(pattern, label):
                continue
            try:
                result = function(bench)
            except Failed as why:
                missing[label] = str(why)
                continue
            for suffix, unit, read in readings:
                values.setdefault(label + suffix, (unit, []))[1].append(read(result))
    return values, missing


def summary(values, runs):
    """One entry per result, then the ratios."""
    results = [{'name': name, 'value': round(statistics.median(all_values), 3), 'unit': unit,
                'min': round(min(all_values), 3), 'max': round(max(all_values), 3), 'runs': len(all_values)}
               for name, (unit, all_values) in values.items()]
    medians = {result['name']: result['value'] for result in results}
    for name, of, over in RATIOS:
        if medians.get(over) and of in medians:
            results.append({'name': name, 'value': round(medians[of] / medians[over], 3), 'unit': f'of {over}',
                            'runs': runs})
    return results
