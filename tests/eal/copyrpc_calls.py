#!/usr/bin/env python3
"""cairn-rpcbench --system copyrpc, scalerpc, rawwrite and ud, between processes over memif and over sockets.

    copyrpc_calls.py CASE FOLDER_OF_PROGRAMS

Each case is a test of its own: exit 0 passed, 77 skipped with the reason on stdout, else failed.
"""
import json
import re
import sys
import time

from session import await_calls, end, expect, expect_refused, machine, result_of, run_case
from sockets import SERVER, client, listen

COPYRPC, SCALERPC, RAWWRITE, UD = (['--system', name] for name in ('copyrpc', 'scalerpc', 'rawwrite', 'ud'))


def memif_calls(session):
    """Calls of several sizes with every byte verified, few packets for many calls, losses, one client after another."""
    server = session.server(*COPYRPC)
    result = result_of(session.client(*COPYRPC, '--duration', '1', '--check'))
    expect(result['system'] == 'copyrpc' and result['failed'] == 0, f'{result}')
    expect(result['checked'] > 1000 and result['rate_mops'] > 0.01, f'no calls: {result}')
    expect(0 < result['packets_per_call'] < 2, f'{result}')
    lost = result_of(session.client(*COPYRPC, '--duration', '1', '--check', '--drop-per-million', '5000'))
    expect(lost['failed'] == 0 and lost['checked'] > 1000, f'{lost}')
    long = result_of(session.client(*COPYRPC, '--duration', '0.5', '--window', '4', '--sessions', '1', '--req', '8000',
                                    '--deadline', '10000'))
    expect(long['rate_mops'] > 0 and long['failed'] == 0, f'{long}')
    by_itself = result_of(session.client(*COPYRPC, '--duration', '0.5', '--window', '2', '--sessions', '1', '--req',
                                         '1000000', '--check'))
    expect(by_itself['checked'] > 1 and by_itself['failed'] == 0, f'{by_itself}')
    latencies = dict(result['latency_us'])
    expect(list(latencies) == sorted(latencies) and list(latencies.values()) == sorted(latencies.values()), f'{result}')
    expect((latencies[50], latencies[99]) == (result['p50_us'], result['p99_us']), f'{result}')
    due = result_of(session.client(*COPYRPC, '--duration', '0.5', '--rate', '5000'))
    expect(0.003 < due['rate_mops'] < 0.006 and due['failed'] == 0, f'{due}')
    err = end(server)
    expect('rc_packets_resent' in err, f'nothing was lost: {err}')


def memif_clients(session):
    """Clients with batches over all systems: all call, or a tenth of them calls. They pause between batches, or begin
    them at a rate."""
    for system in COPYRPC, SCALERPC, RAWWRITE, UD, []:
        server = session.server(*system, '--sessions', '100')
        clients = [*system, '--duration', '1', '--clients', '100', '--batch', '4', '--check']
        busy = result_of(session.client(*clients))
        expect(busy['failed'] == 0 and busy['checked'] > 10000, f'no calls: {busy}')
        few = result_of(session.client(*clients, '--active', '10', '--think', '10000'))
        # 10 clients with 4 calls take a little more than 10 ms each.
        expect(few['failed'] == 0 and few['checked'] > 500 and few['rate_mops'] <= 0.0042, f'{few}')
        due = result_of(session.client(*clients, '--active', '50', '--rate', '20000'))
        expect(due['failed'] == 0 and due['offered_mops'] == 0.02, f'{due}')
        # 5000 batches in a second, by a Poisson process. If the machine stood still, some batches have not begun, or
        # earlier ones are made up for.
        expect(due['rate_mops'] < 0.03 and due['checked'] > 500, f'{due}')
        end(server)


def memif_scalerpc(session):
    """Clients take turns, whatever features their server lacks. Losses cost time only, and other shapes are refused."""
    server = session.server(*SCALERPC, '--sessions', '130')
    clients = [*SCALERPC, '--clients', '130', '--batch', '4', '--check', '--duration', '1']
    result = result_of(session.client(*clients))
    expect(result['failed'] == 0 and result['checked'] > 10000, f'{result}')
    other = session.client(*clients, '--block', '1024')
    _, err = other.communicate(timeout=30)
    expect(other.returncode == 1 and '--block' in err, f'exit code {other.returncode}: {err}')
    err = end(server)
    expect('scalerpc_switches' in err and 'scalerpc_fetches' in err, f'nobody took turns: {err}')
    for without in 'warmup', 'sharing,priority', 'grouping', 'packing,colouring':
        server = session.server(*SCALERPC, '--sessions', '130', '--without', without, '--drop-per-million', '2000')
        result = result_of(session.client(*clients))
        expect(result['failed'] == 0 and result['checked'] > 1000, f'without {without}: {result}')
        end(server)


