#!/usr/bin/env python3
"""cairn-perf between two processes, over shared memory and over UDP sockets.

    perf_over_ports.py memif|socket CASE FOLDER_OF_PROGRAMS

Each case is a test of its own: exit 0 passed, else failed.
"""
import json
import os
import signal
import sys
import time

from session import EAL, Session, await_start, expect, expect_refused, machine, result_of
from sockets import CLIENT, SERVER, await_socket

OPERATIONS = ('send', 'write', 'read', 'cas', 'fadd')


class Memif:
    """Two processes on one shared-memory link."""
    nobody = '10.77.0.99'
    frames = ',bsize=4352'

    def __init__(self, session):
        self.session = session

    def server(self, *own, lcores='0'):
        return self.session.server('--json', *own, extra=self.frames, lcores=lcores)

    def client(self, *own, peer='10.77.0.1', result=('--json',), lcores='1'):
        return self.session.start([self.session.memif('client', self.frames)],
                                  ['--peer', peer, '--ip', '10.77.0.2', *result, *own], lcores=lcores)

    def refused(self, *own):
        return self.session.start(['--vdev=net_null0'], own)


class Sockets:
    """Two processes with addresses of the loopback."""
    nobody = machine.loopback(15)

    def __init__(self, session):
        self.session = session

    def start(self, address, *own, lcores='0', eal=()):
        return self.session.start([], ['--port', f'uring:{address}', *own], eal=[*EAL, *eal], lcores=lcores)

    def server(self, *own, **options):
        return await_socket(self.start(SERVER, '--server', '--json', *own, **options), SERVER)

    def client(self, *own, peer=SERVER, result=('--json',), lcores='1'):
        return self.start(CLIENT, '--peer', peer, *result, *own, lcores=lcores)

    def refused(self, *own):
        return self.start(SERVER, *own)


def stop(server):
    """Ends the server. Returns its counts and its output."""
    if server.poll() is None:
        server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=20)
    expect(server.returncode == 0, f'exit code {server.returncode}: {err}')
    return json.loads(out.strip().splitlines()[-1]), err


def operations(ports):
    """Every operation in both tests, with all data verified."""
    server = ports.server()
    for operation in OPERATIONS:
        for test in ('bw', 'lat'):
            for size in ('8', '10001'):
                result = result_of(ports.client('--op', operation, '--test', test, '--size', size, '--check',
                                                  '-n', '300'))
                expect(result['operations'] == 300 and result['checked'] > 10, f'{operation} {test} {size}: {result}')
                expect(result['p50_us'] > 0 and result['p99_us'] >= result['p50_us'], f'{result}')
    counted, said = stop(server)
    expect(counted['bad'] == 0 and counted['connections'] == 20 and counted['lost'] == 0, f'{counted}')
    expect('bytes per idle connection' in said, f'no size of a connection: {said}')


def unreliable(ports):
    """Unreliable connections: arriving messages are complete and correct, and are counted."""
    server = ports.server('--path-mtu', '4096')
    for own in (['--op', 'send', '--check'], ['--op', 'write'], ['--op', 'send', '--test', 'lat', '--check'],
                ['--op', 'write', '--test', 'lat', '--check']):
        for size in ('8', '10001'):
            result = result_of(ports.client('--transport', 'uc', '--path-mtu', '4096', '--size', size, '--depth', '4',
                                              '-n', '500', *own))
            least = 450 if 'lat' in own else 500  # a lost one has no answer
            expect(result['transport'] == 'uc' and least <= result['operations'] <= 500, f'{own} {size}: {result}')
            expect(0 < result['arrived'] <= result['sent'], f'{own} {size}: {result}')
            expect('--check' not in own or result['op'] == 'send' and result['test'] == 'bw' or result['checked'] > 10,
                   f'{own} {size}: {result}')
    counted, _ = stop(server)
    expect(counted['bad'] == 0 and counted['connections'] == 8 and counted['lost'] == 0, f'{counted}')


def datagrams(ports):
    """Unreliable datagrams both ways, found by SIDR."""
    server = ports.server('--path-mtu', '4096', '--once')
    for own in (['--depth', '16'], ['--test', 'lat'], ['--qps', '8', '--depth', '64', '--size', '64']):
        result = result_of(ports.client('--transport', 'ud', '--check', '--path-mtu', '4096', '-n', '500',
                                          *own))
        expect(result['transport'] == 'ud' and result['op'] == 'send', f'{own}: {result}')
        expect(result['operations'] == 500, f'{own}: {result}')
        expect(0 < result['arrived'] <= result['sent'], f'{own}: {result}')
        expect(result['test'] == 'bw' or result['checked'] > 10, f'{own}: {result}')
        expected = 64 if '--size' in own else 2 if 'lat' in own else 4096
        expect(result['size_bytes'] == expected, f'{own}: {result}')
        if '--qps' not in own:
            expect(server.wait(timeout=20) == 0, 'the server of one client did not end')
            server = ports.server('--path-mtu', '4096', *(['--once'] if own[0] == '--depth' else []))
    counted, _ = stop(server)
    expect(counted['bad'] == 0 and counted['connections'] == 8 and counted['lost'] == 0, f'{counted}')


