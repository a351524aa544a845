#!/usr/bin/env python3
"""The programs over UDP sockets of the kernel, as any user.

    rpc_over_sockets.py CASE FOLDER_OF_PROGRAMS

Each case is a test of its own: exit 0 passed, 77 skipped with the reason on stdout, else failed.
"""
import json
import os
import signal
import socket
import time
import zlib

from session import end, expect, expect_refused, machine, on_cpus, result_of, run_case
from sockets import CLIENT, SERVER, await_socket, client, listen, start

FAULTS = ['icrc', 'payload', 'truncated', 'version', 'opcode', 'pad', 'random']  # faults that an intact peer notices
FAULTS_BELOW_UDP = ['ip-checksum', 'ip-length', 'udp-length', 'fragment']


def echo(session, *own, addresses=(SERVER,)):
    """Starts a testpmd that sends back all datagrams to any of the addresses."""
    ports = [argument for address in addresses for argument in ('--port', f'uring:{address}')]
    process = start(session, *ports, '--forward-mode', 'roce-echo', *own, program='cairn-testpmd')
    for address in addresses:
        await_socket(process, address)
    return process


def pktgen(session, *own, address=CLIENT, **keys):
    """Sends a stream to the server's address. Returns the counts."""
    stream = session.stream(**{'source': None, 'destination': SERVER, **keys})
    return result_of(start(session, '--port', f'uring:{address}', *stream, *own, program='cairn-pktgen'))


def check_calls(session, *both):
    server = listen(session, *both)
    result = result_of(client(session, '--duration', '1', *both))
    said = end(server)
    expect(result['rate_mops'] > 0 and result['failed'] == 0, f'no calls: {result}')
    return said


def calls(session):
    said = check_calls(session)
    expect('io_uring' in said or 'refuses io_uring' in said, f'does not say how: {said}')


def plain(session):
    expect('plain system calls' in check_calls(session, '--uring', 'plain'), 'no plain system calls')


def sqpoll(session):
    check_calls(session, '--uring', 'sqpoll')


def several_lcores(session):
    """Each worker of either end has a socket, whether it rests or not: datagrams come to the worker that owns them."""
    for own in (['--sessions', '4'], ['--sessions', '4', '--poll', 'spin'], ['--uring', 'plain', '--req', '100000'],
                ['--rate', '300', '--window', '4']):
        server = listen(session, lcores='0,1')
        result = result_of(client(session, '--duration', '1', '--peer-timeout', '600000', *own, lcores='0,1'))
        said = end(server)
        expect(result['workers'] == 2 and result['rate_mops'] > 0 and result['failed'] == 0, f'{own}: {result}')
        expect(said.count('port_received ') == 2 and 'socket 2 of 2' in said, f'{own}: a worker got nothing: {said}')
        expect('port_handed_over ' not in said, f'{own}: batches were mixed: {said}')
        expect('port_handed_over_full' not in said and 'roce_unknown_qpn' not in said, f'{own}: {said}')


def several_lcores_mixed(session):
    """A client with one worker sends batches for both workers of its server, which hand them over; broken ones, too.
    The capture has the frames of both."""
    file, stranger = os.path.join(session.work, 'both.pcap'), machine.loopback(3)
    server = listen(session, '--pcap', file, lcores='0,1')
    first = result_of(client(session, '--duration', '1', '--sessions', '4', '--check'))
    for fault in (*FAULTS, 'qpn', 'pkey', 'qkey'):
        sent = pktgen(session, address=stranger, fault=fault, count=1000, qpn=0x101)
        expect(sent['sent'] == 1000, f'{fault}: {sent}')
    second = result_of(client(session, '--duration', '0.5', '--sessions', '4', '--check'))
    said = end(server)
    for result in (first, second):  # a machine that stood still for a second has a rate of 0.0
        expect(result['checked'] > 0 and result['failed'] == 0, f'{result}: {said}')
    expect(said.count('port_received ') == 2 and 'port_handed_over ' in said, f'nothing was handed over: {said}')
    expect(check_icrcs(file, stranger)[0] > 100, 'not recorded')
    with open(file, 'rb') as opened:
        data = opened.read(1 << 20)
    expect(all(bytes((0, 1, last)) in data for last in (0, 1)), 'frames of one worker alone')


