#!/usr/bin/env python3
"""Debian's verbs programs that need only libibverbs, with all their options: tables.

        dropin_programs_test.py LIBIBVERBS LIBRDMACM [--full]    --full: all of them, and all under a container's limits
"""
import itertools
import os
import shutil
import sys
import tempfile
import unittest

import capture
import dropin_test as dropin
import seccomp

FULL = '--full' in sys.argv[3:]
NOBODY = 65534
SHARED = '{}.{}.{}.20'.format(*dropin.NET)
SIZES, MTUS = (1, 255, 4096, 70001, 1 << 20), (256, 512, 1024, 2048, 4096)


def each_way(flags, sizes=SIZES, mtus=MTUS):
    """Yields arguments with each set of flags, each size and each MTU, and each size with each MTU; not all with
    all."""
    sets = [[flag for flag, taken in zip(flags, chosen) if taken]
            for chosen in itertools.product((False, True), repeat=len(flags))]
    shapes = [['-s', str(size), '-m', str(mtu)] for size in sizes for mtu in mtus]
    for i in range(max(len(sets), len(shapes))):
        yield ' '.join(['-n', '30', *sets[i % len(sets)], *shapes[i % len(shapes)]])


def of_datagrams():
    for flags, size in itertools.product(('', '-c', '-e', '-c -e'), (1, 1023, 4096)):
        yield f'-n 100 {flags} -s {size}'


# Programs that exchange addresses by TCP: (name, constant arguments, those of a short run, further ones of a long run).
PINGPONGS = (
    # With -e and -t it takes an event for a completion that it has already polled for an error; adapters may send one.
    ('ibv_rc_pingpong', '-g 1', ('-c -e -N -n 300 -s 5000 -m 512', '-c -N -t -n 300 -s 5000'),
     (*each_way(('-c', '-e', '-N')), *each_way(('-c', '-N', '-t')))),
    ('ibv_uc_pingpong', '-g 1', ('-c -e -n 300 -s 5000 -m 256',), tuple(each_way(('-c', '-e')))),
    ('ibv_ud_pingpong', '-g 1', ('-c -e -n 300',), tuple(of_datagrams())),
    ('ibv_srq_pingpong', '-g 1', ('-c -e -n 300 -q 16',), (*each_way(('-c', '-e')), '-c -q 1 -r 1 -n 100')),
    ('ibv_xsrq_pingpong', '-g 1', (), tuple(each_way(('-e',)))),
)
# perftest 4.5 polls 16 completions for each event, and then waits for the next event even if there are more. A later
# version fixes this race. So no more are outstanding where it waits for events.
FEW = '-t 2'
EACH_TRANSPORT = ('-n 100 -c RC', '-n 100 -c UC', '-n 100 -c XRC')
SENDS = (*EACH_TRANSPORT, '-n 100 -c UD', '-n 100 -e -c UD', '-n 100 -e -c XRC', '-n 100 -e', '-n 100 --use-srq',
         '-n 100 --use_old_post_send', '-n 100 -s 64 -I 64', '-n 100 -m 256', '-D 1', '-n 5 -a')
BOTH_WAYS = ('-n 100 -b', '-n 100 -b -e', '-n 100 -b -c XRC', '-n 100 -q 8', '-n 100 -q 8 -c XRC',
             '-n 100 -b -q 8 -l 4')
