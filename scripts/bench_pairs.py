"""The common part of the suites of scripts/bench: processes that run at the same time, rulers."""
import contextlib
import json
import os
import re
import subprocess
import time

from bench_runs import ROOT, Failed
import machine
from machine import Unavailable


RULER = os.path.join(ROOT, 'build/tests/rulers/udp_ruler')
LINE_RULER = os.path.join(ROOT, 'build/tests/rulers/line_ruler')
FRAME_RULER = os.path.join(ROOT, 'build/tests/rulers/frame_ruler')
VERBS_RULER = os.path.join(ROOT, 'build/tests/rulers/verbs_ruler')
STREAM_RULER = os.path.join(ROOT, 'build/tests/rulers/stream_ruler')
RSIZE, BSIZE = 9, 2048
LARGE_BSIZE = 4288
LARGE_FRAME_BYTES = 4178  # path MTU 4096
START_SECONDS = 0.8  # of a program before it measures
EAL = ['--no-huge', '-m', '256', '--no-pci', '--no-telemetry']
LARGE_EAL = ['--no-huge', '-m', '768', '--no-pci', '--no-telemetry']


def memif(role, socket, bsize=BSIZE):
    return f'--vdev=net_memif0,role={role},socket={socket},socket-abstract=no,rsize={RSIZE},bsize={bsize}'


def start(command, **options):
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    except FileNotFoundError as error:
        raise Unavailable(f'there is no {error.filename}') from error


def last_line(text, otherwise):
    """Returns the last line of a program, preferably one with its own name."""
    lines = text.strip().splitlines() or [otherwise]
    return ([line for line in lines if line.startswith('cairn-')] or lines)[-1]


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
            raise Failed(last_line(process.communicate()[1], f'it ended before {path} was there'))
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
        raise Failed(last_line(err, 'no output'))
    return json.loads(out.strip().splitlines()[-1])


class Pairs:
    """Starts the measured programs; a suite adds its own."""

    def __init__(self, seconds, cpus, work):
        self.seconds = seconds
        self.given_cpus = cpus
        self.work = work
        self.count = 0

    @property
    def cpus(self):
        if len(self.given_cpus) < 2:
            raise Unavailable('two CPUs are needed and this process may run on one')
        return self.given_cpus

    def prefix(self):
        self.count += 1
        return f'--file-prefix={os.path.basename(self.work)}-{self.count}'

    def line(self):
        return last_json(start([LINE_RULER, *self.cpus]), self.seconds)['roundtrip_ns']

    def line_beside(self, first, second):
        """Measures the line between two working processes, which stand still for that millisecond or less: a virtual
        machine's CPUs move, not only from run to run. Returns None if one of them has ended."""
        time.sleep(START_SECONDS + self.seconds / 2)
        if first.poll() is not None or second.poll() is not None:
            return {}
        ruler = start([LINE_RULER, *self.cpus, str(first.pid), str(second.pid)])
        return {'line_ns': last_json(ruler, self.seconds)['roundtrip_ns']}

    def stream(self):
        """Measures 8 MB buffers through a ring of shared memory, in Gbit/s."""
        return last_json(start([STREAM_RULER, *self.cpus, str(self.seconds)]), self.seconds)['gbit_s']

    @contextlib.contextmanager
    def joined(self, first_end, bsize=BSIZE):
        """Yields the first of two processes on a memif link, started by a function of a CPU and a --vdev, and the CPU
        and the --vdev of the second one. Ends the first one afterwards."""
        socket = os.path.join(self.work, f'memif-{self.count}.sock')
        first = first_end(self.cpus[0], memif('server', socket, bsize))
        try:
            wait_for(socket, first)
            yield first, (self.cpus[1], memif('client', socket, bsize))
        finally:
            stop(first)
            if os.path.exists(socket):
                os.remove(socket)

    def pingpong(self, program, *own):
        """Measures the round trip of one message with a ruler that has an echo, one under way."""
        def end(cpu, vdev, *mode):
            return start([program, '--lcores', f'0@{cpu}', self.prefix(), *EAL, vdev, '--', *mode])

        with self.joined(lambda *where: end(*where, 'echo')) as (echo, where):
            asking = end(*where, *own, str(START_SECONDS + self.seconds))
            line = self.line_beside(echo, asking)
            return last_json(asking, self.seconds) | line

    def frame(self, frame_bytes):
        """Measures one frame over memif."""
        return self.pingpong(FRAME_RULER, 'pingpong', str(frame_bytes))

    def verbs(self, way):
        """Measures one message over a connection of Cairn's."""
        return self.pingpong(VERBS_RULER, way)

    def ruler(self, mode, *own, echo='echo'):
        address = machine.loopback(4)
        pinned = lambda cpu: ['taskset', '-c', cpu, RULER]
        echo = start([*pinned(self.cpus[0]), echo, address])
        try:
            time.sleep(0.3)
            return last_json(start([*pinned(self.cpus[1]), mode, address, *own, str(self.seconds)]), self.seconds)
        finally:
            echo.kill()
            echo.communicate()

    def testpmd(self, cpu, vdev, mode, *own, bsize=BSIZE):
        # The forwarding lcore and the prompt's share the CPU; the prompt sleeps.
        return start(['dpdk-testpmd', '--lcores', f'0@{cpu},1@{cpu}', self.prefix(), *EAL, vdev, '--',
                      '--no-lsc-interrupt', f'--forward-mode={mode}', '--auto-start', f'--mbuf-size={bsize + 128}',
                      '--total-num-mbufs=16384', '--nb-cores=1', '-i', *own], stdin=subprocess.PIPE)

    def testpmd_oneway(self, frame_bytes=LARGE_FRAME_BYTES):
        """Measures large frames sent and received, in Gbit/s."""
        return self.testpmd_pair('rxonly', 'txonly', frame_bytes, LARGE_BSIZE, 0) * frame_bytes * 8 / 1e3

    def testpmd_pair(self, server_mode, client_mode, frame_bytes, bsize, looked_at):
        """Returns the receive rate of the server (0) or the client (1) of two testpmds, in Mpps."""
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
