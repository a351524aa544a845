#!/usr/bin/env python3
"""Debian's programs of rsockets, which are the distribution's librdmacm above our libibverbs.so.1: two processes.

    dropin_rsockets_test.py LIBIBVERBS LIBRDMACM [--full]    --full: all ways in which they run
"""
import contextlib
import filecmp
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import dropin_test as dropin

FULL = '--full' in sys.argv[3:]
SERVER, CLIENT = dropin.SERVER, dropin.CLIENT
SHARED = '{}.{}.{}.30'.format(*dropin.NET)
# Datagrams find their own address by a route, and that is this one for all addresses of the host.
LOOPBACK = '127.0.0.1'
PRELOADED = '/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so'

# Of rstream and riostream, at both ends. Without -T a: with it a program takes for an error that its peer has shut
# down, though all that it sent is there to be read; which of them comes first is chance, on adapters as here.
SMALL = '-I 10 -C 10'
STREAMS = (f'{SMALL} -S 64 -T v', f'{SMALL} -S 100000 -T v -T b')
STREAMS_FULL = (*(f'-I 5 -C 5 -S {size} -T v {mode}' for size in (1, 64, 4096, 65537, 1 << 20)
                  for mode in ('', '-T b', '-T n')),
                f'{SMALL} -B 4096 -S 10000 -T v', f'{SMALL} -i 0 -S 64 -T v', f'{SMALL} -i 400 -S 400 -T v',
                f'{SMALL} -T r -T v', f'{SMALL} -k 1', f'{SMALL} -f ip', f'{SMALL} -S all')
SOCKETS = f'{SMALL} -T s'  # the program's own TCP, with our library loaded
DATAGRAMS = ('-C 100 -S 64 -T e',)
DATAGRAMS_FULL = ('-C 100 -S 64', '-C 100 -S 1000 -T e', '-C 100 -S 1000 -T a -T e', '-C 50 -S 1024 -T n -T e')


class Rsockets(dropin.DropIn):
    def settles(self, ready, server):
        """Until `ready`, or the server has ended."""
        for _ in range(dropin.SECONDS * 50):
            if ready():
                return
            if server.poll() is not None:
                self.fail(server.communicate())
            time.sleep(0.02)
        self.fail('the server is not there')

    def serves_udp(self, server, address, port):
        wanted = ''.join(f'{int(part):02X}' for part in reversed(address.split('.')))

        def is_bound():
            with open('/proc/net/udp', encoding='ascii') as table:
                return f' {wanted}:{port:04X} ' in table.read()
        self.settles(is_bound, server)

    def connects(self, client, address, server, **more):
        """Returns what a client said that succeeded. Its server opens its device before it listens."""
        self.serves_udp(server, server.address, 4791)
        for _ in range(dropin.SECONDS * 5):
            with dropin.Ended(client.split(), address, **more) as program:
                out, err = program.communicate(timeout=dropin.SECONDS)
            if 'Connection refused' not in err:
                break
            time.sleep(0.2)
        self.assertEqual(program.returncode, 0, out + err)
        return out

    def serve(self, command, address, **more):
        self.needs(command.split()[0])
        server = dropin.Ended(command.split(), address, **more)
        server.address = address
        return server

    def stream(self, program, options, at=(SERVER, CLIENT)):
        """Both ends are to succeed, and to have carried what they say."""
        port = dropin.free_port()
        with self.serve(f'{program} -b {at[0]} -p {port} {options}', at[0]) as server:
            said = self.connects(f'{program} -s {at[0]} -p {port} {options}', at[1], server)
            out, err = server.communicate(timeout=dropin.SECONDS)
            self.assertEqual(server.returncode, 0, out + err)
        self.assertRegex(said, r'(?m)^(custom|\w+_(lat|bw)) +\d')

    def test_streams(self):
        for program in ('rstream', 'riostream'):
            for options in STREAMS_FULL if FULL else STREAMS:
                if program == 'riostream' and re.search(r'-T r|-k ', options):
                    continue
                with self.subTest(program=program, options=options):
                    self.stream(program, options)

    def test_streams_on_one_address(self):
        self.stream('rstream', STREAMS[1], at=(SHARED, SHARED))

    def test_streams_the_other_way(self):
        self.stream('rstream', STREAMS[0], at=(CLIENT, SERVER))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *(name for name in sys.argv[3:] if name != '--full')])