def unreliable_losses(ports):
    """Messages are lost with their packets; none arrives in part, and both tests go on."""
    server = ports.server('--drop-per-million', '5000')
    for own in (['uc', '--op', 'send', '--check'], ['uc', '--op', 'send', '--test', 'lat', '--check'],
                ['uc', '--op', 'write', '--test', 'lat', '--check']):
        result = result_of(ports.client('--size', '4000', '--depth', '4', '--duration', '1',
                                          '--drop-per-million', '5000', '--transport', *own))
        expect(result['operations'] > 0 and 0 < result['arrived'] < result['sent'], f'{own}: {result}')
    counted, said = stop(server)
    expect(counted['bad'] == 0 and 'port_injected' in said, f'{counted} {said}')


def sweep(ports):
    """All sizes, with 16 MB for each operation, which is much for a busy machine."""
    server = ports.server('--path-mtu', '4096')
    result = result_of(ports.client('-a', '--path-mtu', '4096', '-n', '20', '--check', '--depth', '2'), timeout=100)
    stop(server)
    sizes = [each['size_bytes'] for each in result['sweep']]
    expect(sizes == [1 << i for i in range(1, 24)], f'{sizes}')
    expect(all(each['checked'] > 0 for each in result['sweep']), f'{result}')


def losses(ports):
    """Packets are lost on purpose at both ends, and all data still arrives."""
    server = ports.server('--drop-per-million', '2000')
    for operation in OPERATIONS:
        result = result_of(ports.client('--op', operation, '--size', '20000', '--check', '--duration', '1',
                                          '--drop-per-million', '2000'))
        expect(result['operations'] > 0 and result['retransmits'] > 0, f'{operation}: {result}')
    counted, said = stop(server)
    expect(counted['bad'] == 0 and 'port_injected' in said and 'rc_held' in said, f'{counted} {said}')


def marks(ports):
    """The receiver of packets that a switch marked notifies their sender, which slows down, unless neither end wants
    that. The link is so slow that it alone, not the CPU, limits unmarked traffic. If other processes leave less CPU
    than that, the rates mean nothing and are measured again, for a while."""
    until = time.monotonic() + 50
    unmarked, marked = rates_of_marks(ports)
    while unmarked < 0.6 and time.monotonic() < until:
        unmarked, marked = rates_of_marks(ports)
    print(f'{unmarked} Gbit/s of 1 without marks, {marked} with them')
    expect(unmarked < 0.6 or marked < 0.7 * unmarked, 'not held back')


def rates_of_marks(ports):
    """Measures the rates without marks and with them."""
    rates = []
    for control, traffic_class in (('dcqcn', '0'), ('dcqcn', '3'), ('none', '3')):
        server = ports.server('--congestion-control', control)
        result = result_of(ports.client('--size', '65536', '--check', '--duration', '1', '--traffic-class',
                                          traffic_class, '--congestion-control', control,
                                          *(['--link-gbit', '1'] if control == 'dcqcn' else [])))
        counted, said = stop(server)
        notified = control == 'dcqcn' and traffic_class == '3'
        expect(('rc_cnp_sent' in said) == notified and ('rc_marked_received' in said) == (traffic_class == '3'), said)
        expect(counted['bad'] == 0 and result['operations'] > 0 and result['checked'] > 0, f'{counted} {result}')
        rates.append(result['gbit_s'])
    return rates[:2]


def go_back_n(ports):
    """Either end may ask for go-back-N: then no packet is held, and many more are sent again."""
    rates = []
    for at_server, at_client in (([], []), (['--go-back-n'], []), ([], ['--go-back-n'])):
        server = ports.server('--drop-per-million', '2000', '--path-mtu', '4096', *at_server)
        result = result_of(ports.client('--size', '65536', '--path-mtu', '4096', '--duration', '1', *at_client))
        _, said = stop(server)
        expect(('rc_held' in said) != bool(at_server or at_client), f'{said}')
        rates.append(result['retransmits'] / result['operations'])
    expect(rates[0] < 0.25 * min(rates[1:]), f'sent again per operation: {rates}')