def memif_zones(session):
    """Two workers of a ScaleRPC server are two zones, each with its own pools, groups and slices."""
    server = session.server(*SCALERPC, '--sessions', '40', '--group', '8', lcores='0,1')
    result = result_of(session.client(*SCALERPC, '--clients', '40', '--batch', '2', '--check', '--duration', '1'))
    expect(result['failed'] == 0 and result['checked'] > 1000, f'{result}')
    err = end(server)
    expect(err.count('scalerpc_switches') == 2, f'a worker has no slices: {err}')


def memif_ud(session):
    """Calls over datagrams, one client after another. Losses cost only their own calls. Too long messages and too many
    sessions are refused."""
    server = session.server(*UD, '--sessions', '8', '--peer-timeout', '300')
    for _ in range(2):
        result = result_of(session.client(*UD, '--duration', '0.5', '--check'))
        expect(result['failed'] == 0 and result['checked'] > 1000, f'{result}')
        expect(0.9 < result['packets_per_call'] < 1.1, f'a call is a datagram each way: {result}')
    due = result_of(session.client(*UD, '--duration', '0.5', '--rate', '5000'))
    expect(0.003 < due['rate_mops'] < 0.006 and due['failed'] == 0, f'{due}')
    lossy = session.client(*UD, '--duration', '1', '--check', '--drop-per-million', '1000', '--peer-timeout', '300')
    lost = result_of(lossy)
    expect(lost['failed'] > 0 and lost['checked'] > 100, f'nothing was lost: {lost}')
    for own, named in ((['--sessions', '9'], '--sessions'), (['--service', '7'], '--service'),
                       (['--req', '4000'], '--req')):
        process = session.client(*UD, '--peer-timeout', '500', *own)
        _, err = process.communicate(timeout=30)
        expect(process.returncode in (1, 2) and named in err, f'{own}: exit code {process.returncode}: {err}')
    err = end(server)
    expect('ud_no_session' in err, f'all sessions were had: {err}')


def said_by(server):
    """Ends the server. Returns its JSON, and {name: value} of the counters that it printed."""
    server.terminate()
    out, err = server.communicate(timeout=30)
    expect(server.returncode == 0, f'exit code {server.returncode}: {err}')
    counters = {name: int(value) for name, value in re.findall(r'^ *(\w+) +(\d+) ', err, re.M)}
    return json.loads(out.strip().splitlines()[-1]), counters


def memif_slices(session):
    """A server with clients in turn reports of its slices as it counted them."""
    server = session.server(*SCALERPC, '--sessions', '40', '--group', '8', '--json')
    result_of(session.client(*SCALERPC, '--clients', '40', '--batch', '2', '--duration', '0.5'))
    said, counters = said_by(server)
    for name, counter in (('slices', 'switches'), ('notices_alone', 'notices_alone'), ('keys_ended', 'keys_ended'),
                          ('fetches', 'fetches'), ('polls', 'polls')):
        expect(said[name] == counters.get(f'scalerpc_{counter}', 0), f'{name}: {said}, {counters}')
    expect(min(said['slices'], said['fetches'], said['polls']) > 10, f'nobody took turns: {said}')


def memif_legacy(session):
    """Handlers that take longer than a slice go to threads; those that do not stay with the worker."""
    for work, slice_us, by_threads in ('300', '100', True), ('50', '100000', False):
        server = session.server(*SCALERPC, '--sessions', '8', '--work', work, '--slice', slice_us, '--legacy', '1',
                                '--json')
        result = result_of(session.client(*SCALERPC, '--clients', '8', '--check', '--duration', '0.5'))
        expect(result['failed'] == 0 and result['checked'] > 10, f'{result}')
        expect(result['p50_us'] > float(work), f'its handlers did not compute: {result}')
        said, counters = said_by(server)
        expect(said['legacy_requests'] == counters.get('scalerpc_legacy_requests', 0), f'{said}, {counters}')
        expect((said['legacy_requests'] > 0) == by_threads, f'handlers of {work} us: {said}')


def memif_page_kinds(session):
    """The pages under buffers and messages are large if the kernel has them, and small if it may not give them."""
    none = [sys.executable, '-c', 'import ctypes, os, sys; ctypes.CDLL(None).prctl(41, 1, 0, 0, 0); '
            'os.execv(sys.argv[1], sys.argv[1:])']  # PR_SET_THP_DISABLE
    with open('/sys/kernel/mm/transparent_hugepage/enabled', encoding='ascii') as file:
        usual = 'small' if '[never]' in file.read() else 'transparent'
    for wrap, pages in ((), usual), (none, 'small'):
        server = session.server(*COPYRPC, '--json', wrap=wrap)
        asking = result_of(session.client(*COPYRPC, '--duration', '0.2'))
        said, _ = said_by(server)
        expect((said['buffer_pages'], said['message_pages']) == (pages, pages), f'{pages} pages: {said}')
        expect(asking['message_pages'] == usual, f'{asking}')


