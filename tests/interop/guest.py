"""A Linux host in a small virtual machine; one with Soft-RoCE is on a bridge with our interface `cairn0`.

Everything is in a network and process namespace made by enter(), which ends with the process.

    cairn0 (10.77.0.1, fd77::1) --veth-- bridge --tap-- guest (10.77.0.10, fd77::10)
"""
import base64
import contextlib
import os
import re
import socket
import subprocess
import sys
import time

US, THEM = '10.77.0.1', '10.77.0.10'
US_V6, THEM_V6 = 'fd77::1', 'fd77::10'
INTERFACE = 'cairn0'
OUR_MAC, GUEST_MAC, CONTROL_MAC = '52:54:00:77:00:01', '52:54:00:77:00:10', '52:54:00:78:00:10'
MTU = 4500
CONTROL_PORT, CALLS_PORT = 22000, 22001
BOOT_SECONDS = 180
INSIDE = 'CAIRN_INTEROP_INSIDE'
# The guest completes its checksums itself, so that packets captured raw are complete.
NO_OFFLOADS = ''.join(f',{name}=off' for name in (
    'csum', 'guest_csum', 'gso', 'guest_tso4', 'guest_tso6', 'guest_ufo', 'guest_ecn', 'host_tso4', 'host_tso6',
    'host_ufo', 'host_ecn'))


def enter():
    """Starts this program again in namespaces of its own. The processes that it starts end with it."""
    if os.environ.get(INSIDE) != '1':
        os.environ[INSIDE] = '1'
        os.execvp('unshare', ['unshare', '--net', '--pid', '--fork', '--kill-child', '--mount-proc', sys.executable,
                              *sys.argv])


def ip(*arguments):
    subprocess.run(['ip', *arguments], check=True)


def set_ipv6(interface, key, value):
    with open(f'/proc/sys/net/ipv6/conf/{interface}/{key}', 'w', encoding='ascii') as file:
        file.write(str(value))


def make_network(addresses):
    """Makes the network. `addresses` says whether the kernel here has them, too; else Cairn answers ARP and ND
    itself."""
    ip('link', 'set', 'lo', 'up')
    set_ipv6('default', 'accept_dad', 0)
    set_ipv6('default', 'router_solicitations', 0)
    ip('link', 'add', 'bridge', 'type', 'bridge', 'stp_state', '0', 'mcast_snooping', '0', 'forward_delay', '0')
    ip('link', 'add', INTERFACE, 'mtu', str(MTU), 'address', OUR_MAC, 'type', 'veth', 'peer', 'name', 'port', 'mtu',
       str(MTU))
    ip('tuntap', 'add', 'tap', 'mode', 'tap')
    for interface in (INTERFACE, 'port'):
        subprocess.run(['ethtool', '-K', interface, 'tx', 'off', 'rx', 'off', 'tso', 'off', 'gso', 'off', 'gro', 'off'],
                       check=True, capture_output=True)
    for quiet in ('bridge', 'port', 'tap'):
        set_ipv6(quiet, 'disable_ipv6', 1)
        ip('link', 'set', quiet, 'arp', 'off')  # else the bridge also answers for the interface's address
    for interface in ('bridge', 'port', 'tap', INTERFACE):
        ip('link', 'set', interface, 'mtu', str(MTU), 'up')
    for interface in ('port', 'tap'):
        ip('link', 'set', interface, 'master', 'bridge')
    if addresses:
        ip('addr', 'add', f'{US}/24', 'dev', INTERFACE)
        ip('-6', 'addr', 'add', f'{US_V6}/64', 'dev', INTERFACE, 'nodad')
    else:
        set_ipv6(INTERFACE, 'disable_ipv6', 1)


def lose(*opcodes, skip=0):
    """Loses one packet with each BTH opcode on the bridge, in either direction, after `skip` others. Replaces the last
    rule.

    '1-4' loses four after one."""
    lose_first([f'@th,64,8 {opcode}' for opcode in opcodes], skip)


def lose_message(attribute, skip=0):
    """Loses a management datagram with that attribute ID, as lose() does."""
    # The attribute ID lies after 8 bytes of UDP, 12 of BTH to queue pair 1, 8 of DETH and 16 of the datagram.
    lose_first([f'@th,64,8 0x64 @th,104,24 1 @th,352,16 {attribute}'], skip)


def lose_one_in(count):
    """Loses one RoCEv2 packet of `count`, of any kind."""
    lose_first([''], 0, count)


def lose_first(matches, skip, of=1000000000):
    subprocess.run(['nft', 'delete', 'table', 'bridge', 'loss'], capture_output=True, check=False)
    drops = ''.join(f'meta l4proto udp udp dport 4791 {match} numgen inc mod {of} {skip} counter drop\n'
                    for match in matches)
    rules = f'table bridge loss {{\nchain passing {{\ntype filter hook forward priority 0;\n{drops}}}\n}}\n'
    subprocess.run(['nft', '-f', '-'], input=rules, text=True, check=True)