def several_lcores(ports):
    """Workers of both ends share one address. Connections of each client worker go to any worker of the server, and
    datagrams go to the first. Their measurements of the same time are one result."""
    server = ports.server('--path-mtu', '4096', '--once', lcores='0,1')
    for own in (['--op', 'write', '--size', '20000', '--qps', '8'], ['--op', 'send', '--size', '64', '--qps', '6'],
                ['--op', 'read', '--size', '65536'], ['--op', 'fadd', '-n', '501'], ['--transport', 'ud', '--qps', '4'],
                ['--bidirectional', '--size', '4096', '--qps', '24']):
        last = '--bidirectional' in own
        result = result_of(ports.client('--path-mtu', '4096', *([] if '-n' in own else ['--duration', '0.5']), *own,
                                          *([] if last else ['--check']), lcores='0,1'))
        expect(result['operations'] > 10, f'{own}: {result}')
        expect(last or result['checked'] > 0, f'{own}: {result}')
        expect(result['qps'] == (int(own[own.index('--qps') + 1]) if '--qps' in own else 2), f'{own}: {result}')
        expect('-n' not in own or result['operations'] == 501, f'{own}: {result}')
        if not last:
            expect(server.wait(timeout=20) == 0, 'the server of one client did not end')
            server = ports.server('--path-mtu', '4096', '--once', lcores='0,1')
    counted, said = stop(server)
    expect(counted['bad'] == 0 and counted['connections'] == 24 and counted['lost'] == 0, f'{counted}')
    expect('cm_handed_over' in said, said)  # a hash chooses the worker of each connection, so all 24 never get the
                                            # first
    expect_refused(ports.client('--test', 'lat', lcores='0,1'), 'cairn-perf', '-l 0')
    expect_refused(ports.client('--qps', '1', lcores='0,1'), 'cairn-perf', '--qps 2')


def many_queue_pairs(ports):
    server = ports.server()
    own = ['--qps', '1500', '--depth', '1500', '--size', '64']
    result = result_of(ports.client(*own, '--check', '-n', '3000'))
    expect(result['operations'] == 3000 and result['qps'] == 1500, f'{result}')
    counted, _ = stop(server)
    expect(counted['connections'] == 1500, f'{counted}')


def once(ports):
    """A server for one client ends by itself, although the client connects anew for each size."""
    server = ports.server('--once')
    result_of(ports.client('--op', 'send', '-a', '--duration', '0.02', '--depth', '2'))
    out, err = server.communicate(timeout=20)
    expect(server.returncode == 0 and json.loads(out)['received'] > 0, f'exit code {server.returncode}: {err}')


def tables(ports):
    """The tables for people, with perftest's short options: as many operations as were asked for."""
    server = ports.server()
    for own, columns in ((['-s', '64', '-n', '1000', '-q', '2', '-t', '16'], ['64', '1000']),
                         (['--test', 'lat', '-n', '300'], ['2', '300']),
                         (['--transport', 'ud', '--test', 'lat', '-n', '100', '--check'], ['2', '100']),
                         (['-c', 'rc', '--op', 'send', '-s', '100', '-D', '0.1', '--check'], ['100'])):
        out, err = (client := ports.client(*own, result=())).communicate(timeout=40)
        expect(client.returncode == 0, f'{own}: exit code {client.returncode}: {err}')
        header, row = [line.split() for line in out.splitlines()[1:3]]
        expect(header[:2] == ['#bytes', '#iterations'], out)
        if 'ud' in own:  # a busy machine may lose some
            expect(0 < int(row[1]) <= int(columns[1]), out)
            columns = columns[:1]
        expect(row[:len(columns)] == columns, out)
        wanted = ['t_min[usec]', 't_max[usec]', '99.9%[usec]'] if 'lat' in own else ['BW', 'MsgRate[Mpps]']
        expect(all(word in header for word in wanted), out)
        expect('--check' not in own or 'verified' in out, out)
    stop(server)
    server = ports.server('--once')
    result = result_of(ports.client('--op', 'read', '-n', '50', '-t', '8', '--check'))
    expect(result['operations'] == result['checked'] == 50 and result['unfinished'] == 0, f'{result}')
    out, _ = server.communicate(timeout=20)
    expect(json.loads(out)['connections'] == 1, out)