def memif_measured(session):
    """The report of a server on its calls: the time of each stage, its memory, the emulated adapter."""
    for system in SCALERPC, COPYRPC, UD:
        # The clients have two queue pairs more than the adapter has contexts; datagrams use one for all of them.
        server = session.server(*system, '--sessions', '10', '--stages', '--emulate-context-cache', '8,2000', '--json')
        result = result_of(session.client(*system, '--clients', '10', '--duration', '0.5'))
        said, _ = said_by(server)
        times = [said[f'{stage}_ns'] for stage in ('receive', 'handle', 'send', 'idle')]
        expect(min(times[:3]) > 0, f'{system}: {said}')
        # The worker is always in one of the stages, unless it rests.
        expect(0.01 < sum(times) * said['requests_handled'] / 1e9 < 30, f'{system}: {said}')
        parts = [said.get(f'{part}_ns', 0) for part in ('judge', 'handler', 'compose')]
        expect(0 < parts[1] < said['handle_ns'], f'handlers run while it handles: {said}')
        # All systems but datagrams report the parts of their turns, and the parts add up.
        expect(system is UD or (min(parts) > 0 and abs(sum(parts) - said['handle_ns']) < 0.5), f'{said}')
        expect(result['rate_mops'] > 0 and said['memory_bytes'] > 10000, f'{system}: {result}, {said}')
        expect(system is COPYRPC or said['memory_bytes'] >= 10 * said['bytes_of_session'], f'each client: {said}')
        hits, misses = said['emulated_context_hits'], said['emulated_context_misses']
        if system is UD:
            expect(misses <= 2 < hits, f'{said}')
        else:
            expect(misses > 1000, f'{system}: {said}')


def memif_refused(session):
    """A client that asks for more than there is says what to change. If its rings are longer than the server takes, it
    uses a part of them."""
    server = session.server(*COPYRPC, '--sessions', '2')
    for own, named in ((['--sessions', '3'], '--sessions'), (['--service', '7', '--sessions', '1'], '--service')):
        process = session.client(*COPYRPC, *own)
        _, err = process.communicate(timeout=30)
        expect(process.returncode == 1 and named in err, f'{own}: exit code {process.returncode}: {err}')
    for own in (['--sessions', '2'], ['--sessions', '1', '--ring', '1048576'], ['--sessions', '1', '--window', '2048']):
        result = result_of(session.client(*COPYRPC, *own, '--duration', '0.5'))
        expect(result['rate_mops'] > 0 and result['failed'] == 0, f'{own}: {result}')
    end(server)


def memif_workers(session):
    """Two workers at either end: the client's connections come to both of the server's."""
    server = session.server(*COPYRPC, lcores='0,1')
    result = result_of(session.client(*COPYRPC, '--duration', '1', '--check', lcores='0,1'))
    expect(result['workers'] == 2 and result['rate_mops'] > 0 and result['failed'] == 0, f'{result}')
    err = end(server)
    expect(err.count('rc_packets_sent') == 2, f'a worker got nothing: {err}')


def memif_symmetric(session):
    for system in COPYRPC, UD:
        first = session.server(*system, '--peer', '10.77.0.2', '--duration', '1', '--json', '--sessions', '8')
        second = session.client(*system, '--server', '--duration', '1', '--sessions', '8')
        for process in (second, first):
            expect(result_of(process)['rate_mops'] > 0, f'{system}: no calls one way')


def memif_killed(session):
    """If either end is killed, the other end notices it and goes on."""
    server = session.server(*COPYRPC, '--peer-timeout', '500')
    for _ in range(2):
        asking = session.client(*COPYRPC, '--duration', '30')
        await_calls(asking)
        asking.kill()
        asking.communicate()
    time.sleep(1.5)
    asking = session.client(*COPYRPC, '--duration', '30', '--peer-timeout', '500', '--sessions', '64')
    await_calls(asking)  # another client now has a session with each of them
    server.kill()
    server.communicate()
    _, err = asking.communicate(timeout=20)
    expect(asking.returncode == 1 and 'the peer is gone' in err, f'exit code {asking.returncode}: {err}')


def socket_calls(session):
    """Over UDP sockets, with one worker and with two."""
    for system, lcores in (COPYRPC, '0'), (COPYRPC, '0,1'), (SCALERPC, '0'), (RAWWRITE, '0'), (UD, '0'), (UD, '0,1'):
        server = listen(session, *system, lcores=lcores)
        result = result_of(client(session, *system, '--duration', '0.5', '--check', lcores=lcores))
        expect(result['workers'] == len(lcores.split(',')) and result['failed'] == 0, f'{system}: {result}')
        expect(result['checked'] > 100, f'{system}: no calls: {result}')
        end(server)


