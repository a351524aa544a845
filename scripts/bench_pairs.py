"""What the suites of scripts/bench share: processes side by side, rulers, medians over alternated runs."""
import json
import os
import re
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RULER = os.path.join(ROOT, 'build/tests/rulers/udp_ruler')
LINE_RULER = os.path.join(ROOT, 'build/tests/rulers/line_ruler')
RULER_ADDRESS = '127.65.0.1'
RSIZE, BSIZE = 9, 2048
LARGE_BSIZE = 4288
LARGE_FRAME_BYTES = 4178  # path MTU 4096
EAL = ['--no-huge', '-m', '256', '--no-pci', '--no-telemetry']
LARGE_EAL = ['--no-huge', '-m', '768', '--no-pci', '--no-telemetry']


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


class Pairs:
    """Starts what is measured; a suite adds its own."""

    def __init__(self, options, work):
        self.seconds = options.seconds
        self.cpus = options.cpus
        self.work = work
        self.count = 0

    def prefix(self):
        self.count += 1
        return f'--file-prefix=cairn-bench-{os.getpid()}-{self.count}'

    def line(self):
        return last_json(start([LINE_RULER, *self.cpus]), self.seconds)['roundtrip_ns']

    def ruler(self, mode, *own):
        pinned = lambda cpu: ['taskset', '-c', cpu, RULER]
        echo = start([*pinned(self.cpus[0]), 'echo', RULER_ADDRESS])
        try:
            time.sleep(0.3)
            return last_json(start([*pinned(self.cpus[1]), mode, RULER_ADDRESS, *own, str(self.seconds)]), self.seconds)
        finally:
            echo.kill()
            echo.communicate()

    def testpmd(self, cpu, vdev, mode, *own, bsize=BSIZE):
        # The forwarding lcore and the prompt's share the CPU; the prompt sleeps.
        return start(['dpdk-testpmd', '--lcores', f'0@{cpu},1@{cpu}', self.prefix(), *EAL, vdev, '--',
                      '--no-lsc-interrupt', f'--forward-mode={mode}', '--auto-start', f'--mbuf-size={bsize + 128}',
                      '--total-num-mbufs=16384', '--nb-cores=1', '-i', *own], stdin=subprocess.PIPE)

    def testpmd_oneway(self, frame_bytes=LARGE_FRAME_BYTES):
        """Large frames sent and received, in Gbit/s."""
        return self.testpmd_pair('rxonly', 'txonly', frame_bytes, LARGE_BSIZE, 0) * frame_bytes * 8 / 1e3

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


def measure(suite, bench, runs, pattern):
    """{name: (unit, [values])} and {label: why not}; rulers and what is compared with them alternate in each run."""
    values, missing = {}, {}
    for run in range(runs):
        print(f'run {run + 1} of {runs}', file=sys.stderr)
        for label, function, readings in suite.MEASUREMENTS:
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


def summary(suite, values, runs):
    """One entry per result, then the ratios."""
    results = [{'name': name, 'value': round(statistics.median(all_values), 3), 'unit': unit,
                'min': round(min(all_values), 3), 'max': round(max(all_values), 3), 'runs': len(all_values)}
               for name, (unit, all_values) in values.items()]
    medians = {result['name']: result['value'] for result in results}
    for name, of, over in suite.RATIOS:
        if medians.get(over) and of in medians:
            results.append({'name': name, 'value': round(medians[of] / medians[over], 3), 'unit': f'of {over}',
                            'runs': runs})
    return results