def losses(session):
    """Calls survive injected losses at both ends, and all of them end."""
    server = listen(session, '--drop-per-million', '10000')
    result = result_of(client(session, '--duration', '1', '--drop-per-million', '10000'))
    end(server)
    expect(result['retransmits'] > 0 and result['failed'] == 0, f'{result}')


def marks(session):
    """DCQCN: the server notifies its client of packets that a switch marked, and the client slows down."""
    large = ['--cc', 'dcqcn', '--req', '1000000', '--window', '4', '--sessions', '1']
    server = listen(session, *large)
    free = result_of(client(session, '--duration', '1', *large))
    marked = result_of(client(session, '--duration', '1', '--traffic-class', '3', *large))
    expect(free['congestion_notified'] == 0 and marked['congestion_notified'] > 10, f'{free}, {marked}')
    # A slow CPU alone also stays below that; a fast one reaches twenty without marks.
    expect(0 < marked['gbit_s'] < 2, f'{free}, {marked}')
    end(server)


def sizes(session):
    """Answers longer and shorter than their requests, from none to many packets, every byte verified."""
    for request, response in ((0, 0), (1, 4000), (4000, 1), (3000, 3000), (32, 1048576), (100001, 70001)):
        both = ['--path-mtu', '4096', '--req', str(request), '--resp', str(response)]
        server = listen(session, *both)
        result = result_of(client(session, '--duration', '0.3', *both, *(['--check'] if response else [])))
        end(server)
        expect(result['rate_mops'] > 0 and result['failed'] == 0, f'{request}, {response}: {result}')
        expect((result['checked'] > 0) == (response > 0), f'{request}, {response}: {result}')


def results(session):
    """The tables for people, and each kind of failure with its remedy."""
    server = listen(session)
    caller = start(session, '--port', f'uring:{CLIENT}', '--peer', SERVER, '-D', '0.3', '--rate', '1000', '--check')
    out, err = caller.communicate(timeout=20)
    expect(caller.returncode == 0, f'exit code {caller.returncode}: {err}')
    for word in ('p50', 'p99.9', 'max', 'Gbit/s', 'offered', '0 failed, 0 never ended', 'verified'):
        expect(word in out, f'no {word}: {out}')
    for own, cure in ((['--path-mtu', '4096'], 'another --path-mtu'), (['--resp', '100'], 'the same --resp')):
        out, err = (caller := client(session, *own)).communicate(timeout=20)
        said = [line for line in err.splitlines() if line.startswith('cairn-rpcbench: ')]
        expect(caller.returncode == 1 and len(said) == 1 and cure in said[0], f'{own}: {caller.returncode}: {err}')
    server.send_signal(signal.SIGTERM)
    out, _ = server.communicate(timeout=20)
    for word in ('requests served', 'sessions lost', 'responses sent again', 'packets sent again'):
        expect(word in out, f'no {word}: {out}')


def unfinished(session):
    """Calls that never end are counted, and the exit code reports them."""
    server = listen(session)
    caller = client(session, '-D', '2', '--window', '7', '--peer-timeout', '60000')
    expect(any(line.startswith('calls ') for line in caller.stderr), 'it does not call')
    server.send_signal(signal.SIGSTOP)
    out, err = caller.communicate(timeout=20)
    server.send_signal(signal.SIGCONT)
    expect(caller.returncode == 1 and '7 calls did not end' in err, f'exit code {caller.returncode}: {err}')
    expect(json.loads(out)['calls_unfinished'] == 7, out)
    end(server)


def help(session):
    """Every program lists its arguments and its version, and also EAL's own arguments."""
    for program in ('cairn-rpcbench', 'cairn-perf', 'cairn-testpmd', 'cairn-pktgen'):
        for arguments, wanted in ((['-h'], '--port'), (['--help'], '--json'), (['--version'], f'{program} '),
                                  (['-h', '--'], '--file-prefix')):
            out, err = (process := start(session, *arguments, program=program)).communicate(timeout=20)
            expect(process.returncode == 0 and wanted in out, f'{program} {arguments}: {out}{err}')
            expect('->' not in out, f'{program} {arguments}: {out}')


