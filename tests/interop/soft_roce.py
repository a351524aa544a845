#!/usr/bin/env python3
"""Cairn against Linux Soft-RoCE in a virtual machine.

    soft_roce.py CASE BUILD_FOLDER FOLDER_OF_IMAGES

Each case is a test of its own: exit 0 passed, 77 skipped with the reason on stdout, else failed.
"""
import json
import os
import subprocess
import sys
import time

import guest
import rig
from rig import expect

BUILD, IMAGES = sys.argv[2:4]
PINGS = 20


class Sockets:
    """Cairn on a UDP socket; the kernel here has the addresses."""
    kernel_addresses = True
    families = ((guest.US, guest.THEM), (guest.US_V6, guest.THEM_V6))
    never_sent = ('WRITE Middle', 'WRITE Last')  # a WRITE leaves as several WRITEs of one packet

    @staticmethod
    def arguments(address):
        return ['--port', f'uring:{address}']


class AfPacket:
    """Cairn on the interface itself, by DPDK; the kernel here has no address."""
    kernel_addresses = False
    families = Sockets.families
    never_sent = ()

    @staticmethod
    def arguments(address):
        return [f'--lcores=0@{min(os.sched_getaffinity(0))}', '--no-huge', '-m', '256', '--no-pci', '--no-telemetry',
                '--no-shconf',
                f'--vdev=net_af_packet0,iface={guest.INTERFACE},framesz=8192,framecnt=512,blocksz=8192', '--',
                '--ip', address, '--data-room', '8448']


class Host:
    """Our side of a test."""

    def __init__(self, ports):
        self.ports = ports

    def start(self, address, *own):
        """Starts cairn-perf."""
        return self.start_program('apps/cairn-perf', address, '--path-mtu', '4096', '--json', *own)

    def start_peer(self, address, *own):
        """Starts verbs-peer. A server is ready when this returns."""
        process = self.start_program('tests/interop/verbs-peer', address, *own)
        if '--ask' not in own:
            expect(process.stdout.readline() == 'ready\n', 'verbs-peer opens its port')
        return process

    def start_program(self, program, address, *own):
        command = [os.path.join(BUILD, program), *self.ports.arguments(address), *own]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @staticmethod
    def result_of(process, seconds=60):
        out, err = process.communicate(timeout=seconds)
        expect(process.returncode == 0, f'exit code {process.returncode}: {err}')
        return json.loads(out.strip().splitlines()[-1])


def await_listener(process):
    """Waits until it has had the time to open its port."""
    time.sleep(2)
    if process.poll() is not None:
        expect(False, f'ended: {process.communicate()}')


def both_end(process, theirs, what, seconds=200):
    """Checks that our program and the one in the guest end well."""
    _, err = process.communicate(timeout=seconds)
    status, said = theirs.wait()
    expect(process.returncode == status == 0,
           f'{what}: our exit code {process.returncode}: {err}; theirs {status}: {said}')


def rping_of_theirs(host, machine, ours, theirs, size=64):
    """Runs the guest's client against our server."""
    server = host.start(ours, '--server', '--rping', '--once')
    await_listener(server)
    status, said = machine.run(f'rping -c -a {ours} -C {PINGS} -S {size} -V')
    expect(status == 0, f'rping -c -a {ours}: {status}: {said}')
    result = host.result_of(server)
    expect(result['pings'] == PINGS and result['broken'] == 0, f'{result}')
    return f'their rping client from {theirs}, {size} bytes'


def rping_of_ours(host, machine, ours, theirs, size=64):
    """Runs our client against the guest's server."""
    server = machine.start_server(f'rping -s -a {theirs} -C {PINGS} -S {size} -V')
    result = host.result_of(host.start(ours, '--peer', theirs, '--rping', '--count', str(PINGS), '--size', str(size),
                                       '--check'))
    expect(result['pings'] == result['checked'] == PINGS, f'{result}')
    status, said = server.wait()
    expect(status == 0, f'rping -s: {status}: {said}')
    return f'our rping client to {theirs}, {size} bytes'