def lost():
    """Returns how many packets each rule has lost."""
    said = subprocess.run(['nft', 'list', 'table', 'bridge', 'loss'], capture_output=True, text=True, check=True).stdout
    return [int(packets) for packets in re.findall(r'counter packets (\d+)', said)]


def network_card():
    """Returns the hardware of a guest with Soft-RoCE."""
    return ['-m', '320', '-cpu', 'qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+rdrand', '-machine', 'q35,smm=off,hpet=off',
            '-netdev', 'tap,id=data,ifname=tap,script=no,downscript=no,vhost=off',
            '-device', f'virtio-net-pci,netdev=data,mac={GUEST_MAC},romfile={NO_OFFLOADS}']


def network_words():
    """Returns the words for the guest's command line that describe its network."""
    return {'mac': GUEST_MAC, 'mtu': MTU, 'v4': THEM, 'v6': THEM_V6}


class Guest:
    """A virtual machine. `image` is kernel and initramfs; `hardware` is memory, CPU, machine and devices, as qemu's
    arguments; `words` are for the guest's command line. A new boot is another object."""

    def __init__(self, image, work, hardware, words):
        kernel, initramfs = image
        self.console = os.path.join(work, 'console')
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.console)
        words = {**words, 'control_mac': CONTROL_MAC}
        forwards = ''.join(f',hostfwd=tcp:127.0.0.1:{here}-10.0.2.15:{there}'
                           for here, there in ((CONTROL_PORT, 2000), (CALLS_PORT, 2001)))
        # Emulated everywhere, since the features of KVM differ from machine to machine.
        self.process = subprocess.Popen([
            'qemu-system-x86_64', '-nodefaults', '-no-user-config', '-nographic', '-no-reboot',
            '-accel', 'tcg,tb-size=128', '-smp', '1', *hardware,
            '-kernel', kernel, '-initrd', initramfs, '-serial', f'file:{self.console}',
            '-append', 'console=ttyS0 quiet panic=-1 mitigations=off nokaslr ' +
            ' '.join(f'cairn.{key}={value}' for key, value in words.items()),
            '-netdev', f'user,id=control,restrict=on,ipv6=off{forwards}',
            '-device', f'virtio-net-pci,netdev=control,mac={CONTROL_MAC},romfile=',
            '-object', 'rng-random,id=random,filename=/dev/urandom', '-device', 'virtio-rng-pci,rng=random'],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def said(self):
        if not os.path.exists(self.console):
            return ''
        with open(self.console, encoding='utf-8', errors='replace') as file:
            return file.read()

    def await_ready(self):
        end = time.monotonic() + BOOT_SECONDS
        while 'CAIRN-READY' not in self.said():
            if time.monotonic() > end or self.process.poll() is not None:
                self.process.kill()
                raise RuntimeError(f'the guest did not come up: {self.said()[-2000:]} {self.process.communicate()[0]}')
            time.sleep(0.1)
        if 'CAIRN-FAILED' in self.said():
            raise RuntimeError(self.said())

    def lose_power(self):
        """Ends the machine without writing anything back."""
        self.process.kill()
        self.process.communicate()

    def start(self, command, seconds=60):
        """Starts a command in the guest."""
        if self.process.poll() is not None:
            raise RuntimeError(f'the guest ended: {self.process.communicate()[0]} {self.said()[-2000:]}')
        return Running(command, seconds)

    def start_server(self, command, seconds=60):
        """As start(), for a command that listens for connections."""
        running = self.start(command, seconds)
        end = time.monotonic() + BOOT_SECONDS
        while not self.listens():
            if time.monotonic() > end:
                raise RuntimeError(f'{command} does not listen: {running.wait()}')
        return running

    def listens(self):
        """Returns whether a program awaits connections by rdma_cm."""
        return self.run('rdma resource show cm_id | grep -q LISTEN')[0] == 0

    def run(self, command, seconds=60):
        """Returns (exit code, output) of a command."""
        return self.start(command, seconds).wait()

    def counter(self, name):
        """Returns one of Soft-RoCE's counters."""
        return int(self.run(f'cat /sys/class/infiniband/rxe0/ports/1/hw_counters/{name}')[1])


class Running:
    def __init__(self, command, seconds):

        self.socket = socket.create_connection(('127.0.0.1', CONTROL_PORT), timeout=20)
        self.socket.settimeout(seconds + 20)
        self.socket.sendall(f'{seconds} {base64.b64encode(command.encode()).decode()}\n'.encode())

    def wait(self):
        said = b''
        while (status := re.search(rb'@@status=(\d+)\n', said)) is None:
            more = self.socket.recv(65536)
            if not more:
                raise RuntimeError(f'the guest hung up: {said}')
            said += more
        self.socket.close()
        return int(status.group(1)), said[:status.start()].decode(errors='replace')
