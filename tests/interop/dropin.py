#!/usr/bin/env python3
"""Debian's verbs programs under cairn-run, with the same program on Linux Soft-RoCE at the other end.

    dropin.py CASE BUILD_FOLDER FOLDER_OF_IMAGES

Each row of a case runs twice, with the server at either end. Every packet of both ends is judged.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile
import time

import guest
import image
import rig
import sniffer
from rig import expect
from soft_roce import UNRELIABLE_STEPS, reliable_steps
import listening  # in tests/programs, where sniffer looks

BUILD, IMAGES = sys.argv[2:4]
SECONDS = 200  # limit for a program; the guest is emulated
TRIES = 20
GROUP = '239.1.2.3'
REQ, SIDR_REQ = 0x10, 0x17  # attribute IDs of requests for connections, and for queue pairs of datagrams
# Our device and the guest's have the GID of such an address at the same index.
Family = collections.namedtuple('Family', 'ours theirs gid')
V4, V6 = Family(guest.US, guest.THEM, 1), Family(guest.US_V6, guest.THEM_V6, 2)


def until(is_so, what):
    end = time.monotonic() + SECONDS
    while not is_so():
        expect(time.monotonic() < end, f'in {SECONDS} s, {what}')
        time.sleep(0.02)


class Running:
    """A program of ours, with the interface that guest.Running has for the guest's programs."""

    def __init__(self, command, address):
        self.said = tempfile.TemporaryFile('w+', errors='replace')  # its output is read after its end
        self.process = subprocess.Popen(
            [os.path.join(BUILD, 'apps/cairn-run'), '--devices', f'cairn0={address}', *command.split()],
            stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said)

    def wait(self):
        late = ''
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            late = f'not done in {SECONDS} s: '
        self.said.seek(0)
        return self.process.returncode, late + self.said.read()


class Ours:
    name = 'our server'

    def __init__(self, family):
        self.address, self.rendezvous = family.ours, guest.US

    def start(self, command):
        return Running(command, self.address)

    start_listener = start  # nothing reports when it listens

    listens = staticmethod(listening.has_listener)

    @staticmethod
    def belongs_to_group():
        with open('/proc/net/igmp', encoding='ascii') as file:
            return '030201EF' in file.read()


class Theirs:
    name = 'their server'

    def __init__(self, family, machine):
        self.address, self.rendezvous, self.machine = family.theirs, guest.THEM, machine

    def start(self, command):
        return self.machine.start(command, SECONDS)

    def start_listener(self, command):
        return self.machine.start_server(command, SECONDS)

    def listens(self, port):
        return self.machine.run(f'netstat -ltn | grep -q ":{port} "')[0] == 0

    def belongs_to_group(self):
        return self.machine.run('grep -q 3333ef010203 /proc/net/dev_mcast')[0] == 0  # the address as Soft-RoCE maps it


class Pairs:
    """Runs programs in pairs, each with a port of its own."""

    def __init__(self, machine):
        self.machine, self.port = machine, 20000

    def ends(self, family):
        """Yields (server, client), both ways."""
        ours, theirs = Ours(family), Theirs(family, self.machine)
        return (ours, theirs), (theirs, ours)

    @staticmethod
    def judge(what, **ended):
        for end, (status, said) in ended.items():
            expect(status == 0, f'{what}: exit code {status} of the {end}: {said[-2000:]}')
            expect('invalid data' not in said, f'{what}: {end}: {said}')  # a pingpong reports only this
        print(what, flush=True)

    def exchange(self, family, command):
        """Runs programs that exchange their addresses by TCP, over IPv4, the only family that pingpongs listen to."""
        for server, client in self.ends(family):
            self.port += 1
            what = f'{command} -p {self.port}'
            serving = server.start(what)
            until(lambda server=server: server.listens(self.port), f'{server.name} of {what} listens')
            asking = client.start(f'{what} {server.rendezvous}')
            self.judge(f'{server.name}: {what}', client=asking.wait(), server=serving.wait())

    def connect(self, family, server_command, client_command, again=None):
        """Runs programs that connect by rdma_cm. {s} is the server's address, {p} a port.

        With `again` the client asks a second time as soon as it has its answer, and takes a refusal for an error. The
        server of an emulated machine may not yet listen again, so that request is lost once. `again` is its attribute
        ID and its number among those, from 0."""
        for server, client in self.ends(family):
            self.port += 1
            where = {'s': server.address, 'p': self.port}
            serving = server.start_listener(server_command.format(**where))
            if again and isinstance(server, Theirs):
                guest.lose_message(*again)
            for _ in range(TRIES):
                status, said = client.start(client_command.format(**where)).wait()
                if isinstance(server, Theirs) or not NOT_YET.search(said):
                    break
                time.sleep(0.2)
            what = f'{server.name}: {client_command.format(**where)}'
            self.judge(what, client=(status, said), server=(0, '') if status else serving.wait())

    def multicast(self, family):
        """Runs a multicast test in which the server receives."""
        for receiver, sender in self.ends(family):
            receiving = receiver.start(f'mckey -b {receiver.address} -m {GROUP} -C 20')
            until(receiver.belongs_to_group, f'{receiver.address} belongs to {GROUP}')
            sending = sender.start(f'mckey -s -b {sender.address} -m {GROUP} -C 20')
            self.judge(f'{receiver.name}: mckey', sender=sending.wait(), receiver=receiving.wait())