def operations(host, machine):
    """Runs every operation of cairn-perf, requested by either end; atomics have 8 bytes."""
    for ours, theirs in host.ports.families:
        for kind in ('send', 'write', 'read', 'cas', 'fadd'):
            size = 8 if kind in ('cas', 'fadd') else 10000
            server = host.start(ours, '--server', '--once')
            await_listener(server)
            status, said = machine.run(f'perf-peer ask {ours} 18515 {kind} {size} 10')
            expect(status == 0, f'{kind} of theirs: {status}: {said}')
            result = host.result_of(server)
            expect(result['received'] == (10 if kind == 'send' else 0) and result['bad'] == result['lost'] == 0,
                   f'{kind}: {result}')
            server = machine.start_server(f'perf-peer serve {theirs} 18515')
            asked = ['--op', kind, '--size', str(size), '--depth', '8', '--duration', '0.5']
            result = host.result_of(host.start(ours, '--peer', theirs, *asked))
            expect(result['operations'] > 10, f'{kind}: {result}')
            status, said = server.wait()
            expect(status == 0, f'{kind} of ours: {status}: {said}')
            print(f'{kind} both ways between {ours} and {theirs}: {result["operations"]} of ours')


def exchange(host, machine):
    for ours, theirs in host.ports.families:
        for size in (64, 20000):
            print(rping_of_theirs(host, machine, ours, theirs, size))
            print(rping_of_ours(host, machine, ours, theirs, size))


def losses(host, machine):
    """Loses one packet of a kind, of either sender. The ends recover by the peer's timeout or sooner."""
    opcodes = {'SEND Only': 4, 'ACK': 0x11, 'READ': 0xc, 'READ response First': 0xd, 'READ response Middle': 0xe,
               'WRITE Middle': 7, 'WRITE Only': 0xa}
    ours, theirs = host.ports.families[0]
    for name, opcode in opcodes.items():
        for test in (rping_of_theirs, rping_of_ours):
            writes_only = test is rping_of_theirs and 'WRITE Middle' in host.ports.never_sent
            if name == ('WRITE Middle' if writes_only else 'WRITE Only'):
                continue  # a server's WRITEs of 20000 bytes have the other opcode
            guest.lose(opcode, skip=2)
            print(f'{name} lost: {test(host, machine, ours, theirs, 20000)}')
            expect(guest.lost() == [1], 'no packet was lost')


# All sizes of each kind that carries data, then the features of memory windows. `ending` invalidates the last one.
def reliable_steps(ending):
    steps = []
    for size in ('0:', '1:s', '4096:', '10001:s'):
        steps += [f'{kind}:{size}' for kind in ('send', 'send_imm', 'write_imm')]
        bytes_only = size.split(':', maxsplit=1)[0]
        steps += [f'{kind}:{bytes_only}' for kind in ('write', 'read', 'bind', 'window_write')]
        steps.append(f'send_inv:{size}')
    return steps + ['cas', 'cas_miss', 'fadd', 'bind', 'window_write:100', ending, 'dead_write:100']


UNRELIABLE_STEPS = [f'{kind}:{size}' for size in ('0', '1', '4096', '10001')
                    for kind in ('send', 'send_imm', 'write', 'write_imm')] + ['send:7:s', 'write_imm:10001:s']


def steps_of_theirs(host, machine, ours, steps, unreliable=False):
    server = host.start_peer(ours)
    asked = f'verbs-peer ask {ours} 18516 {"uc" if unreliable else "rc"} {" ".join(steps)}'
    both_end(server, machine.start(asked, 180), asked)


def steps_of_ours(host, machine, ours, theirs, steps, unreliable=False):
    server = machine.start_server(f'verbs-peer serve {theirs} 18516', 180)
    own = ['--unreliable'] if unreliable else []
    both_end(host.start_peer(ours, '--ask', theirs, *own, *steps), server, f'ours asks {theirs} for {steps}')


def verbs(host, machine):
    """Work requests of every kind, posted by either end."""
    for ours, theirs in host.ports.families:
        for steps, unreliable in ((reliable_steps('send_inv:5'), False), (reliable_steps('local_inv'), False),
                                  (UNRELIABLE_STEPS, True)):
            steps_of_theirs(host, machine, ours, steps, unreliable)
            steps_of_ours(host, machine, ours, theirs, steps, unreliable)
            print(f'{len(steps)} steps over {"UC" if unreliable else "RC"} both ways between {ours} and {theirs}')


# Opcodes of BTH, with steps in which each occurs.
LOST_OPCODES = {
    'SEND Last with immediate': 0x03, 'SEND Only with immediate': 0x05, 'SEND Last with invalidate': 0x16,
    'SEND Only with invalidate': 0x17, 'WRITE Last': 0x08, 'WRITE Only': 0x0a, 'WRITE Last with immediate': 0x09,
    'WRITE Only with immediate': 0x0b, 'READ response Last': 0x0f, 'READ response Only': 0x10, 'ATOMIC ACK': 0x12,
    'CMP_SWAP': 0x13, 'FETCH_ADD': 0x14}
