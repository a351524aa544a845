#!/usr/bin/env python3
"""One process that serves eRPC and RDMA at once, and its client, on a memif link.

    both_over_memif.py CASE MEMIF_BOTH

Each case is a test of its own: exit 0 passed, 77 skipped with the reason on stdout, else failed.
"""
from session import expect, machine, result_of, run_case

LEAST = 1000  # calls, and rounds of a WRITE and a READ, of each worker


def need_memif(session):
    """Skips the case if this DPDK has no net_memif. Otherwise EAL takes the device, and the program refuses the
    address."""
    probe = start(session, [session.memif('client')], '--ip', 'nowhere')
    _, err = probe.communicate(timeout=30)
    if 'failed to parse device' in err:
        raise machine.Unavailable('this DPDK has no net_memif')
    expect(probe.returncode == 2 and 'nowhere' in err, f'exit code {probe.returncode}: {err}')


def start(session, devices, *own, **options):
    return session.start(devices, own, program=session.folder, **options)


def exchange(session, at_server, *clients):
    """Runs clients one after the other, each on its lcores, until each worker of the server has had one."""
    need_memif(session)
    server = session.listen(['--ip', '10.77.0.1'], program=session.folder, lcores=at_server)
    calls, workers = 0, 0
    for lcores in clients:
        client = start(session, [session.memif('client')], '--ip', '10.77.0.2', '--peer', '10.77.0.1',
                       '--service', str(7471 + workers), lcores=lcores)
        result = result_of(client, timeout=80)
        workers += result['workers']
        expect(min(result['calls'], result['rounds']) >= LEAST * result['workers'], f'too few: {result}')
        calls += result['calls']
    served = result_of(server, timeout=20)
    expect(served['workers'] == workers and served['calls'] == calls, f'{served}, not {calls} calls of {workers}')


def one_worker(session):
    exchange(session, '0', '0')


def two_workers(session):
    """Two workers share the device's queue. Queue pair 1 is the first worker's at both ends."""
    exchange(session, '0,1', '0,1')


def each_in_turn(session):
    """A client with one worker comes to each of two workers; the second one has no queue."""
    exchange(session, '0,1', '0', '0')


run_case(one_worker, two_workers, each_in_turn)