# The output of a client while our server does not listen yet.
NOT_YET = re.compile(r'REJECTED[;,]? error:? 8\b|UNREACHABLE[;,]? error:? 1\b|Unexpected CM event bl blka 8|'
                     r'REJECTED instead of .* status 8\b')
MTUS = (256, 512, 1024, 2048, 4096)


def rc_pingpong(pairs):
    """Each size with each path MTU."""
    for size, times in ((1, 50), (255, 50), (4096, 30), (70001, 10), (1 << 20, 3)):
        for mtu in MTUS:
            pairs.exchange(V4, f'ibv_rc_pingpong -g {V4.gid} -c -n {times} -s {size} -m {mtu}')
    for options in ('-s 1 -m 256', '-s 5000 -m 4096', '-s 20000 -m 1024 -e'):
        pairs.exchange(V6, f'ibv_rc_pingpong -g {V6.gid} -c -n 20 {options}')


def pingpongs(pairs):
    """The pingpongs of other services. An unreliable one waits for ever if a packet is lost, so it has few packets
    under way. Pingpongs with a shared queue give up after half a second, the time that an emulated machine takes for
    many.

    Not ibv_xsrq_pingpong: Soft-RoCE has no XRC."""
    for family in (V4, V6):
        for mtu in MTUS:
            pairs.exchange(family, f'ibv_uc_pingpong -g {family.gid} -c -n 20 -s 9000 -m {mtu} {"-e" * (mtu > 1024)}')
        for options in ('-s 1', '-s 1024 -e', '-s 4096'):
            pairs.exchange(family, f'ibv_ud_pingpong -g {family.gid} -c -n 20 {options}')
        for options in ('-s 4096 -q 8', '-s 20000 -m 512 -q 4 -e'):
            pairs.exchange(family, f'ibv_srq_pingpong -g {family.gid} -c -n 50 {options}')


# -u avoids retransmissions, since the emulated end is slow. perftest does not verify contents.
PATIENT = '-F -u 18'
# perftest asks its device for as many outstanding READs as the other end's device has: 128 with Soft-RoCE, while ours
# has 16.
READS = '-o 16'
PERFTEST = (
    *(f'{test} -s {size} -n {times}' for test in ('ib_send_bw', 'ib_write_bw', f'ib_read_bw {READS}')
      for size, times in ((1, 100), (4096, 100), (65536, 20), (1 << 20, 5))),
    f'ib_atomic_bw -n 100 {READS}', f'ib_atomic_bw -A CMP_AND_SWAP -n 100 {READS}',
    'ib_send_lat -n 100', 'ib_send_lat -s 10000 -n 50 -e', 'ib_write_lat -n 100', f'ib_read_lat -n 100 {READS}',
    f'ib_atomic_lat -n 100 {READS}',
    'ib_send_bw -c UC -s 4096 -n 20 -t 4', 'ib_write_bw -c UC -s 4096 -n 20 -t 4',
    'ib_send_bw -c UD -s 2048 -n 20 -t 4',
    'ib_send_bw -q 4 -s 5000 -m 1024 -n 50', f'ib_read_bw -b -q 2 -s 20000 -n 20 {READS}',
    'ib_write_bw -b -s 20000 -n 20',
)
CONNECTING = ('ib_send_bw -s 4096 -n 100', 'ib_write_bw -s 65536 -n 20', 'ib_read_bw -s 65536 -n 20',
              'ib_atomic_bw -n 100', 'ib_send_lat -n 100', 'ib_send_bw -c UD -s 1024 -n 20 -t 4',
              'ib_write_bw -q 4 -s 4096 -n 50')