LOSING_STEPS = ['send_imm:10001', 'send_imm:1', 'bind', 'send_inv:10001:s', 'bind', 'send_inv:1', 'write:10001',
                'write:1', 'write_imm:10001:s', 'write_imm:1', 'read:10001', 'read:1', 'fadd', 'cas']


def verbs_losses(host, machine):
    """Loses one packet of each kind: each request is still executed exactly once."""
    ours, theirs = host.ports.families[0]
    for test, never_sent in ((lambda: steps_of_theirs(host, machine, ours, LOSING_STEPS), ()),
                             (lambda: steps_of_ours(host, machine, ours, theirs, LOSING_STEPS),
                              host.ports.never_sent)):
        opcodes = {name: opcode for name, opcode in LOST_OPCODES.items() if name not in never_sent}
        guest.lose(*opcodes.values())
        test()
        lost = dict(zip(opcodes, guest.lost()))
        expect(all(count == 1 for count in lost.values()), f'lost: {lost}')
        print(f'lost: {", ".join(lost)}')


PROGRAM_OF = {'cmatose': 'ucmatose', 'udaddy': 'udaddy'}  # of librdmacm's examples


def example_of_theirs(host, machine, ours, example, options, linger=0):
    """Runs the guest's client of ucmatose or udaddy. `options`: connections, messages, bytes of a message."""
    connections, messages, size = options
    server = host.start_peer(ours, *arguments_of(example, options, linger))
    client = machine.start(f'{PROGRAM_OF[example]} -s {ours} -c {connections} -C {messages} -S {size}')
    both_end(server, client, f'{example} -s {ours}, {options}')


def example_of_ours(host, machine, ours, theirs, example, options, linger=0):
    connections, messages, size = options
    server = machine.start_server(f'{PROGRAM_OF[example]} -b {theirs} -c {connections} -C {messages} -S {size}')
    client = host.start_peer(ours, '--ask', theirs, *arguments_of(example, options, linger))
    both_end(client, server, f'{example} -b {theirs}, {options}')


def arguments_of(example, options, linger):
    connections, messages, size = options
    return ['--test', example, '--connections', str(connections), '--messages', str(messages), '--size', str(size),
            '--linger', str(linger)]


def examples(host, machine, example, sizes):
    for ours, theirs in host.ports.families:
        for options in zip((1, 5), (10, 10), sizes):
            example_of_theirs(host, machine, ours, example, options)
            example_of_ours(host, machine, ours, theirs, example, options)
            print('{} connections, {} messages of {} bytes, both ways'.format(*options), f'between {ours} and {theirs}')


def cmatose(host, machine):
    examples(host, machine, 'cmatose', (100, 10000))


def udaddy(host, machine):
    examples(host, machine, 'udaddy', (100, 4096))


def connection_losses(host, machine):
    """Loses a message of the connection manager, of either sender."""
    ours, theirs = host.ports.families[1]
    options, linger = (1, 2, 100), 15  # the guest asks again after 7 s
    for name, attribute, example in (('REQ', 0x10, 'cmatose'), ('REP', 0x13, 'cmatose'), ('RTU', 0x14, 'cmatose'),
                                     ('DREQ', 0x15, 'cmatose'), ('DREP', 0x16, 'cmatose'),
                                     ('SIDR_REQ', 0x17, 'udaddy'), ('SIDR_REP', 0x18, 'udaddy')):
        wait = linger if name == 'DREP' else 0
        for test in (lambda: example_of_theirs(host, machine, ours, example, options, wait),
                     lambda: example_of_ours(host, machine, ours, theirs, example, options, wait)):
            guest.lose_message(attribute)
            test()
            expect(guest.lost() == [1], f'no {name} was lost')
            if name == 'SIDR_REP':  # Linux asks its user again, and udaddy refuses more requests than its argument says
                break
        print(f'{name} lost between {ours} and {theirs}')


TESTS = {'': exchange, '_losses': losses, '_operations': operations, '_verbs': verbs, '_verbs_losses': verbs_losses,
         '_cmatose': cmatose, '_udaddy': udaddy, '_connection_losses': connection_losses}
CASES = {name + case: (ports, test) for name, ports in (('sockets', Sockets), ('af_packet', AfPacket))
         for case, test in TESTS.items()}


if __name__ == '__main__':
    with_ports, function = CASES[sys.argv[1]]
    rig.with_soft_roce(IMAGES, with_ports.kernel_addresses, lambda machine: function(Host(with_ports), machine))
