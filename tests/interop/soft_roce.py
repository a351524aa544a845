#!/usr/bin/env python3
"""Cairn against Linux Soft-RoCE in a virtual machine.

    soft_roce.py CASE FOLDER_OF_PROGRAMS FOLDER_OF_IMAGES

Each case is a test of its own: exit 0 passed, 77 skipped with the reason on stdout, else failed.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import guest
import image

SKIPPED = 77
PROGRAMS, IMAGES = sys.argv[2:4]
PINGS = 20


def expect(condition, message):
    if not condition:
        print(f'FAILED: {message}')
        sys.exit(1)


class Sockets:
    """Cairn on a UDP socket; the kernel here has the addresses."""
    kernel_addresses = True
    families = ((guest.US, guest.THEM), (guest.US_V6, guest.THEM_V6))

    @staticmethod
    def arguments(address):
        return ['--port', f'uring:{address}']


class AfPacket:
    """Cairn on the interface itself, by DPDK; the kernel here has no address."""
    kernel_addresses = False
    families = Sockets.families

    @staticmethod
    def arguments(address):
        return ['-l', '0', '--no-huge', '-m', '256', '--no-pci', '--no-telemetry', '--no-shconf',
                f'--vdev=net_af_packet0,iface={guest.INTERFACE},framesz=8192,framecnt=512,blocksz=8192', '--',
                '--ip', address, '--data-room', '8448']


class Host:
    """Our side."""

    def __init__(self, carrier):
        self.carrier = carrier

    def start(self, address, *own, program='cairn-perf'):
        command = [os.path.join(PROGRAMS, program), *self.carrier.arguments(address), '--path-mtu', '4096', '--json',
                   *own]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def result_of(process, seconds=60):
        out, err = process.communicate(timeout=seconds)
        expect(process.returncode == 0, f'exit code {process.returncode}: {err}')
        return json.loads(out.strip().splitlines()[-1])


def await_listener(process):
    """Until it has had time to open its port."""
    time.sleep(2)
    if process.poll() is not None:
        expect(False, f'ended: {process.communicate()}')


def rping_of_theirs(host, machine, ours, theirs, size=64):
    """The guest's client against our server."""
    server = host.start(ours, '--server', '--rping', '--once')
    await_listener(server)
    status, said = machine.run(f'rping -c -a {ours} -C {PINGS} -S {size} -V')
    expect(status == 0, f'rping -c -a {ours}: {status}: {said}')
    result = host.result_of(server)
    expect(result['pings'] == PINGS and result['broken'] == 0, f'{result}')
    return f'their rping client from {theirs}, {size} bytes'


def rping_of_ours(host, machine, ours, theirs, size=64):
    """Our client against the guest's server."""
    server = machine.start(f'rping -s -a {theirs} -C {PINGS} -S {size} -V')
    time.sleep(1)
    result = host.result_of(host.start(ours, '--peer', theirs, '--rping', '--count', str(PINGS), '--size', str(size),
                                       '--check'))
    expect(result['pings'] == result['checked'] == PINGS, f'{result}')
    status, said = server.wait()
    expect(status == 0, f'rping -s: {status}: {said}')
    return f'our rping client to {theirs}, {size} bytes'


def operations(host, machine):
    """Every operation of cairn-perf, asked for by either end; atomics have 8 bytes."""
    for ours, theirs in host.carrier.families:
        for kind in ('send', 'write', 'read', 'cas', 'fadd'):
            size = 8 if kind in ('cas', 'fadd') else 10000
            server = host.start(ours, '--server', '--once')
            await_listener(server)
            status, said = machine.run(f'perf-peer ask {ours} 18515 {kind} {size} 10')
            expect(status == 0, f'{kind} of theirs: {status}: {said}')
            result = host.result_of(server)
            expect(result['received'] == (10 if kind == 'send' else 0) and result['bad'] == result['lost'] == 0,
                   f'{kind}: {result}')
            server = machine.start(f'perf-peer serve {theirs} 18515')
            time.sleep(1)
            asked = ['--op', kind, '--size', str(size), '--depth', '8', '--duration', '0.5']
            result = host.result_of(host.start(ours, '--peer', theirs, *asked))
            expect(result['operations'] > 10, f'{kind}: {result}')
            status, said = server.wait()
            expect(status == 0, f'{kind} of ours: {status}: {said}')
            print(f'{kind} both ways between {ours} and {theirs}: {result["operations"]} of ours')


def exchange(host, machine):
    for ours, theirs in host.carrier.families:
        for size in (64, 20000):
            print(rping_of_theirs(host, machine, ours, theirs, size))
            print(rping_of_ours(host, machine, ours, theirs, size))


def losses(host, machine):
    """One packet of a kind is lost, whoever sends it: recovered from, by the peer's timeout or sooner."""
    send_only, acknowledge, read_request, read_first, read_middle, write_middle = 4, 0x11, 0xc, 0xd, 0xe, 7
    ours, theirs = host.carrier.families[0]
    for opcode in (send_only, acknowledge, read_request, read_first, read_middle, write_middle):
        for test in (rping_of_theirs, rping_of_ours):
            guest.lose(opcode, 2)
            print(f'opcode {opcode:#x} lost: {test(host, machine, ours, theirs, 20000)}')
            expect(guest.lost() == 1, 'no packet was lost')


CASES = {'sockets': (Sockets, exchange), 'af_packet': (AfPacket, exchange), 'sockets_losses': (Sockets, losses),
         'af_packet_losses': (AfPacket, losses),
         'sockets_operations': (Sockets, operations), 'af_packet_operations': (AfPacket, operations)}


def main():
    if os.geteuid() != 0:
        print('skipped: network namespaces need root')
        sys.exit(SKIPPED)
    try:
        kernel, initramfs = image.build(IMAGES)
    except image.Missing as missing:
        print(f'skipped: {missing}')
        sys.exit(SKIPPED)
    guest.enter()
    carrier, function = CASES[sys.argv[1]]
    work = tempfile.mkdtemp(prefix='cairn-interop-')
    try:
        guest.make_network(carrier.kernel_addresses)
        machine = guest.Guest(kernel, initramfs, work)
        machine.await_ready()
        function(Host(carrier), machine)
    finally:
        shutil.rmtree(work, ignore_errors=True)


main()
