#!/usr/bin/env python3
"""The programs of apps/hello and others in front of a node: over sockets and memif, with errors of all kinds.

    hello.py CASE FOLDER_OF_PROGRAMS
"""
import os
import signal

from session import EAL, expect, expect_refused, machine, on_cpus, run_case
from sockets import CLIENT, SERVER, await_socket, start

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')


def read(*path):
    with open(os.path.join(SOURCES, *path), encoding='utf-8') as file:
        return file.read()


def answer_of(process, status=0):
    out, err = process.communicate(timeout=30)
    expect(process.returncode == status, f'exit code {process.returncode}: {out} {err}')
    return out if status == 0 else err


def leave(server):
    """Ends a server and checks by its exit status that all went well."""
    server.send_signal(signal.SIGTERM)
    answer_of(server)


def over_sockets(session, program, address, *own, **options):
    return start(session, '--port', f'uring:{address}', *own, program=program, **options)


def cases(session, address, case, *own, **options):
    return over_sockets(session, '../tests/eal/node-cases', address, '--case', case, *own, **options)


def sockets(session):
    server = await_socket(over_sockets(session, 'cairn-hello-server', SERVER), SERVER)
    for program, own, lines in (('client', ['--text', 'good morning'], ['good morning']),
                                ('await', ['--text', 'x' * 100000, '--count', '5'], ['x' * 100000] * 5)):
        said = answer_of(over_sockets(session, f'cairn-hello-{program}', CLIENT, '--peer', SERVER, *own))
        expect([line.split(' after ')[0] for line in said.splitlines()] == lines, said)
    leave(server)


def memif(session):
    """Runs also on several lcores at both ends: each worker of the client says hello."""
    program = os.path.join(session.folder, 'cairn-hello-')
    server = session.listen(['--ip', '10.77.0.1', '--service', '9'], program=program + 'server', lcores='0,1')
    for name in ('client', 'await'):
        own = ['--ip', '10.77.0.2', '--peer', '10.77.0.1', '--service', '9']
        client = session.start([session.memif('client')], own,
                               program=program + name, lcores='0,1' if name == 'await' else '0')
        expect(answer_of(client).count('hello after') >= 1, 'no answer')
    leave(server)


def services(session):
    """Two services in one process, on one worker and on two; the client has other numbers of workers."""
    for at_server, at_client in (('0', '0'), ('0,1', '0'), ('0', '0,1'), ('0,1', '0,1')):
        server = await_socket(cases(session, SERVER, 'serve', lcores=at_server), SERVER)
        said = answer_of(cases(session, CLIENT, 'call', '--peer', SERVER, lcores=at_client))
        total = sum(i + i + 1 + i * (i + 1) for i in range(1000))
        expect(f'{total}, no handler' in said, said)
        leave(server)


def silent_host(session):
    """A host that does not answer keeps no client from another host."""
    server = await_socket(cases(session, SERVER, 'serve'), SERVER)
    said = answer_of(cases(session, CLIENT, 'call', '--peer', SERVER, '--silent-peer', machine.loopback(15)))
    expect('no handler' in said, said)
    leave(server)


def event_loop(session):
    """Programs that wait for descriptors themselves, at both ends."""
    server = await_socket(cases(session, SERVER, 'serve-by-poll'), SERVER)
    said = answer_of(cases(session, CLIENT, 'call-by-poll', '--peer', SERVER))
    expect('no handler' in said and 'slept' in said and 'never' not in said, said)
    server.send_signal(signal.SIGTERM)
    said = answer_of(server)
    expect('slept' in said and 'never' not in said, said)


