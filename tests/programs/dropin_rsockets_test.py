#!/usr/bin/env python3
"""Debian's programs of rsockets: the distribution's librdmacm on our libibverbs.so.1, as two processes.

        dropin_rsockets_test.py LIBIBVERBS LIBRDMACM [--full]    --full: all options
"""
import contextlib
import filecmp
import os
import re
import signal
import sys
import tempfile
import time
import unittest

import dropin_test as dropin

FULL = '--full' in sys.argv[3:]
SERVER, CLIENT = dropin.SERVER, dropin.CLIENT
SHARED = '{}.{}.{}.30'.format(*dropin.NET)
# Datagrams find their own address by a route, and all addresses of the host have this route.
LOOPBACK = '127.0.0.1'

# Options of rstream and riostream, at both ends, without -T a. With it a program takes the peer's shutdown for an
# error, although all sent data can still be read. Which of them comes first is chance, also on adapters.
SMALL = '-I 10 -C 10'
STREAMS = (f'{SMALL} -S 64 -T v', f'{SMALL} -S 100000 -T v -T b')
STREAMS_FULL = (*(f'-I 5 -C 5 -S {size} -T v {mode}' for size in (1, 64, 4096, 65537, 1 << 20)
                  for mode in ('', '-T b', '-T n')),
                f'{SMALL} -B 4096 -S 10000 -T v', f'{SMALL} -i 0 -S 64 -T v', f'{SMALL} -i 400 -S 400 -T v',
                f'{SMALL} -T r -T v', f'{SMALL} -k 1', f'{SMALL} -f ip', f'{SMALL} -S all')
DATAGRAMS = ('-C 100 -S 64 -T e',)
DATAGRAMS_FULL = ('-C 100 -S 64', '-C 100 -S 1000 -T e', '-C 100 -S 1000 -T a -T e', '-C 50 -S 1024 -T n -T e')
# The server does not listen yet: a client that does not wait for the answer sees it in its next call.
NOT_YET = re.compile('Connection refused|rpoll: Success|riomap: Cannot allocate memory')


class Rsockets(dropin.DropIn):
    def serves_udp(self, server, address, port):
        wanted = ''.join(f'{int(part):02X}' for part in reversed(address.split('.')))

        def is_bound():
            with open('/proc/net/udp', encoding='ascii') as table:
                return f' {wanted}:{port:04X} ' in table.read()
        self.settles(is_bound, server, 'the server is not there')

    def listens_soon(self, server):
        """Waits until the server has opened its device and a moment longer, until it listens."""
        self.serves_udp(server, server.address, 4791)
        time.sleep(0.5)

    def connects(self, client, address, server, **more):
        """Returns the output of a client that succeeded. A refused riostream would try for ever."""
        self.listens_soon(server)
        for _ in range(dropin.SECONDS * 5):
            with dropin.Ended(client.split(), address, **more) as program:
                out, err = program.communicate(timeout=dropin.SECONDS)
            if not NOT_YET.search(err):
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
        """Both ends must succeed, and must have transferred the reported amount."""
        port = dropin.free_port()
        with self.serve(f'{program} -b {at[0]} -p {port} {options}', at[0]) as server:
            said = self.connects(f'{program} -s {at[0]} -p {port} {options}', at[1], server)
            out, err = server.communicate(timeout=dropin.SECONDS)
            self.assertEqual(server.returncode, 0, out + err)
        self.assertRegex(said, r'(?m)^(custom|\w+_(lat|bw)) +\d')

    def test_streams(self):
        for program in ('rstream', 'riostream') if FULL else ('rstream',):
            for options in STREAMS_FULL if FULL else STREAMS:
                if program == 'riostream' and re.search(r'-T r|-k ', options):
                    continue
                with self.subTest(program=program, options=options):
                    self.stream(program, options)

    def test_streams_on_one_address(self):
        self.stream('rstream', STREAMS[1], at=(SHARED, SHARED))

    def test_streams_the_other_way(self):
        self.stream('rstream', STREAMS[0], at=(CLIENT, SERVER))

    def test_datagrams(self):
        """A server does not end by itself."""
        port = dropin.free_port()
        with self.serve(f'udpong -b {LOOPBACK} -p {port}', LOOPBACK) as server:
            self.serves_udp(server, LOOPBACK, port)
            for options in DATAGRAMS_FULL if FULL else DATAGRAMS:
                with self.subTest(options=options):
                    code, out, err = dropin.run('udpong', '-s', LOOPBACK, '-p', str(port), *options.split(),
                                                devices=f'cairn0={LOOPBACK}')
                    self.assertEqual((code, err), (0, ''), out)
                    self.assertRegex(out, r'(?m)^custom +\d')
            self.assertIsNone(server.poll())

    def test_files(self):
        """A server does not end by itself, and listens on all addresses."""
        with tempfile.TemporaryDirectory(prefix='cairn-dropin-') as folder, self.serve('rcopy', SERVER) as server:
            for size in (1, 3_000_001) if FULL else (300_001,):
                with self.subTest(size=size):
                    source, copy = f'{folder}/{size}.source', f'{folder}/{size}.copy'
                    with open(source, 'wb') as file:
                        file.write(os.urandom(size))
                    self.connects(f'rcopy {source} {SERVER}:{copy}', CLIENT, server)
                    self.assertTrue(filecmp.cmp(source, copy, shallow=False))
            self.assertIsNone(server.poll())

    def test_an_end_that_is_killed_does_not_hang_the_other(self):
        for killed in (0, 1):
            with self.subTest(killed=('server', 'client')[killed]), contextlib.ExitStack() as programs:
                port = dropin.free_port()
                endless = f'-p {port} -I 100000000 -C 1 -S 64 -T a'  # without polling it waits for ever, as on adapters
                server = programs.enter_context(self.serve(f'rstream -b {SERVER} {endless}', SERVER))
                self.listens_soon(server)
                client = programs.enter_context(self.serve(f'rstream -s {SERVER} {endless}', CLIENT))
                time.sleep(0.7)
                self.assertEqual((server.poll(), client.poll()), (None, None))
                ends = (server, client)
                ends[killed].send_signal(signal.SIGKILL)
                _, err = ends[1 - killed].communicate(timeout=dropin.SECONDS)
                self.assertNotEqual(ends[1 - killed].returncode, 0, err)

    def test_a_server_that_does_not_run_for_a_while_is_waited_for(self):
        port = dropin.free_port()
        options = f'-p {port} -I 100000000 -C 1 -S 1000000 -T a'
        with self.serve(f'rstream -b {SERVER} {options}', SERVER) as server:
            self.listens_soon(server)
            with self.serve(f'rstream -s {SERVER} {options}', CLIENT) as client:
                for _ in range(2):
                    time.sleep(0.3)
                    server.send_signal(signal.SIGSTOP)
                    time.sleep(1.8)
                    server.send_signal(signal.SIGCONT)
                time.sleep(0.3)
                self.assertEqual((server.poll(), client.poll()), (None, None))

    def test_without_the_distributions_library_one_line_says_so(self):
        self.needs('rstream')
        code, out, err = dropin.run('rstream', '-s', SERVER, CAIRN_RDMACM='/nowhere/librdmacm.so.1')
        self.assertNotEqual(code, 0, out)
        self.assertEqual(len(re.findall('librdmacm1', err)), 1, err)
        self.assertIn('name its file by CAIRN_RDMACM', err)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *(name for name in sys.argv[3:] if name != '--full')])