def server_killed(session):
    """Pending calls fail in time, and a new server can use the address at once."""
    for _ in range(3):
        server = listen(session)
        caller = client(session, '--duration', '30', '--peer-timeout', '500')
        time.sleep(1.2)
        server.kill()
        server.communicate()
        _, err = caller.communicate(timeout=20)
        expect(caller.returncode == 1 and 'the peer is gone' in err, f'exit code {caller.returncode}: {err}')
    server = listen(session)
    result = result_of(client(session, '--duration', '0.5'))
    expect(result['rate_mops'] > 0, f'{result}')
    end(server)


def client_stopped(session):
    """A client that is stopped for longer than it waits for a silent server loses nothing."""
    server = listen(session, '--peer-timeout', '1500')
    caller = client(session, '--duration', '3', '--peer-timeout', '1500')
    expect(any(line.startswith('calls ') for line in caller.stderr), 'it does not call')
    caller.send_signal(signal.SIGSTOP)
    time.sleep(2)
    caller.send_signal(signal.SIGCONT)
    out, err = caller.communicate(timeout=20)
    expect(caller.returncode == 0 and json.loads(out)['failed'] == 0, f'exit code {caller.returncode}: {out}{err}')
    expect('clock_leapt' in err, f'the leap was not counted: {err}')
    end(server)


def idle(session):
    """A connected pair without work leaves the CPU alone."""
    server = listen(session)
    result_of(client(session, '--duration', '0.3'))

    def ticks():
        with open(f'/proc/{server.pid}/stat', encoding='ascii') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(2)
    used = (ticks() - before) / os.sysconf('SC_CLK_TCK')
    expect(used < 0.5, f'{used} s of CPU in 2 s of idleness')
    end(server)


def check_icrcs(file, stranger=None):
    """Checks that all frames of a capture but those of `stranger` have the ICRC that an independent computation gives.
    Returns how many there are, and how many of them have an IPv4 ID."""
    ignored = socket.inet_aton(stranger) if stranger else None
    with open(file, 'rb') as opened:
        data = opened.read()
    at, frames, numbered = 24, 0, 0
    while at + 16 <= len(data) and frames < 3000:
        size = int.from_bytes(data[at + 8:at + 12], 'little')
        frame = bytearray(data[at + 16:at + 16 + size])
        at += 16 + size
        expect(frame[36:38] == b'\x12\xb7', 'a frame that is not UDP 4791')
        frame = frame[14:14 + int.from_bytes(frame[16:18], 'big')]
        if ignored in (frame[12:16], frame[16:20]):
            continue
        numbered += frame[4:6] != b'\0\0'
        carried = int.from_bytes(frame[-4:], 'little')
        frame[1] = frame[8] = frame[10] = frame[11] = frame[26] = frame[27] = frame[32] = 0xff
        expect(zlib.crc32(b'\xff' * 8 + bytes(frame[:-4])) == carried, f'ICRC of frame {frames}')
        frames += 1
    return frames, numbered


def pcap(session):
    """The capture holds RoCEv2 frames with correct ICRCs."""
    file = os.path.join(session.work, 'calls.pcap')
    server = listen(session)
    result_of(client(session, '--duration', '0.2', '--pcap', file))
    end(server)
    frames, numbered = check_icrcs(file)
    expect(frames > 10 and numbered > 0, f'{frames} frames, {numbered} of them inside a batch')


def roce_echo(session):
    """testpmd sends all intact datagrams back, and no broken one, which it counts by reason."""
    answering = echo(session)
    for keys in ({}, {'payload_bytes': 0}, {'payload_bytes': 1021, 'rate_pps': 20000},
                 {'count': 50000, 'rate_pps': 1e6}):
        sound = pktgen(session, **keys)
        expect(sound['returned'] == sound['sent'] == keys.get('count', 2000) and sound['returned_broken'] == 0,
               f'{keys}: {sound}')
    for fault in FAULTS:
        broken = pktgen(session, fault=fault)
        sound = 16 if fault == 'opcode' else 0  # two opcodes of 256 are UD's
        expect(broken['sent'] == 2000 and broken['returned'] == sound, f'{fault}: {broken}')
    said = end(answering)
    for counter in ('port_bad_icrc', 'port_too_short', 'wire_bad_version', 'wire_unknown_opcode', 'wire_bad_length',
                    'wire_unexpected_payload', 'ignored'):
        expect(counter in said, f'{counter} was not counted: {said}')


