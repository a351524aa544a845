"""The common part of the cases of this folder: processes that end with their case, their results, expectations."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../support'))
import machine  # noqa: E402

EAL = ['--no-huge', '-m', '256', '--no-pci', '--no-telemetry']
SKIPPED = 77


def expect(condition, message):
    if not condition:
        print(f'FAILED: {message}')
        sys.exit(1)


def skip(reason):
    print(f'skipped: {reason}')
    sys.exit(SKIPPED)


def on_cpus(lcores):
    """Returns EAL's argument for lcores numbered from 0, on the available CPUs, in turn."""
    cpus = machine.cpus()
    return '--lcores=' + ','.join(f'{lcore}@{cpus[int(lcore) % len(cpus)]}' for lcore in lcores.split(','))


def listens(path):
    """Returns whether a socket of that name accepts connections; its file is there a moment earlier."""
    accepts = 0x10000  # __SO_ACCEPTCON
    with open('/proc/net/unix', encoding='ascii') as file:
        rows = [line.split() for line in file]
    return any(len(row) == 8 and row[7] == path and int(row[3], 16) & accepts for row in rows)


class Session:
    """The processes of one case; all end with it."""

    def __init__(self, folder):
        self.folder = folder
        self.program = os.path.join(folder, 'cairn-rpcbench')
        self.work = tempfile.mkdtemp(prefix='cairn-eal-')
        # EAL leaves megabytes per --file-prefix, and ordinary users share one folder in /tmp. These files go with the
        # case.
        os.environ['RUNTIME_DIRECTORY'] = self.work
        self.socket = os.path.join(self.work, 'memif.sock')
        self.running = []
        self.count = 0

    def close(self):
        for process in self.running:
            ended_itself = process.poll() is not None and not process.stderr.closed  # and its end was not noticed yet
            if process.poll() is None:
                process.kill()
            said = process.communicate()
            if ended_itself:
                print(f'{process.args} had ended: exit code {process.returncode}: {said[1]}')
        shutil.rmtree(self.work, ignore_errors=True)

    def memif(self, role, extra=''):
        return f'--vdev=net_memif0,role={role},socket={self.socket},socket-abstract=no,rsize=9{extra}'

    def start(self, devices, own, eal=EAL, lcores='0', wrap=(), program=None):
        self.count += 1
        prefix = f'--file-prefix={os.path.basename(self.work)}-{self.count}'
        process = subprocess.Popen([*wrap, program or self.program, on_cpus(lcores), prefix, *eal, *devices, '--',
                                    *own], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        return process

    def server(self, *own, extra='', **options):
        return self.listen(['--server', '--ip', '10.77.0.1', *own], extra, **options)

    def listen(self, own, extra='', devices=(), **options):
        """Starts the side that makes the socket, with other devices after it. Returns when the socket is there."""
        if os.path.exists(self.socket):
            os.remove(self.socket)
        process = self.start([self.memif('server', extra), *devices], own, **options)
        return await_server(process, lambda: listens(self.socket))

    def testpmd(self, mode, *own, **options):
        return self.listen(['--forward-mode', mode, '--ip', '10.77.0.1', *own],
                           program=os.path.join(self.folder, 'cairn-testpmd'), **options)

    def stream(self, **keys):
        """Arguments that give a stream to pktgen; a key without value is left out."""
        script = os.path.join(self.work, 'stream.toml')
        stream = {'source': '10.77.0.2', 'destination': '10.77.0.1', 'qpn': 0x100, 'qkey': 0x205, 'count': 2000,
                  'rate_pps': 50000, **keys}
        with open(script, 'w', encoding='utf-8') as file:
            file.write('[stream]\n')
            for key, value in stream.items():
                if value is not None:
                    file.write(f'{key} = {json.dumps(value)}\n')
        return ['--script', script, '--json']

    def pktgen(self, **keys):
        """Sends a stream over memif. Returns the counts."""
        return result_of(self.start([self.memif('client')], self.stream(**keys),
                                    program=os.path.join(self.folder, 'cairn-pktgen')))

    def client(self, *own, extra='', **options):
        return self.start([self.memif('client', extra)],
                          ['--peer', '10.77.0.1', '--ip', '10.77.0.2', '--json', *own], **options)


def run_case(*functions):
    """Runs the function that the first argument names; the second is the folder of programs."""
    session = Session(sys.argv[2])
    try:
        {function.__name__: function for function in functions}[sys.argv[1]](session)
    except machine.Unavailable as why:
        skip(why)
    finally:
        session.close()
    left = glob.glob(f'/var/run/dpdk/{os.path.basename(session.work)}*')
    expect(not left, f'EAL left {left}')


def result_of(process, timeout=40):
    out, err = process.communicate(timeout=timeout)
    expect(process.returncode == 0, f'exit code {process.returncode}: {err}')
    return json.loads(out.strip().splitlines()[-1])


def await_server(process, is_there, patience_s=60):
    """Returns the process once it serves. Its output until then fits into the pipe."""
    until = time.monotonic() + patience_s
    while not is_there() and process.poll() is None:
        expect(time.monotonic() < until, f'{process.args} does not serve after {patience_s} s')
        time.sleep(0.05)
    if process.poll() is not None:
        expect(False, f'{process.args} ended: {process.stderr.read()}')
    return process


def await_start(process):
    """Returns when a program has reported its worker. Then its port has its buffers, and its stderr is the pipe again,
    no longer the memory that holds EAL's words."""
    expect(any(line.startswith('worker 0 as ') for line in process.stderr), 'the program did not start')


def await_calls(process):
    """Returns when a client of cairn-rpcbench has reported a second with calls."""
    for line in process.stderr:
        if line.startswith('calls ') and not line.startswith('calls 0.000'):
            return
    expect(False, 'the client ended without calls')


def end(process, timeout=20):
    """Asks for a clean stop; returns stderr."""
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=timeout)
    expect(process.returncode == 0, f'exit code {process.returncode} after SIGTERM: {err}')
    return err


def expect_refused(process, program, named):
    """Checks that a program ended with one line that names the cause and the remedy, and exit code 2."""
    out, err = process.communicate(timeout=30)
    said = [line for line in err.splitlines() if line.startswith(f'{program}: ')]
    expect(process.returncode == 2, f'{process.args}: exit code {process.returncode}: {err}')
    expect(len(said) == 1 and named in said[0] and out == '', f'{process.args}: said {err!r}')
