#!/usr/bin/env python3
"""The programs over UDP sockets of the kernel, as any user.

    rpc_over_sockets.py CASE FOLDER_OF_PROGRAMS

Each case is a test of its own: exit 0 passed, 77 skipped with the reason on stdout, else failed.
"""
import os
import socket
import subprocess
import sys
import time
import zlib

from session import SKIPPED, Session, end, expect, result_of

SERVER = '127.77.0.1'
CLIENT = '127.77.0.2'


def start(session, *own, wrap=()):
    process = subprocess.Popen([*wrap, session.program, *own], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    session.running.append(process)
    return process


def listen(session, *own, address=SERVER, **options):
    """A server, once its socket is there."""
    process = start(session, '--port', f'uring:{address}', '--server', *own, **options)
    for _ in range(200):
        with open('/proc/net/udp', encoding='ascii') as file:
            if any(line.split()[1].endswith(':12B7') and line.split()[1].startswith('01004D7F')
                   for line in file.readlines()[1:]) or process.poll() is not None or address != SERVER:
                break
        time.sleep(0.05)
    expect(process.poll() is None, 'the server ended')
    return process


def client(session, *own, server=SERVER, address=CLIENT, **options):
    return start(session, '--port', f'uring:{address}', '--peer', server, '--json', *own, **options)


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


def losses(session):
    """Calls survive injected loss at both ends, and none is lost."""
    server = listen(session, '--drop-per-million', '10000')
    result = result_of(client(session, '--duration', '1', '--drop-per-million', '10000'))
    end(server)
    expect(result['retransmits'] > 0 and result['failed'] == 0, f'{result}')


def sizes(session):
    """Answers longer and shorter than their requests, up to the largest path MTU."""
    for request, response in ((0, 0), (1, 4000), (4000, 1), (3000, 3000)):
        both = ['--path-mtu', '4096', '--req', str(request), '--resp', str(response)]
        server = listen(session, *both)
        result = result_of(client(session, '--duration', '0.3', *both))
        end(server)
        expect(result['rate_mops'] > 0 and result['failed'] == 0, f'{request}, {response}: {result}')


def server_killed(session):
    """Pending calls fail in time, and the address can be served again at once."""
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


def idle(session):
    """A connected pair that has nothing to do leaves the CPU alone."""
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


def pcap(session):
    """The capture holds RoCEv2 frames whose ICRC an independent computation confirms."""
    file = os.path.join(session.work, 'calls.pcap')
    server = listen(session)
    result_of(client(session, '--duration', '0.2', '--pcap', file))
    end(server)
    with open(file, 'rb') as opened:
        data = opened.read()
    at, frames, numbered = 24, 0, 0
    while at + 16 <= len(data) and frames < 3000:
        size = int.from_bytes(data[at + 8:at + 12], 'little')
        frame = bytearray(data[at + 16:at + 16 + size])
        at += 16 + size
        expect(frame[36:38] == b'\x12\xb7', 'a frame that is not UDP 4791')
        frame = frame[14:14 + int.from_bytes(frame[16:18], 'big')]
        numbered += frame[4:6] != b'\0\0'
        carried = int.from_bytes(frame[-4:], 'little')
        frame[1] = frame[8] = frame[10] = frame[11] = frame[26] = frame[27] = frame[32] = 0xff
        expect(zlib.crc32(b'\xff' * 8 + bytes(frame[:-4])) == carried, f'ICRC of frame {frames}')
        frames += 1
    expect(frames > 10 and numbered > 0, f'{frames} frames, {numbered} of them inside a batch')


def v6(session):
    """Over IPv6, in a network namespace that gives its loopback two addresses."""
    if os.geteuid() != 0:
        print('a network namespace needs root')
        sys.exit(SKIPPED)
    name = f'cairn-s{os.getpid() % 100000}'
    wrap = ['ip', 'netns', 'exec', name]
    try:
        if subprocess.run(['ip', 'netns', 'add', name], capture_output=True, check=False).returncode != 0:
            print('no network namespaces here')
            sys.exit(SKIPPED)
        for command in (['link', 'set', 'lo', 'up'], ['addr', 'add', 'fd77::1/128', 'dev', 'lo', 'nodad'],
                        ['addr', 'add', 'fd77::2/128', 'dev', 'lo', 'nodad']):
            subprocess.run(['ip', '-n', name, *command], check=True)
        server = listen(session, address='fd77::1', wrap=wrap)
        time.sleep(1)
        result = result_of(client(session, '--duration', '1', server='fd77::1', address='fd77::2', wrap=wrap))
        expect(result['rate_mops'] > 0 and result['failed'] == 0, f'{result}')
        end(server)
    finally:
        subprocess.run(['ip', 'netns', 'del', name], capture_output=True, check=False)


def bad_input(session):
    """One line that names the cause and the remedy, exit code 2."""
    taken = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    taken.bind(('127.77.0.9', 4791))
    cases = [
        (['--port', 'uring:127.77.0.9', '--server'], 'another process has it'),
        (['--port', 'uring:192.0.2.77', '--server'], 'address of this machine'),
        (['--port', 'uring:nowhere', '--server'], 'nowhere'),
        (['--port', 'uring:127.77.0.1', '--server', '--uring', 'fast'], 'fast'),
        (['--port', 'uring:127.77.0.1', '--peer', 'fd77::1'], 'famil'),
        (['--port', 'uring:127.77.0.1', '--server', '--pcap', '/nonexistent/x.pcap'], '/nonexistent/x.pcap'),
        (['--lcores', '(0-1)@0', '--', '--port', 'uring:127.77.0.1', '--server'], 'one worker'),
    ]
    for arguments, named in cases:
        process = start(session, *arguments)
        out, err = process.communicate(timeout=30)
        said = [line for line in err.splitlines() if line.startswith('cairn-rpcbench: ')]
        expect(process.returncode == 2, f'{arguments}: exit code {process.returncode}: {err}')
        expect(len(said) == 1 and named in said[0] and out == '', f'{arguments}: said {err!r}')
    taken.close()


CASES = {function.__name__: function for function in (
    calls, plain, sqpoll, losses, sizes, server_killed, idle, pcap, v6, bad_input)}


def main():
    session = Session(sys.argv[2])
    try:
        CASES[sys.argv[1]](session)
    finally:
        session.close()


main()