def bad_input(session):
    def refused(process, named):
        expect_refused(process, 'node-cases', named)

    refused(cases(session, SERVER, 'twice'), 'service 11 of worker 0 of 127.')
    refused(cases(session, SERVER, 'second-worker-alone', lcores='0,1'), 'worker 1 opens service 11')
    refused(cases(session, SERVER, 'throws'), 'the set-up of service 11 found no table')
    refused(cases(session, SERVER, 'nothing'), '--case nothing')
    # No half-made parts are left: the address is free, and a memif server's file is gone.
    server = await_socket(cases(session, SERVER, 'serve'), SERVER)
    refused(cases(session, SERVER, 'serve'), SERVER)
    leave(server)
    process = session.start([session.memif('server')], ['--case', 'throws'],
                            program=os.path.join(session.folder, '../tests/eal/node-cases'))
    refused(process, 'found no table')
    expect(not os.path.exists(session.socket), 'the socket file is left')
    client = start(session, on_cpus('0'), *EAL, '--', '--port', f'uring:{CLIENT}', program='cairn-hello-client')
    expect_refused(client, 'cairn-hello-client', '--peer')
    for own, name in ((['--peer', 'nonsense'], 'nonsense'), (['--peer', SERVER, '--service', '0'], '65535'),
                      (['--peer', '::1'], 'family'), (['--peer', SERVER], 'does not answer')):
        said = answer_of(over_sockets(session, 'cairn-hello-await', CLIENT, *own), status=1)
        expect(name in said and said.count('cairn-hello-await: ') == 1, f'{own}: {said}')


def counters(session, system, address, *own):
    return over_sockets(session, 'cairn-counters', address, '--system', system, *own)


def systems(session):
    """One service and its client, with the same source on every RPC system; clients see the counts of other clients."""
    for system in ('erpc', 'copyrpc', 'scalerpc'):
        server = await_socket(counters(session, system, SERVER), SERVER)
        for low, high in ((1, 2), (5, 8)):
            said = answer_of(counters(session, system, CLIENT, '--peer', SERVER))
            expect(said.splitlines() == [f'counter 14: {low}', f'counter 15: {high}', f'counter 14: {low + 3}',
                                         f'counter 15: {high + 4}', f'totals: {low + 3} {high + 4}'],
                   f'{system}: {said}')
        leave(server)
    server = await_socket(counters(session, 'copyrpc', SERVER), SERVER)
    for system in ('erpc', 'scalerpc'):
        said = answer_of(counters(session, system, CLIENT, '--peer', SERVER), status=1)
        expect(said.count('cairn-counters: ') == 1 and '--system' in said, f'{system}: {said}')
    leave(server)


def readme(_):
    """The page of apps/hello shows all of its sources as they are, and README.md the server. None is longer than 40
    lines."""
    page, front = read('apps', 'hello', 'README.md'), read('README.md')
    names = [name for name in os.listdir(os.path.join(SOURCES, 'apps/hello')) if name.endswith('.cpp')]
    for name in names:
        text = read('apps', 'hello', name)
        expect(f'(`{name}`):\n\n```cpp\n{text}```' in page, f'apps/hello/README.md does not show {name} as it is')
        lines = text.count('\n')
        expect(lines <= 40, f'apps/hello/{name} has {lines} lines')
    expect(page.count('```cpp\n') == len(names), 'apps/hello/README.md shows code that is no file of apps/hello')
    expect(f'```cpp\n{read("apps", "hello", "server.cpp")}```' in front, 'README.md does not show the server as it is')
    expect(front.count('```cpp\n') == 1, 'README.md shows more code than the server')


def server_killed(session):
    """A client that waits for an answer learns of its server's end. A client that is stopped meanwhile leaves nothing
    behind."""
    server = await_socket(over_sockets(session, 'cairn-hello-server', SERVER), SERVER)
    client = over_sockets(session, 'cairn-hello-await', CLIENT, '--peer', SERVER, '--count', '100000000')
    client.stdout.readline()
    server.kill()
    # Reads on, so that the client's pipe does not fill.
    out, err = client.communicate(timeout=30)
    expect(client.returncode == 1 and 'did not answer' in err and out, f'{client.returncode}: {err}')
    server = await_socket(over_sockets(session, 'cairn-hello-server', SERVER), SERVER)
    client = over_sockets(session, 'cairn-hello-await', CLIENT, '--peer', SERVER, '--count', '100000000')
    client.stdout.readline()
    client.send_signal(signal.SIGINT)
    out, err = client.communicate(timeout=30)
    expect(client.returncode == 0 and 'cairn-hello-await: ' not in err, f'{client.returncode}: {err}')
    leave(server)


if __name__ == '__main__':
    run_case(sockets, memif, services, silent_host, event_loop, bad_input, readme, server_killed, systems)
