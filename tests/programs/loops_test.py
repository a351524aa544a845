#!/usr/bin/env python3
"""Programs by which people check a device, a hundred times each: no run hinders the next. rdma-core's own tests and
ib_send_bw belong to them, too; they are in dropin_conformance_test.py and dropin_test.py.

    loops_test.py LIBIBVERBS LIBRDMACM CAIRN_RUN
"""
import os
import signal
import unittest
from concurrent import futures

import dropin_test as dropin
import known_programs_test as known

CAIRN_RUN = known.CAIRN_RUN
SERVER, CLIENT, SHARED = dropin.SERVER, dropin.CLIENT, dropin.SHARED
TIMES = 100
AT_ONCE = 5  # for programs that take seconds


class Loops(known.Known):
    def test_rping(self):
        for number in range(TIMES):
            at, to = (SHARED, SHARED) if number % 2 else (SERVER, CLIENT)
            with self.subTest(number=number, at=at):
                self.connect('rping', 'rping -s -a {s} -p {p} -C 5 -v -V', 'rping -c -a {s} -p {p} -C 5 -v -V', at, to)

    def test_ucx_info(self):
        self.needs_package('ucx_info', 'ucx-utils')
        for number in range(TIMES):
            with self.subTest(number=number):
                self.assertIn('cairn0', self.run_here(CAIRN_RUN, 'ucx_info', '-d'))

    def test_fio(self):
        """As in CONNECTING_FULL of dropin_test.py, several at the same time on two addresses."""
        self.needs_package('fio', 'fio')
        server = 'fio --name=server --ioengine=rdma --port={p} --rw=read --bs=64k --size=1m --iodepth=32'
        client = ('fio --name=client --ioengine=rdma --hostname={s} --port={p} --bs=64k --size=1m --iodepth=8 '
                  '--rw=write --verb={verb}')
        for number in range(0, TIMES, AT_ONCE):
            verbs = [('write', 'read', 'send')[(number + i) % 3] for i in range(AT_ONCE)]
            with self.subTest(number=number):
                self.all_connect([('fio', server, client.replace('{verb}', verb)) for verb in verbs])

    def all_connect(self, rows):
        """Connects them all at once. A failure in one of them fails here."""
        with futures.ThreadPoolExecutor(len(rows)) as threads:
            for done in [threads.submit(self.connect, *row) for row in rows]:
                done.result()

    def test_a_program_of_ones_own(self):
        echo = self.build(['cc'], 'echo.c', '/usr/include/rdma/rdma_cma.h', 'librdmacm-dev', '-lrdmacm', '-libverbs')
        for number in range(TIMES):
            at, to = (SHARED, SHARED) if number % 2 else (SERVER, CLIENT)
            port = str(dropin.free_port())
            with self.subTest(number=number, at=at), dropin.Ended([echo, 'server', at, port, '20'], at) as server:
                self.assertEqual(server.stdout.readline(), 'listens\n')
                self.run_here(echo, 'client', at, port, '20', address=to)
                out, err = server.communicate(timeout=dropin.SECONDS)
                self.assertEqual((server.returncode, err), (0, ''), out)


class Starts(known.Known):
    """cairn-run, ended in all ways: no trace of it is left."""
    WAYS = (('true', None, 0), ('ibv_devinfo', None, 0), ('sleep', signal.SIGTERM, -signal.SIGTERM),
            ('sleep', signal.SIGKILL, -signal.SIGKILL))

    def start(self, view, program, by):
        """Returns how it ended, or None if namespaces are refused."""
        words = [program, '60'] if program == 'sleep' else [program]
        with dropin.Ended([CAIRN_RUN, '--view', view, *words], SERVER, XDG_RUNTIME_DIR=self.folder) as started:
            if by is not None:
                self.until(lambda: self.name_of(started.pid) in ('sleep', None))
                started.send_signal(by)
            out, err = started.communicate(timeout=dropin.SECONDS)
            if started.returncode == 2 and 'namespaces' in err:
                return None
            self.assertNotIn('cairn', err, out)
            return started.returncode

    @staticmethod
    def name_of(pid):
        """Returns the process's name, or None if it has ended."""
        try:
            with open(f'/proc/{pid}/comm', encoding='ascii') as file:
                return file.read().strip()
        except OSError:
            return None

    def test_it_starts_and_stops(self):
        self.needs('ibv_devinfo')
        for view in ('namespaces', 'shim'):
            for number in range(TIMES // 2):
                program, by, status = self.WAYS[number % len(self.WAYS)]
                with self.subTest(view=view, number=number, program=program, by=by):
                    ended = self.start(view, program, by)
                    if ended is None:
                        self.skipTest('namespaces are refused')
                    self.assertEqual(ended, status)
        self.until(lambda: not os.listdir(self.folder))


if __name__ == '__main__':
    unittest.main(argv=['loops_test.py'])