BENCHMARKS = (
    ('ib_send_bw', '-F', (f'-n 100 -b -q 8 -e {FEW}', '-n 100 -c XRC', '-n 100 -q 8 --use-srq'),
     (*SENDS, *BOTH_WAYS, '-n 100 -b -c UC', '-n 100 -b -c UD', '-n 100 -q 8 -c UD', '-n 100 -l 10', '-n 100 -r 20',
      '-n 100 -s 512 -I 512')),
    ('ib_send_lat', '-F', ('-n 100 -s 64 -I 64 -c UD',), SENDS),
    # perftest refuses events and shared receive queues for operations that need no receive request.
    ('ib_write_bw', '-F', ('-n 100 -q 8 -l 4',),
     (*EACH_TRANSPORT, *(way for way in BOTH_WAYS if '-e' not in way), '-n 100 -b -c UC -a',
      '-n 100 --use_old_post_send', '-n 100 -s 64 -I 64', '-D 1', '-n 5 -a')),
    ('ib_write_lat', '-F', ('-n 20',),
     ('-n 20 -c UC', '-n 20 -c XRC', '-n 20 -s 64 -I 64', '-n 20 -s 4096 --use_old_post_send', '-n 5 -a', '-D 1')),
    ('ib_read_bw', '-F', ('-n 100 -b -q 8',),
     ('-n 100', '-n 100 -c XRC', *BOTH_WAYS, '-n 100 -e', '-n 100 -o 4 --use_old_post_send', '-n 5 -a', '-D 1')),
    ('ib_read_lat', '-F', (), ('-n 100', '-n 100 -c XRC', '-n 100 -e', '-n 5 -a', '-D 1')),
    ('ib_atomic_bw', '-F', ('-n 100 -A CMP_AND_SWAP',),
     ('-n 100', '-n 100 -c XRC', *BOTH_WAYS, '-n 100 -e', '-n 100 --use_old_post_send', '-D 1')),
    ('ib_atomic_lat', '-F', (), ('-n 100', '-n 100 -A CMP_AND_SWAP', '-n 100 -c XRC', '-n 100 -e', '-D 1')),
)
PROGRAMS = (*PINGPONGS, *BENCHMARKS)
# qperf has no GIDs: without rdma_cm it asks for LIDs, which adapters for Ethernet do not have.
QPERF = ('rc_bi_bw', 'rc_bw', 'rc_lat', 'rc_rdma_read_bw', 'rc_rdma_read_lat', 'rc_rdma_write_bw', 'rc_rdma_write_lat',
         'rc_rdma_write_poll_lat', 'rc_compare_swap_mr', 'rc_fetch_add_mr', 'ver_rc_compare_swap', 'ver_rc_fetch_add')


def rows():
    for name, always, short, more in PROGRAMS:
        for row in (*short, *more) if FULL else short:
            yield f'{name} {always} {row}'.split()


def become_nobody_in_a_container():
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    seccomp.refuse(seccomp.CONTAINER)


class Programs(dropin.DropIn):
    def test_each_on_an_address_of_its_own(self):
        for row in rows():
            with self.subTest(row=' '.join(row)):
                self.pair(*row)

    @unittest.skipUnless(FULL, 'each takes a second')
    def test_qperf(self):
        self.needs('qperf')
        port = dropin.free_port()
        alone = {'CAIRN_BROKER': 'off'}
        with dropin.Ended(['qperf', '-lp', str(port)], dropin.SERVER, **alone) as server:
            self.listens(port, server)
            for test in (*QPERF, 'quit'):
                with self.subTest(test=test):
                    code, out, err = dropin.run('qperf', dropin.SERVER, '-lp', str(port), '-cm1', '-t', '1', test,
                                                devices=f'cairn0={dropin.CLIENT}', **alone)
                    self.assertEqual((code, err), (0, ''), out)
            self.assertEqual(server.wait(dropin.SECONDS), 0)

    def test_asyncwatch_waits_for_events(self):
        self.needs('ibv_asyncwatch')
        with dropin.Ended(['stdbuf', '-oL', 'ibv_asyncwatch'], dropin.SERVER) as program:
            self.assertRegex(program.stdout.readline(), r'^cairn0: async event FD \d+$')
            self.assertIsNone(program.poll())

    def test_each_sends_what_the_specification_says(self):
        for name, always, short, more in PROGRAMS:
            if not FULL and name not in ('ibv_rc_pingpong', 'ibv_ud_pingpong', 'ib_read_bw'):
                continue
            row = f'{name} {always} {(*short, *more)[0]}'.split()
            with self.subTest(row=' '.join(row)), tempfile.TemporaryDirectory(prefix='cairn-dropin-') as folder:
                self.pair(*row, pcap=folder)
                for end in ('server', 'client'):
                    packets, faults = capture.judge(f'{folder}/{end}.pcap')
                    self.assertEqual(faults, [])
                    self.assertGreaterEqual(packets, 20)


class Contained(dropin.DropIn):
    """Runs both on one address, as an ordinary user without rings and namespaces."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='cairn-dropin-')
        os.chmod(cls.folder, 0o755)
        for path in (dropin.LIBRARY, dropin.RDMACM, f'{os.path.dirname(dropin.LIBRARY)}/cairn-broker'):
            shutil.copy(path, cls.folder)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def test_each(self):
        for row in rows() if FULL else (['ibv_rc_pingpong', '-g', '1', '-c', '-e'], ['ib_write_bw', '-F', '-n', '100']):
            with self.subTest(row=' '.join(row)):
                self.pair(*row, addresses=(SHARED, SHARED), preexec=become_nobody_in_a_container,
                          LD_LIBRARY_PATH=self.folder)


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *(name for name in sys.argv[3:] if name != '--full')])
