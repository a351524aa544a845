"""Resources of the machine for tests and scripts: usable CPUs, addresses of their own, network namespaces."""
import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import time

HOSTS = 16  # addresses of a block; the first one is the claim to all
BLOCKS = 1 << 19  # 127.64.0.0 to 127.191.255.255
CLAIM_PORT = 14790


class Unavailable(Exception):
    """Raised if the machine lacks a resource; the text names it and says why."""


def cpus():
    """Returns the CPUs that this process may use; taskset, a container or a batch system may restrict them."""
    return sorted(os.sched_getaffinity(0))


class Loopback:
    """Addresses of 127.0.0.0/8 that no other process gets from here, whatever its process ID; freed when it ends."""

    def __init__(self):
        self.claim = None
        self.first = 0

    def __call__(self, host):
        """Returns the address of host 1 to 15."""
        if not 0 < host < HOSTS:
            raise ValueError(f'host {host} is none of 1 to {HOSTS - 1}')
        if self.claim is None:
            self.take()
        return self.text(host)

    def text(self, host):
        return socket.inet_ntoa((self.first + host).to_bytes(4, 'big'))

    def take(self):
        self.claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for block in range(os.getpid(), os.getpid() + BLOCKS):
            self.first = 0x7f400000 + block % BLOCKS * HOSTS
            try:
                self.claim.bind((self.text(0), CLAIM_PORT))
                return
            except OSError:
                pass
        raise Unavailable('no addresses of 127.0.0.0/8 are free here')


loopback = Loopback()


def free_tcp_port():
    """Returns a TCP port on which no process listens at the moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def alone(name):
    """Lets one process of this network namespace run at a time, for resources that cannot have a name of their own."""
    end = time.monotonic() + 60
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
        while True:
            try:
                lock.bind(f'\0cairn-{name}')
                break
            except OSError as error:
                if time.monotonic() > end:
                    raise Unavailable(f'another process keeps {name} to itself') from error
                time.sleep(0.1)
        yield


def ip(*arguments):
    done = subprocess.run(['ip', *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f'ip {" ".join(arguments)}: {done.stderr.strip()}')


@contextlib.contextmanager
def namespaces(count):
    """Makes `count` network namespaces with their loopbacks up, and yields their names; they end with the block."""
    if os.geteuid() != 0:
        raise Unavailable('network namespaces need root')
    if shutil.which('ip') is None:
        raise Unavailable('network namespaces need ip; install iproute2')
    names = [f'cairn-{os.getpid()}-{number}' for number in range(count)]
    try:
        for name in names:
            ip('netns', 'add', name)
            ip('-n', name, 'link', 'set', 'lo', 'up')
        yield names
    finally:
        for name in names:
            subprocess.run(['ip', 'netns', 'del', name], capture_output=True, check=False)


def join(here, there, ends):
    """Makes a veth pair between two network namespaces, with these names at its ends, up."""
    ip('link', 'add', ends[0], 'netns', here, 'type', 'veth', 'peer', 'name', ends[1], 'netns', there)
    for name, end in ((here, ends[0]), (there, ends[1])):
        ip('-n', name, 'link', 'set', end, 'up')


def enter(name):
    """Moves this process into a network namespace."""
    new_network = 0x40000000
    with open(f'/run/netns/{name}', encoding='ascii') as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), new_network) != 0:
            raise Unavailable(f'setns: {os.strerror(ctypes.get_errno())}')
