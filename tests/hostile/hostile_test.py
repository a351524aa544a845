#!/usr/bin/env python3
"""Attacks on the programs, over UDP sockets and over shared memory, while honest clients work.

    hostile_test.py CASE FOLDER_OF_PROGRAMS ATTACKER RELAY [ATTACK...]

Each case is a test of its own: exit 0 passed, 77 skipped with the reason on stdout, else failed. Each attack must leave
this true. The server lives. No honest call fails or hangs. Honest clients have at least 0.7 of the rate that they had
just before. A new client is served within a second more than before. The server's memory grows by less than 16 MB. A
host in whose name packets were sent gets at most three bytes for each byte of them.
"""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'eal'))

from session import await_server, end, expect, listens, machine, result_of, run_case, skip  # noqa: E402
from sockets import await_socket, start  # noqa: E402

LEAST_SHARE = 0.7
MOST_MEMORY_KB = 16 * 1024
MOST_AMPLIFICATION = 3.0
MOST_SECONDS_TO_BEGIN = 1.0
TRIES = 3  # tries to get a rate: other work on the machine is no attack

ATTACKER, RELAY = sys.argv[3:5]
SERVICES = {'cairn-rpcbench': 31850, 'cairn-perf': 18515}
RATES = {'cairn-rpcbench': 'rate_mops', 'cairn-perf': 'gbit_s'}


class Sockets:
    """Server, clients and attackers are addresses of the loopback."""

    def __init__(self, session):
        self.session = session
        self.target, self.client_address, self.newcomer = (machine.loopback(host) for host in (1, 2, 3))
        # No test has addresses below it; see machine.loopback.
        self.attackers = ['--own', f'127.{192 + os.getpid() % 60}.{os.getpid() // 60 % 250}.0']

    def server(self, program, *own):
        return await_socket(start(self.session, '--port', f'uring:{self.target}', '--server', '--json', *own,
                                  program=program), self.target)

    def client(self, program, address, *own):
        return start(self.session, '--port', f'uring:{address}', '--peer', self.target, '--json', *own,
                     program=program)


class Memif:
    """A shared-memory link; a relay in the middle of it lets attackers onto it."""
    target, client_address, newcomer = '10.77.0.250', '10.77.0.251', '10.77.0.252'

    def __init__(self, session, *devices):
        if len(machine.cpus()) < 2:
            skip('three pollers want two CPUs')
        self.session, self.devices = session, devices
        self.outside = os.path.join(session.work, 'outside.sock')
        relay = machine.loopback(1)
        self.relay = [relay, '9000']
        self.attackers = ['--own', '10.77.0.0', '--relay', f'{relay}:9000']

    def device(self, number, role, socket):
        return f'--vdev=net_memif{number},role={role},socket={socket},socket-abstract=no,rsize=9'

    def server(self, program, *own):
        path = os.path.join(self.session.folder, program)
        server = self.session.listen(['--server', '--json', '--ip', self.target, *own], devices=self.devices,
                                     program=path)
        relay = self.session.start([self.device(0, 'client', self.session.socket),
                                    self.device(1, 'server', self.outside)], self.relay, lcores='1', program=RELAY)
        await_server(relay, lambda: listens(self.outside))
        return server

    def client(self, program, address, *own):
        return self.session.start([self.device(0, 'client', self.outside)],
                                  ['--peer', self.target, '--ip', address, '--json', *own], lcores='1',
                                  program=os.path.join(self.session.folder, program))


def memory_kb(process):
    with open(f'/proc/{process.pid}/status', encoding='ascii') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('VmRSS:'))