def both_ways(ports):
    """The server does the same to its client as the client to it. A machine that stood still has a rate of 0.0, which
    counts."""
    server = ports.server()
    for own in (['--op', 'write'], ['--op', 'read', '--qps', '3'], ['--op', 'send', '--qps', '3', '--size', '5000']):
        result = result_of(ports.client('-b', '-n', '2000', '--depth', '12', *own))
        expect(result['operations'] == 2000 and result['rate_mops_back'] > 0, f'{own}: {result}')
    timed = result_of(ports.client('-b', '-D', '0.3', '--depth', '12'))
    expect(timed['seconds'] >= 0.3 and 'gbit_s_back' in timed, f'{timed}')
    out, err = (client := ports.client('-b', '-n', '1000', result=())).communicate(timeout=20)
    expect(client.returncode == 0 and 'back: BW' in out, f'{client.returncode}: {out}{err}')
    counted, _ = stop(server)
    expect(counted['bad'] == counted['lost'] == 0 and counted['connections'] == 9, f'{counted}')


def path_mtu(ports):
    """The path MTU is the largest that both ends carry, unless one is asked for. If that is too large, the error names
    a possible one."""
    for at_server, agreed in (([], 4096), (['--path-mtu', '1024'], 1024)):
        server = ports.server(*at_server)
        result = result_of(ports.client('-n', '100', '--check'))
        expect(result['path_mtu_bytes'] == agreed and result['checked'] == 100, f'{agreed}: {result}')
        result = result_of(ports.client('--transport', 'ud', '-n', '10', '-t', '1'))
        expect(result['path_mtu_bytes'] == result['size_bytes'] == agreed, f'{agreed}: {result}')
        if at_server:
            _, err = (client := ports.client('--path-mtu', '4096')).communicate(timeout=20)
            expect(client.returncode == 1 and 'give --path-mtu 1024' in err, f'{client.returncode}: {err}')
        stop(server)


def server_killed(ports):
    """The client ends with a clear error."""
    for own in (['--op', 'write'], ['--op', 'send', '--test', 'lat', '--size', '8']):
        server = ports.server()
        client = ports.client('--duration', '30', *own)
        time.sleep(2.5)
        server.kill()
        server.communicate()
        out, err = client.communicate(timeout=30)
        expect(json.loads(out.splitlines()[-1])['unfinished'] > 0, out)
        said = [line for line in err.splitlines() if line.startswith('cairn-perf: ')]
        expect(client.returncode == 1 and len(said) == 1 and 'still running' in said[0],
               f'exit code {client.returncode}: {err}')


def client_killed(ports):
    """The server notices, forgets the connection and serves the next client."""
    server = ports.server()
    client = ports.client('--duration', '30', '--qps', '3')
    time.sleep(2.5)
    client.kill()
    client.communicate()
    expect(server.poll() is None, 'the server ended with its client')
    time.sleep(8)
    result = result_of(ports.client('--duration', '0.5', '--check'))
    expect(result['checked'] > 0, f'{result}')
    counted, _ = stop(server)
    expect(counted['lost'] == 3, f'{counted}')


def client_waits(ports):
    """The link still belongs to another client: the next one asks for it again until that one has ended."""
    server = ports.server()
    first = ports.client('--duration', '30')
    time.sleep(1.5)
    second = ports.client('-n', '100', '--check')
    time.sleep(1)
    first.kill()
    first.communicate()
    result = result_of(second)
    expect(result['checked'] == 100, f'{result}')
    stop(server)


def zero_copy(ports):
    """The peer maps the client's memory. Frames of three segments often find too few slots in a small ring. The driver
    refuses them whole, and no buffer is lost."""
    server = ports.server('--path-mtu', '4096')
    await_start(server)  # net_memif turns an earlier client away for good
    shared = [*EAL, '--single-file-segments']
    client = ports.session.start([ports.session.memif('client', ports.frames + ',rsize=6,zero-copy=yes')],
                                 ['--peer', '10.77.0.1', '--ip', '10.77.0.2', '--json', '--op', 'write', '--size',
                                  '65536', '--path-mtu', '4096', '--buffers', '1024', '-n', '20000'],
                                 lcores='1', eal=shared)
    out, err = client.communicate(timeout=60)
    expect(client.returncode == 0, f'exit code {client.returncode}: {err}')
    expect(json.loads(out.strip().splitlines()[-1])['operations'] == 20000, out)
    expect('port_no_buffer' not in err, f'buffers are missing: {err}')
    counted, _ = stop(server)
    expect(counted['bad'] == counted['lost'] == 0, f'{counted}')


