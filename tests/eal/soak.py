#!/usr/bin/env python3
"""Simulated worlds with ever new seeds, and programs under load with losses, for as long as asked.

    soak.py CASE FOLDER_OF_PROGRAMS

A case takes its share of $CAIRN_SOAK_MINUTES. The seeds begin with $SIM_SEED. Exit 0 passed, else failed.
"""
import os
import subprocess
import time

from perf_over_ports import Memif, Sockets, stop
from session import end, expect, result_of, run_case
from sockets import client, listen

CASES = 14
SHARE_S = 60 * float(os.environ.get('CAIRN_SOAK_MINUTES', '1')) / CASES
FIRST_SEED = int(os.environ.get('SIM_SEED', int(time.time()) * 1_000_000))
LOSSES = ['--drop-per-million', '3000']
GROWTH_BYTES = 16 << 20

BOTH = ['--resp', '4000', '--path-mtu', '4096', *LOSSES]
SERVED = [*BOTH, '--req', '300000']
CALLS = (['--req', '32'], ['--req', '4000', '--sessions', '200'], ['--req', '0', '--window', '1'],
         ['--req', '300000', '--window', '4', '--sessions', '2'])
OPERATIONS = (['--op', 'write', '--size', '65536'], ['--op', 'read', '--size', '10001', '--qps', '20'],
              ['--op', 'send', '--size', '8', '--depth', '64'], ['--op', 'fadd'],
              ['--op', 'send', '--transport', 'uc', '--size', '4000'],
              ['--op', 'write', '--size', '1000000', '--depth', '4'])


def live_through(session, *own):
    """Runs histories of seeds from FIRST_SEED on. cairn-sim names the commands that replay those that break a
    promise."""
    command = [os.path.join(session.folder, 'cairn-sim'), *own, '--first', str(FIRST_SEED),
               '--minutes', str(SHARE_S / 60), '--json']
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    session.running.append(process)
    result = result_of(process, timeout=SHARE_S + 600)
    expect(result['histories'] > 0 and not result['failures'], f'{result}')
    print(f'{result["histories"]} histories from seed {FIRST_SEED} on')


def world_erpc(session):
    live_through(session, '--world', 'erpc')


def world_small(session):
    live_through(session, '--small')


def world_rc(session):
    live_through(session, '--world', 'rc')


def world_cm(session):
    live_through(session, '--world', 'cm')


def world_ud(session):
    live_through(session, '--world', 'ud')


def world_verbs(session):
    live_through(session, '--world', 'verbs')


def world_copyrpc(session):
    live_through(session, '--world', 'copyrpc')


def world_scalerpc(session):
    live_through(session, '--world', 'scalerpc')


def world_mixed(session):
    live_through(session, '--world', 'mixed')


def world_fs(session):
    live_through(session, '--world', 'fs')


def resident_bytes(process):
    with open(f'/proc/{process.pid}/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def under_load(server, loads, start, check):
    """Runs clients of one server, one kind of load after the other. From the second round on the server grows no
    more."""
    seconds = min(10.0, max(1.0, SHARE_S / len(loads) / 4))
    until, after_first, rounds = time.monotonic() + SHARE_S, 0, 0
    while time.monotonic() < until or rounds < 2:
        for load in loads:
            result = result_of(start(*load, '--duration', str(seconds)), timeout=seconds + 60)
            expect(check(result), f'{load}: {result}')
        rounds += 1
        after_first = after_first or resident_bytes(server)
    grown = resident_bytes(server) - after_first
    expect(grown < GROWTH_BYTES, f'the server grew by {grown} bytes in {rounds} rounds')
    print(f'{rounds} rounds of {len(loads)} loads; the server grew by {grown} bytes')


def calls(server, start):
    under_load(server, CALLS, lambda *own: start(*BOTH, *own),
               lambda result: result['rate_mops'] > 0 and result['failed'] == 0)
    end(server)


def calls_memif(session):
    frames = ',bsize=4352'
    calls(session.server(*SERVED, extra=frames), lambda *own: session.client(*own, extra=frames))


def calls_sockets(session):
    calls(listen(session, *SERVED), lambda *own: client(session, *own))


def operations(session, ports):
    session.program = os.path.join(session.folder, 'cairn-perf')
    server = ports.server('--path-mtu', '4096', *LOSSES)
    under_load(server, OPERATIONS, lambda *own: ports.client('--check', '--path-mtu', '4096', *own, *LOSSES),
               lambda result: result['operations'] > 0)
    counted, _ = stop(server)
    expect(counted['bad'] == 0 and counted['lost'] == 0, f'{counted}')


def operations_memif(session):
    operations(session, Memif(session))


def operations_sockets(session):
    operations(session, Sockets(session))


if __name__ == '__main__':
    run_case(world_erpc, world_small, world_rc, world_cm, world_ud, world_verbs, world_copyrpc, world_scalerpc,
             world_mixed, world_fs, calls_memif, calls_sockets, operations_memif, operations_sockets)