def echo_ports(session):
    """One testpmd answers at several addresses, in every way to drive a socket, and records the first port."""
    file = os.path.join(session.work, 'echo.pcap')
    addresses = (SERVER, machine.loopback(3), machine.loopback(4))
    for mode in ('defer', 'plain'):
        answering = echo(session, '--uring', mode, '--pcap', file, '--poll', 'spin', '--json', addresses=addresses)
        for address in addresses:
            counted = pktgen(session, '--uring', mode, destination=address, count=500)
            expect(counted['returned'] == 500, f'{mode}, {address}: {counted}')
        answering.send_signal(signal.SIGTERM)
        out, said = answering.communicate(timeout=20)
        counted = json.loads(out)
        expect([each['tx_packets'] for each in counted['ports']] == [500] * 3 and counted['seconds'] > 0 and
               counted['tx_mpps'] > 0, out)
        expect(counted['tx_packets'] == 1500 and all(f'uring:{address}:' in said for address in addresses),
               f'{out}{said}')
        expect(check_icrcs(file)[0] == 1000, 'not all frames of the first port')


def hostile_packets(session):
    """A server gets broken datagrams of every kind: all are counted by reason, and the next client is served."""
    server = listen(session)
    file = os.path.join(session.work, 'broken.pcap')
    for fault in [*FAULTS, 'qpn', 'pkey', 'qkey']:
        sent = pktgen(session, '--pcap', file, fault=fault, count=3000)
        expect(sent['sent'] == 3000, f'{fault}: {sent}')
        expect(os.path.getsize(file) > 3000 * 58, f'{fault}: {os.path.getsize(file)} bytes recorded')
    expect(result_of(client(session, '--duration', '0.5'))['rate_mops'] > 0, 'no calls afterwards')
    said = end(server)
    for counter in ('port_bad_icrc', 'port_too_short', 'roce_unknown_qpn', 'roce_bad_pkey', 'roce_bad_qkey',
                    'roce_bad_version', 'roce_bad_opcode', 'roce_bad_length', 'erpc_malformed'):
        expect(counter in said, f'{counter} was not counted: {said}')


def fallback(session):
    """Without --port and without a device the program uses a socket on the machine's first address, and says so in one
    line."""
    without_device = [on_cpus('0'), '--no-huge', '-m', '128', '--no-pci', '--no-shconf', '--no-telemetry', '--']
    for eal, program, own in (
            (without_device, 'cairn-testpmd', ['--forward-mode', 'roce-echo', '--duration', '0.2']),
            ([], 'cairn-pktgen', session.stream(source=None, destination=SERVER, count=10)),
            (without_device, 'cairn-rpcbench', ['--server']), ([], 'cairn-rpcbench', ['--server'])):
        with machine.alone('first-address'):
            process = start(session, *eal, *own, program=program)
            if program == 'cairn-rpcbench':
                time.sleep(2)
                process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=20)
        said = [line for line in err.splitlines() if 'taking uring:' in line]
        expect(process.returncode == 0 and len(said) == 1, f'{program}: exit code {process.returncode}: {err}')
        expect('no --port given and EAL found no ethernet port' in said[0], said[0])


def v6(session):
    """Runs over IPv6, in a network namespace that gives its loopback two addresses."""
    with machine.namespaces(1) as (name,):
        wrap = ['ip', 'netns', 'exec', name]
        for address in ('fd77::1/128', 'fd77::2/128'):
            machine.ip('-n', name, 'addr', 'add', address, 'dev', 'lo', 'nodad')
        server = listen(session, address='fd77::1', wrap=wrap)
        time.sleep(1)
        result = result_of(client(session, '--duration', '1', server='fd77::1', address='fd77::2', wrap=wrap))
        expect(result['rate_mops'] > 0 and result['failed'] == 0, f'{result}')
        end(server)
        server = listen(session, address='fd77::1', wrap=wrap, lcores='0,1')
        time.sleep(1)
        both = {'server': 'fd77::1', 'address': 'fd77::2', 'wrap': wrap}
        result = result_of(client(session, '--duration', '0.5', lcores='0,1', **both))
        expect(result['workers'] == 2 and result['rate_mops'] > 0 and result['failed'] == 0, f'{result}')
        result = result_of(client(session, '--duration', '0.5', '--sessions', '4', **both))
        said = end(server)
        expect(result['failed'] == 0 and 'port_handed_over ' in said, f'{result} {said}')