def nobody(ports):
    """There is no server at all, or it listens elsewhere: the client reports it within seconds."""
    server = ports.server('--service-port', '7000')
    for own in ([], ['--transport', 'ud']):
        _, err = (client := ports.client(*own)).communicate(timeout=30)
        expect(client.returncode == 1 and 'start the server first' in err, f'exit code {client.returncode}: {err}')
    _, err = (client := ports.client(peer=ports.nobody)).communicate(timeout=30)
    expect(client.returncode == 1 and 'does not answer' in err, f'exit code {client.returncode}: {err}')
    stop(server)


def deep_queues(ports):
    """A client that ends while tens of thousands of receive requests are posted for it takes nothing from the
    others."""
    server = ports.server('--path-mtu', '4096')
    other = ports.start(machine.loopback(3), '--peer', SERVER, '--json', '--op', 'send', '--qps', '16', '--depth',
                          '4096', '--size', '8', '-D', '5', lcores='1')
    for _ in range(3):
        result = result_of(ports.client('--op', 'send', '--depth', '16384', '--size', '64', '-n', '20000'))
        expect(result['operations'] == 20000, f'{result}')
    result = result_of(other)
    expect(result['operations'] > 0, f'{result}')
    result = result_of(ports.client('--op', 'send', '-b', '--depth', '16384', '-n', '20000'))
    expect(result['operations'] == 20000, f'{result}')
    counted, _ = stop(server)
    expect(counted['bad'] == counted['lost'] == 0 and counted['connections'] == 20, f'{counted}')


def more_than_eal(ports):
    """Over sockets, clients get memory that EAL does not have: 64 MB for messages while EAL has 32."""
    server = ports.server('--path-mtu', '4096', eal=['-m', '32'])
    result = result_of(ports.client('--op', 'write', '--path-mtu', '4096', '--depth', '128', '--size', '524288',
                                      '--check', '-n', '16'))
    expect(result['operations'] == 16, f'{result}')
    counted, _ = stop(server)
    expect(counted['bad'] == counted['lost'] == 0, f'{counted}')


def bad_input(ports):
    for own, named in ((['--server', '--nonsense'], '--nonsense'), ([], '--server'),
                       (['--server', '--peer', '10.0.0.1'], 'choose one'), (['--peer', 'nowhere'], 'nowhere'),
                       (['--peer', 'fd00::1'], 'famil'), (['--server', '--path-mtu', '1000'], '1000'),
                       (['--peer', '10.0.0.1', '--op', 'erase'], 'erase'),
                       (['--peer', '10.0.0.1', '--size', '3000000000'], '3000000000'),
                       (['--peer', '10.0.0.1', '--test', 'lat', '--size', '0'], '--size 1'),
                       (['--peer', '10.0.0.1', '--size', '1000000000', '--check'], 'memory'),
                       (['--peer', '10.0.0.1', '--transport', 'uc', '--op', 'read'], 'read'),
                       (['--peer', '10.0.0.1', '--transport', 'uc', '--check'], '--op send'),
                       (['--peer', '10.0.0.1', '--transport', 'ud', '--op', 'write'], 'write'),
                       (['--peer', '10.0.0.1', '--transport', 'ud', '--size', '4096', '--path-mtu', '1024'],
                        '--path-mtu'),
                       (['--peer', '10.0.0.1', '--transport', 'ud', '--size', '5000'], '--size'),
                       (['--peer', '10.0.0.1', '-n', '10', '-D', '1'], '--duration'),
                       (['--peer', '10.0.0.1', '-b', '--test', 'lat'], '--bidirectional'),
                       (['--server', '--congestion-control', 'reno'], 'reno not in {dcqcn,none}'),
                       (['--server', '--link-gbit', '0'], '--link-gbit'),
                       (['--server', '--emulate-context-cache', '8'], '--emulate-context-cache'),
                       (['--server', '--emulate-context-cache', '8,2000000'], '2000000'),
                       (['--peer', '10.0.0.1', '--once'], '--once')):
        expect_refused(ports.refused(*own), 'cairn-perf', named)


CASES = {function.__name__: function for function in (
    operations, unreliable, datagrams, unreliable_losses, sweep, losses, marks, go_back_n, several_lcores,
    many_queue_pairs, once, tables, both_ways, path_mtu, server_killed, client_killed, client_waits, zero_copy,
    nobody, deep_queues, more_than_eal, bad_input)}
PORTS = {'memif': Memif, 'socket': Sockets}


def main():
    session = Session(sys.argv[3])
    session.program = os.path.join(session.folder, 'cairn-perf')
    try:
        CASES[sys.argv[2]](PORTS[sys.argv[1]](session))
    finally:
        session.close()


if __name__ == '__main__':
    main()