def attack(link, program, name, *more, rate=5000, seconds=60):
    """Starts the attacker. SIGTERM ends it; result_of() says how far it got."""
    session = link.session
    session.count += 1
    process = subprocess.Popen(
        [ATTACKER, '--attack', name, '--target', link.target, *link.attackers, '--service', str(SERVICES[program]),
         '--seconds', str(seconds), '--rate', str(rate), '--seed', str(os.getpid() * 100 + session.count), *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    session.running.append(process)
    return process


class Target:
    """A program under attack, and its honest clients."""

    def __init__(self, link, program, *calls, server=()):
        self.link, self.program, self.calls = link, program, calls
        self.process = link.server(program, *server)
        self.run(link.client_address, 0.3)  # afterwards the server has its memory

    def run(self, address, seconds):
        result = result_of(self.link.client(self.program, address, '--duration', str(seconds), *self.calls))
        lost = {key: result[key] for key in ('failed', 'calls_unfinished', 'requests_unfinished') if result.get(key)}
        expect(not lost, f'honest work was lost: {lost}')
        return result

    def rate(self):
        return self.run(self.link.client_address, 0.5)[RATES[self.program]]

    def seconds_to_begin(self):
        began = time.monotonic()
        self.run(self.link.newcomer, 0.05)
        return time.monotonic() - began

    def withstand(self, name, wait=0.5, **options):
        """Runs one attack, and checks all that it must not do."""
        def expects(condition, message):
            expect(condition, f'{name}: {message}')

        before_kb = memory_kb(self.process)
        for _ in range(TRIES):
            begins, alone = self.seconds_to_begin(), self.rate()
            attacker = attack(self.link, self.program, name, **options)
            time.sleep(wait)
            began, attacked = self.seconds_to_begin(), self.rate()
            attacker.send_signal(signal.SIGTERM)
            told = result_of(attacker)
            expects(self.process.poll() is None, 'the server ended')
            expects(told['worst_amplification'] <= MOST_AMPLIFICATION, f'amplified: {told}')
            share = attacked / min(alone, self.rate())
            if share >= LEAST_SHARE and began < begins + MOST_SECONDS_TO_BEGIN:
                break
        expects(share >= LEAST_SHARE, f'the honest have {share:.2f} of their rate')
        expects(began < begins + MOST_SECONDS_TO_BEGIN, f'a new client took {began:.2f} s, {begins:.2f} s before')
        grown_kb = memory_kb(self.process) - before_kb
        expects(grown_kb < MOST_MEMORY_KB, f'memory grew by {grown_kb} KB')
        print(f'{name}: {share:.2f} of the rate, a client begins in {began:.2f} s ({begins:.2f} before), '
              f'{grown_kb} KB more, {told}', flush=True)
        return told


def withstand_all(target, *attacks, **options):
    for name in attacks:
        target.withstand(name, **options)
    end(target.process)


def calls(link, *attacks):
    withstand_all(Target(link, 'cairn-rpcbench'), *attacks)


def large_calls(link, *attacks):
    """Clients that announce and do not send leave room for the others."""
    target = Target(link, 'cairn-rpcbench', '--req', '100000', '--window', '4', '--sessions', '1')
    withstand_all(target, *attacks)


def operations(link, *attacks):
    withstand_all(Target(link, 'cairn-perf', '--op', 'write', '--size', '4096'), *attacks, rate=1000)


def rping(session):
    """Clients that ask and then stay silent leave neither memory nor completions behind at rping's server."""
    link, program = Sockets(session), 'cairn-perf'

    service = ['--service-port', str(SERVICES[program])]

    def pings():
        result = result_of(link.client(program, link.client_address, '--rping', '--count', '100', *service))
        expect(result['pings'] == 100, f'{result}')

    server = link.server(program, '--rping', *service)
    pings()
    before_kb = memory_kb(server)
    attacker = attack(link, program, 'req-many-hosts', rate=2000)
    time.sleep(4)
    grown_kb = memory_kb(server) - before_kb
    attacker.send_signal(signal.SIGTERM)
    told = result_of(attacker)
    expect(told['packets'] > 1000, f'{told}')
    expect(grown_kb < MOST_MEMORY_KB // 2, f'memory grew by {grown_kb} KB')
    pings()
    end(server)
    print(f'rping: {grown_kb} KB more, {told}', flush=True)


def rping_once(session):
    """Clients that ask and then stay silent are not counted: rping's server for one client waits for the real one and
    ends with it. It keeps nothing of the others."""
    link, program = Sockets(session), 'cairn-perf'
    service = ['--rping', '--service-port', str(SERVICES[program])]
    server = link.server(program, *service, '--once')
    told = result_of(attack(link, program, 'req-many-hosts', rate=100, seconds=1))
    expect(told['packets'] > 16, f'{told}')
    time.sleep(9)  # until the server has given the silent clients up
    expect(server.poll() is None, 'the server ended without a client')
    result = result_of(link.client(program, link.client_address, *service, '--count', '10'))
    expect(result['pings'] == 10, f'{result}')
    out, err = server.communicate(timeout=20)
    expect(server.returncode == 0, f'exit code {server.returncode}: {err}')
    print(f'rping: {told}, {json.loads(out)}', flush=True)


def memif_left_behind(session):
    """Clients that ask and then stay silent leave no memory behind at a server whose blocks are EAL's.

    EAL clears a block that it takes back, so it writes to the whole block. The server with one more device, which sends
    from EAL's memory only, has such blocks. It gives its silent clients up some seconds after they have asked."""
    link, program = Memif(session, '--vdev=net_null0'), 'cairn-perf'
    target = Target(link, program, '--op', 'write', '--size', '4096')
    before_kb = memory_kb(target.process)
    attacker = attack(link, program, 'half-open', rate=1000)
    time.sleep(12)
    grown_kb = memory_kb(target.process) - before_kb
    attacker.send_signal(signal.SIGTERM)
    told = result_of(attacker)
    expect(told['reached'] > 16, f'no client was half open: {told}')
    expect(grown_kb < MOST_MEMORY_KB, f'memory grew by {grown_kb} KB')
    end(target.process)
    print(f'left behind: {grown_kb} KB more, {told}', flush=True)


def idle(session, system, *both):
    """A host that holds sessions without using them leaves places for others. It answers the server's probes, so the
    attack lasts longer than the server waits for a silent peer."""
    system = ['--system', system, *both]
    target = Target(Sockets(session), 'cairn-rpcbench', *system, '--sessions', '4',
                    server=[*system, '--sessions', '64', '--host-sessions', '0', '--peer-timeout', '1000'])
    told = target.withstand('idle-' + system[1], wait=3)
    expect(40 < told['reached'] < 64, f'sessions were held: {told}')
    end(target.process)


def idle_copyrpc(session):
    idle(session, 'copyrpc')


def idle_scalerpc(session):
    idle(session, 'scalerpc', '--block', '128', '--blocks', '16')


def restart(session):
    """A recorded session executes nothing at a server that was started since."""
    link, program, file = Sockets(session), 'cairn-rpcbench', os.path.join(session.work, 'session')

    def served(*attacker, **options):
        server = link.server(program)
        told = result_of(attack(link, program, *attacker, '--file', file, **options))
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=20)
        expect(server.returncode == 0, f'exit code {server.returncode}: {err}')
        return json.loads(out.strip().splitlines()[-1])['requests_handled'], told

    handled, told = served('record')
    expect(handled > 8, f'the session to be recorded made {handled} calls: {told}')
    handled, told = served('replay', seconds=1)
    expect(handled == 0, f'{handled} late requests were executed: {told}')


PACKETS = ('junk', 'reserved', 'guesses', 'ports')
SESSIONS = ('connect-bystanders', 'hoard', 'announce', 'mutate', 'half-sent', 'abandoned-slots', 'slow-reader',
            'guessed-ends')
REQUESTS = ('req-bystanders', 'half-open', 'req-large', 'established', 'sidr-bystanders', 'guessed-ids')


def socket_calls(session):
    calls(Sockets(session), *(sys.argv[5:] or SESSIONS))


def socket_large_calls(session):
    large_calls(Sockets(session), *(sys.argv[5:] or ('announce', 'half-sent')))


def socket_operations(session):
    operations(Sockets(session), *(sys.argv[5:] or REQUESTS))


def socket_packets(session):
    calls(Sockets(session), *(sys.argv[5:] or PACKETS))


def memif_calls(session):
    calls(Memif(session), *(sys.argv[5:] or (*SESSIONS, *PACKETS)))


def memif_operations(session):
    operations(Memif(session), *(sys.argv[5:] or REQUESTS))


run_case(socket_calls, socket_large_calls, socket_operations, socket_packets, memif_calls, memif_operations,
         memif_left_behind, idle_copyrpc, idle_scalerpc, rping, rping_once, restart)