def expect_refusal(session, program, arguments, named):
    expect_refused(start(session, *arguments, program=program), program, named)


def bad_input(session):
    taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taken.bind((machine.loopback(9), 4791))
    elsewhere = machine.loopback(5)
    here = ['--port', f'uring:{SERVER}']
    for arguments, named in (
            (['--port', f'uring:{machine.loopback(9)}', '--server'], 'another process has it'),
            (['--port', 'uring:192.0.2.77', '--server'], 'address of this machine'),
            (['--port', 'uring:nowhere', '--server'], 'nowhere'),
            ([*here, '--server', '--uring', 'fast'], 'fast'),
            ([*here, '--peer', 'fd77::1'], 'famil'),
            ([*here, '--peer', SERVER], "own address"),
            ([*here, '--peer', '0.0.0.0'], 'no address of a host'),
            ([*here, '--server', '--ip', '10.0.0.1'], '--ip is for ethernet ports'),
            ([*here, '--server', '--buffers', '1024'], '--buffers is for ethernet ports'),
            ([*here, '--server', '--pcap-all'], '--pcap-all is for ethernet ports'),
            ([*here, '--peer', '127.0.0.2', '--check', '--resp', '0'], '--resp 1'),
            (['-l', '0', '--server'], '-l'),
            ([*here, '--server', '--pcap', '/nonexistent/x.pcap'], '/nonexistent/x.pcap'),
            ([on_cpus('0,1'), '--', *here, '--server', '--qpn', '0x101'], '--qpn 0x102'),
            ([on_cpus('0,1'), '--', *here, '--server', '--pcap', '/nonexistent/x.pcap'], '/nonexistent/x.pcap')):
        expect_refusal(session, 'cairn-rpcbench', arguments, named)
    server = listen(session, lcores='0,1')
    for lcores in ('0', '0,1'):
        expect_refusal(session, 'cairn-rpcbench', [on_cpus(lcores), '--', *here, '--server'], 'another process has it')
    end(server)
    for mode in ('io', 'macswap', 'icmpecho', 'rxonly', 'txonly'):
        expect_refusal(session, 'cairn-testpmd', [*here, '--forward-mode', mode], 'needs frames')
    expect_refusal(session, 'cairn-testpmd', [on_cpus('0'), '--no-huge', '-m', '128', '--no-pci', '--no-shconf', '--'],
                   'EAL found no ethernet port')
    for arguments, named in (([*here, '--forward-mode', 'roce-echo', *here], 'another process has it'),
                             ([*here, '--forward-mode', 'roce-echo', '--ip', '10.0.0.1'], '--ip is for ethernet'),
                             ([*here, '--forward-mode', 'roce-echo', '--frame-bytes', '64'], 'txonly'),
                             ([*here, '--forward-mode', 'sideways'], 'sideways')):
        expect_refusal(session, 'cairn-testpmd', arguments, named)
    for keys, named in (*(({'fault': fault}, 'below UDP') for fault in FAULTS_BELOW_UDP),
                        ({'source': elsewhere}, f'--port uring:{elsewhere}'),
                        ({'destination': 'fd77::1'}, 'famil'),
                        ({'fault': 'none of these'}, 'ip-checksum')):
        stream = session.stream(**{'source': None, 'destination': SERVER, **keys})
        expect_refusal(session, 'cairn-pktgen', [*here, *stream], named)
    without_address = session.stream(source=None, destination=SERVER)
    expect_refusal(session, 'cairn-pktgen', [on_cpus('0'), '--no-huge', '-m', '128', '--no-pci', '--no-shconf',
                                             '--vdev=net_null0', '--', *without_address], 'source = ')
    taken.close()


run_case(calls, plain, sqpoll, several_lcores, several_lcores_mixed, losses, marks, sizes, results, unfinished, help,
         server_killed, client_stopped, idle, pcap, roce_echo, echo_ports, hostile_packets, fallback, v6, bad_input)