def perftest(pairs):
    for row in PERFTEST:
        pairs.exchange(V4, f'{row} -x {V4.gid} {PATIENT}')
    for test in ('ib_send_bw -s 5000', 'ib_write_bw -s 20000', f'ib_read_bw -s 20000 {READS}', f'ib_atomic_bw {READS}',
                 'ib_send_lat'):
        pairs.exchange(V6, f'{test} -n 20 -x {V6.gid} {PATIENT}')


def perftest_connecting(pairs):
    for row in CONNECTING:
        again = (SIDR_REQ, 0) if '-c UD' in row else (REQ, '1-4' if '-q 4' in row else 1)
        pairs.connect(V4, f'{row} -R {PATIENT} -p {{p}}', f'{row} -R {PATIENT} -p {{p}} {{s}}', again)


def connecting(pairs):
    """Runs the examples of librdmacm. rping -V verifies contents."""
    for family in (V4, V6):
        for size in (23, 64, 5000, 65000):
            options = f'-a {{s}} -p {{p}} -C 20 -S {size} -V{" -v" * (size < 100)}'
            pairs.connect(family, f'rping -s {options}', f'rping -c {options}')
        for connections, messages, size in ((1, 10, 100), (5, 10, 10000)):
            options = f'-p {{p}} -c {connections} -C {messages} -S {size}'
            pairs.connect(family, f'ucmatose -b {{s}} {options}', f'ucmatose -s {{s}} {options}')
            options = f'-c {connections} -C {messages} -S {min(size, 4096)}'
            pairs.connect(family, f'udaddy -b {{s}} {options}', f'udaddy -s {{s}} {options}')
        pairs.connect(family, 'rdma_server -s {s} -p {p}', 'rdma_client -s {s} -p {p}')
    pairs.multicast(V4)


def verbs(pairs):
    """Runs one work request after the other, of every kind, and verifies contents, keys and immediate values."""
    with tempfile.TemporaryDirectory(prefix='cairn-interop-') as folder:
        os.environ['PATH'] = f'{folder}:{os.environ["PATH"]}'
        image.compiled_peer('verbs-peer', folder)
        for family in (V4, V6):
            for service, steps in (('rc', reliable_steps('send_inv:5')), ('rc', reliable_steps('local_inv')),
                                   ('uc', UNRELIABLE_STEPS)):
                asked = f'verbs-peer ask {{s}} {{p}} {service} {" ".join(steps)}'
                pairs.connect(family, 'verbs-peer serve {s} {p}', asked)


def losses(pairs):
    """Runs programs while one packet of 97 is lost, of either sender."""
    guest.lose_one_in(97)
    pairs.exchange(V4, f'ibv_rc_pingpong -g {V4.gid} -c -n 200 -s 20000')
    for row in ('ib_send_bw -s 20000', 'ib_write_bw -s 20000', f'ib_read_bw -s 20000 {READS}', f'ib_atomic_bw {READS}',
                'ib_send_lat -s 20000'):
        pairs.exchange(V4, f'{row} -n 100 -x {V4.gid} -F')
    options = '-a {s} -p {p} -C 100 -S 20000 -V'
    pairs.connect(V4, f'rping -s {options}', f'rping -c {options}')
    expect(guest.lost()[0] > 100, f'lost: {guest.lost()}')
    print(f'lost: {guest.lost()[0]}')


CASES = {'rc_pingpong': rc_pingpong, 'pingpongs': pingpongs, 'perftest': perftest,
         'perftest_connecting': perftest_connecting, 'connecting': connecting, 'verbs': verbs, 'losses': losses}


def test(machine):
    wire = sniffer.Sniffer(guest.INTERFACE)
    CASES[sys.argv[1]](Pairs(machine))
    packets, faults = wire.end()
    print(f'RoCEv2 packets by sender: {dict(packets)}')
    expect(not faults, f'{len(faults)} wrong packets: {faults[:5]}')
    for sender in (guest.US, guest.THEM):
        expect(packets[sender] > 100, f'few packets of {sender}: {packets}')


if __name__ == '__main__':
    rig.with_soft_roce(IMAGES, True, test)