def await_words(process, words):
    """Returns the first line of stderr that contains these words."""
    for line in process.stderr:
        if words in line:
            return line
    expect(False, f'the process ended without a word of: {words}')


def socket_time(session):
    """A server that follows a time server reports when it cannot follow, when its slices are in step, and when no more.
    Clients of either cohort are served, whatever the clock does."""
    follower_at = machine.loopback(3)
    follower = listen(session, *SCALERPC, '--follow-time', SERVER, '--peer-timeout', '500', address=follower_at)
    warning = await_words(follower, 'warning')
    expect('can not reach' in warning and SERVER in warning and '--serve-time' in warning, warning)
    time_server = listen(session, *SCALERPC, '--serve-time')
    await_words(follower, 'in step with the time server')
    for server in SERVER, follower_at:
        for cohort in '0', '1', '2':
            result = result_of(client(session, *SCALERPC, '--cohort', cohort, '--duration', '0.3', '--check',
                                      server=server))
            expect(result['failed'] == 0 and result['checked'] > 50, f'cohort {cohort} of {server}: {result}')
    end(time_server)
    warning = await_words(follower, 'warning')
    expect('no more in step' in warning, warning)
    time_server = listen(session, *SCALERPC, '--serve-time')
    await_words(follower, 'in step with the time server')
    end(follower)
    end(time_server)


def bad_input(session):
    """Each bad command line gives one line that names the cause and the remedy, and exit code 2."""
    for own, named in (
            (['--system', 'nonsense'], 'nonsense'),
            ([*COPYRPC, '--credits', '8'], '--credits'),
            ([*COPYRPC, '--cc', 'none'], '--cc'),
            (['--ring', '65536'], '--ring'),
            ([*COPYRPC, '--ring', '65537'], '--ring 65536'),
            ([*COPYRPC, '--receives', '3'], 'receives'),
            (['--batch', '4'], '--batch'),
            ([*UD, '--ring', '65536'], '--ring'),
            ([*UD, '--req', '1000000'], '1000000'),
            (['--emulate-context-cache', '8'], '--emulate-context-cache'),
            (['--emulate-context-cache', '8,nonsense'], 'nonsense'),
            (['--emulate-context-cache', '8,2000000'], '2000000'),
            (['--warm-up', '70000'], '70000'),
            ([*COPYRPC, '--slice', '50'], '--slice'),
            ([*RAWWRITE, '--group', '50'], '--group'),
            ([*SCALERPC, '--without', 'nonsense'], 'nonsense'),
            ([*SCALERPC, '--blocks', '12'], '12 blocks'),
            ([*COPYRPC, '--serve-time'], '--serve-time'),
            ([*SCALERPC, '--follow-time', 'nowhere'], 'nowhere'),
            ([*SCALERPC, '--follow-time', '10.77.0.9', '--serve-time'], '--serve-time'),
            ([*SCALERPC, '--cohorts', '3'], '--cohorts'),
            ([*RAWWRITE, '--legacy', '1'], '--legacy'),
            ([*COPYRPC, '--work', '1'], '--work'),
            ([*SCALERPC, '--legacy', '0'], '--legacy'),
            ([*SCALERPC, '--serve-time', '--cohorts', '0'], '--cohorts'),
            ([*SCALERPC, '--serve-time', '--without', 'grouping'], '--without grouping'),
            ([*SCALERPC, '--serve-time', '--time-service', '31850'], '--time-service'),
            ([*SCALERPC, '--block', '100'], '100 bytes'),
            (['--clients', '4', '--rate', '100', '--think', '5'], '--think'),
            (['--clients', '4', '--window', '100'], '--window'),
            ([*COPYRPC, '--sessions', '5000'], '5000 sessions'),
            (['--host-sessions', '5'], '--host-sessions'),
            ([*COPYRPC, '--host-sessions', '70000'], '--host-sessions'),
            ([*COPYRPC, '--resp', '100000000'], '100000000')):
        expect_refused(session.start([session.memif('server')], ['--server', *own]), 'cairn-rpcbench', named)
    expect_refused(session.start([session.memif('client')], ['--peer', '10.77.0.1', *SCALERPC, '--serve-time']),
                   'cairn-rpcbench', '--serve-time is for a server')
    expect_refused(session.start([session.memif('client')], ['--peer', '10.77.0.1', *SCALERPC, '--work', '10']),
                   'cairn-rpcbench', '--work is for a server')


run_case(memif_calls, memif_clients, memif_scalerpc, memif_zones, memif_ud, memif_slices, memif_legacy,
         memif_page_kinds, memif_measured, memif_refused, memif_workers, memif_symmetric, memif_killed, socket_calls,
         socket_time, bad_input)
