"""Programs over UDP sockets, one machine playing several hosts."""
import os
import socket
import subprocess
import sys

from session import await_server, machine, on_cpus

SERVER, CLIENT = machine.loopback(1), machine.loopback(2)


def start(session, *own, wrap=(), program='cairn-rpcbench', lcores=None):
    eal = [] if lcores is None else [on_cpus(lcores), '--']
    process = subprocess.Popen([*wrap, os.path.join(session.folder, program), *eal, *own], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    session.running.append(process)
    return process


def is_bound(address):
    """Returns whether a socket of port 4791 has this IPv4 address."""
    wanted = f'{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:12B7'
    with open('/proc/net/udp', encoding='ascii') as file:
        return any(line.split()[1] == wanted for line in file.readlines()[1:])


def await_socket(process, address):
    return await_server(process, lambda: is_bound(address))


def listen(session, *own, address=SERVER, **options):
    """Starts a server. Returns it once its socket is there."""
    process = start(session, '--port', f'uring:{address}', '--server', *own, **options)
    return process if ':' in address else await_socket(process, address)


def client(session, *own, server=SERVER, address=CLIENT, **options):
    return start(session, '--port', f'uring:{address}', '--peer', server, '--json', *own, **options)
