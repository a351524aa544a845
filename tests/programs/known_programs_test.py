#!/usr/bin/env python3
"""Programs of the distribution that are known to work, in addition to those of dropin_test.py: see README.md.

    known_programs_test.py LIBIBVERBS LIBRDMACM CAIRN_RUN

Programs that are not installed are skipped, with the package's name.
"""
import filecmp
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import dropin_test as dropin

CAIRN_RUN = os.path.abspath(sys.argv[3])
SERVER, CLIENT = dropin.SERVER, dropin.CLIENT
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'known')
# Adds one to each word of a part of the memory, over and over.
DIRTIES = bytes.fromhex('b80020 8ec0 31ff b90080 26ff05 83c702 e2f8 050010 3d0090 72e9 ebe4'.replace(' ', ''))
TIMES = 100


class Known(dropin.DropIn):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='cairn-known-')
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def needs_package(self, program, package):
        if shutil.which(program) is None:
            self.skipTest(f'{program} is not installed (apt-get install {package})')

    def build(self, compiler, source, needed, package, *options):
        """Builds a program of tests/programs/known; skips if the package is not installed."""
        self.needs_package(compiler[0], package)
        if not os.path.exists(needed):
            self.skipTest(f'{needed} is not there (apt-get install {package})')
        path = f'{self.folder}/{os.path.splitext(source)[0]}'
        done = subprocess.run([*compiler, '-O1', '-o', path, f'{SOURCES}/{source}', *options], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def run_here(self, *command, address=CLIENT, **more):
        code, out, err = dropin.run(*command, devices=f'cairn0={address}', **more)
        self.assertEqual(code, 0, out + err)
        return out

    def until(self, look, programs=(), seconds=dropin.SECONDS):
        for _ in range(seconds * 20):
            found = look()
            if found:
                return found
            for each in programs:
                if each.poll() is not None:
                    self.fail(each.communicate())
            time.sleep(0.05)
        return self.fail('nothing comes of it')


class Mpi(Known):
    """Runs MPI without UCX's transport `self`, which makes no progress for others' atomics (README.md)."""
    UCX = {'UCX_TLS': 'rc_verbs,ud_verbs', 'UCX_WARN_UNUSED_ENV_VARS': 'n'}

    def test_mpich(self):
        ranks = self.build(['mpicc.mpich'], 'ranks.c', '/usr/include/x86_64-linux-gnu/mpich/mpi.h', 'libmpich-dev')
        for number in (2, 3):
            with self.subTest(ranks=number):
                out = self.run_here('mpirun.mpich', '-n', str(number), CAIRN_RUN, ranks, **self.UCX)
                self.assertIn('all right', out)

    def test_open_mpi(self):
        ranks = self.build(['mpicc.openmpi'], 'ranks.c', '/usr/lib/x86_64-linux-gnu/openmpi/include/mpi.h',
                           'libopenmpi-dev')
        words = '--oversubscribe --mca pml ucx --mca osc ucx --mca pml_ucx_tls any --mca pml_ucx_devices any'
        root = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1', 'HOME': self.folder}
        for number in (2, 3):
            with self.subTest(ranks=number):
                out = self.run_here('mpirun.openmpi', '-n', str(number), *words.split(), CAIRN_RUN, ranks, **self.UCX,
                                    **root)
                self.assertIn('all right', out)


class Libraries(Known):
    def test_librpma(self):
        memory = self.build(['cc'], 'memory.c', '/usr/include/librpma.h', 'librpma-dev', '-lrpma', '-libverbs')
        port = str(dropin.free_port())
        with dropin.Ended([memory, 'server', SERVER, port], SERVER) as server:
            self.assertEqual(server.stdout.readline(), 'listens\n')
            self.run_here(memory, 'client', SERVER, port)
            out, err = server.communicate(timeout=dropin.SECONDS)
            self.assertEqual(server.returncode, 0, out + err)

    def test_gloo(self):
        reduce = self.build(['c++', '-std=c++17'], 'reduce.cpp', '/usr/include/gloo/transport/ibverbs/device.h',
                            'libgloo-dev', '-lgloo', '-libverbs', '-pthread')
        store = f'{self.folder}/store'
        os.mkdir(store)
        ranks = [dropin.Ended([reduce, str(rank), '3', store, 'cairn0'], dropin.SHARED) for rank in range(3)]
        for each in ranks:
            with each:
                out, err = each.communicate(timeout=dropin.SECONDS)
                self.assertEqual((each.returncode, out), (0, 'all right\n'), err)


class Iser(Known):
    TARGET, INITIATOR = 'iqn.2026-01.cairn:disk', 'iqn.2026-01.cairn:test'
    CONTROL = str(100 + os.getpid() % 30000)

    def tgtadm(self, *words):
        return subprocess.run(['tgtadm', '-C', self.CONTROL, '--lld', 'iser', *words], capture_output=True, text=True,
                              check=False)

    def test_tgt_and_libiscsi(self):
        """Runs one session after the other: the event thread of one may still run when the next begins."""
        self.needs_package('tgtd', 'tgt')
        self.needs_package('iscsi-inq', 'libiscsi-bin')
        disk = f'{self.folder}/disk'
        with open(disk, 'wb') as file:
            file.truncate(16 << 20)
        port = str(20000 + os.getpid() % 10000)  # it takes no port above 32767
        with dropin.Ended(['tgtd', '-f', '-C', self.CONTROL, '--iscsi', f'portal=127.0.0.1:{dropin.free_port()}',
                           '--iser', f'port={port}'], SERVER) as target:
            new = '--op new --mode target --tid 1 -T'.split()
            self.until(lambda: self.tgtadm(*new, self.TARGET).returncode == 0, [target])
            for words in (f'--op new --mode logicalunit --tid 1 --lun 1 -b {disk}',
                          '--op bind --mode target --tid 1 -I ALL',
                          f'--op bind --mode target --tid 1 -Q {self.INITIATOR}'):
                done = self.tgtadm(*words.split())
                self.assertEqual(done.returncode, 0, done.stderr)
            url = f'iser://{SERVER}:{port}/{self.TARGET}/1'
            for number in range(TIMES):
                with self.subTest(number=number):
                    out = self.run_here('iscsi-inq', '-i', self.INITIATOR, url)
                    self.assertIn('Vendor:IET', out)
            out = self.run_here('iscsi-readcapacity16', '-i', self.INITIATOR, url)
            self.assertIn(f'Total size:{16 << 20}', out)
            self.assertIsNone(target.poll())


class Dapl(Known):
    """The provider over rdma_cm; the provider `ucm` addresses by LIDs, which RoCE does not have."""
    DTEST_PORT = 15828  # the TCP port at which dtest's ends exchange addresses

    def setting(self, address):
        path = f'{self.folder}/{address}.conf'
        with open(path, 'w', encoding='ascii') as file:
            file.write(f'cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "{address} 0" ""\n')
        return {'DAT_OVERRIDE': path}

    def test_dtest(self):
        self.needs_package('dtest', 'dapl2-utils')
        with dropin.Ended(['dtest', '-P', 'cma', '-B', '4'], SERVER, **self.setting(SERVER)) as server:
            self.listens(self.DTEST_PORT, server)
            self.assertIn('PASSED', self.run_here('dtest', '-P', 'cma', '-B', '4', '-h', SERVER,
                                                  **self.setting(CLIENT)))
            out, err = server.communicate(timeout=dropin.SECONDS)
            self.assertIn('PASSED', out + err)

    def test_dapltest(self):
        self.needs_package('dapltest', 'dapl2-utils')
        with dropin.Ended(['dapltest', '-T', 'S', '-D', 'cma'], SERVER, **self.setting(SERVER)) as server:
            self.until(lambda: 'Service Point Ready' in server.stdout.readline(), [server])
            for words in ('-T T -i 10 -t 1 -w 1 client SR 256 server SR 256 client RW 4096 server RR 4096', '-T Q'):
                kind, which, *more = words.split()
                out = self.run_here('dapltest', kind, which, '-s', SERVER, '-D', 'cma', *more, **self.setting(CLIENT))
                self.assertIn('Exiting' if which == 'T' else '', out)
            out, err = server.communicate(timeout=dropin.SECONDS)
            self.assertEqual(server.returncode, 0, out + err)


class Ceph(Known):
    """A monitor and an object store with messages over queue pairs, and a file that comes back as it was."""
    SETTINGS = '''[global]
fsid = {fsid}
mon host = v1:{address}:{port}
public addr = {address}
cluster addr = {address}
auth cluster required = none
auth service required = none
auth client required = none
ms type = async+rdma
ms async rdma device name = cairn0
ms async rdma gid idx = 1
ms async rdma roce ver = 2
ms bind msgr2 = false
osd pool default size = 1
osd crush chooseleaf type = 0
osd memory target = 939524096
mon allow pool size one = true
bluestore block size = 400000000
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
pid file =
keyring = /dev/null
mon data = {folder}/mon
osd data = {folder}/osd
'''

    def setUp(self):
        super().setUp()
        for program, package in (('ceph-mon', 'ceph-mon'), ('ceph-osd', 'ceph-osd'), ('rados', 'ceph-common')):
            self.needs_package(program, package)
        self.words = ('--conf', f'{self.folder}/conf')
        self.fsid = str(uuid.uuid4())
        for each in ('mon', 'osd'):
            os.mkdir(f'{self.folder}/{each}')
        self.port = dropin.free_port()
        with open(f'{self.folder}/conf', 'w', encoding='ascii') as file:
            file.write(self.SETTINGS.format(fsid=self.fsid, address=SERVER, port=self.port, folder=self.folder))

    def at_server(self, *words):
        """All parts share the address."""
        return self.run_here(words[0], *self.words, *words[1:], address=SERVER)

    def started(self, *words):
        return dropin.Ended([words[0], *self.words, '-i', words[1], '-f'], SERVER)

    def test_a_file_comes_back(self):
        monitors, one, other = (f'{self.folder}/{name}' for name in ('monmap', 'one', 'other'))
        address = f'v1:{SERVER}:{self.port}'
        self.run_here('monmaptool', '--create', '--fsid', self.fsid, '--addv', 'a', address, monitors)
        self.at_server('ceph-mon', '--mkfs', '-i', 'a', '--monmap', monitors)
        with open(one, 'wb') as file:
            file.write(os.urandom(5_000_000))
        with self.started('ceph-mon', 'a') as monitor:
            self.until(lambda: 'quorum a' in self.at_server('ceph', '-s'), [monitor])
            self.at_server('ceph-osd', '-i', '0', '--mkfs', '--osd-uuid', str(uuid.uuid4()))
            with self.started('ceph-osd', '0') as store:
                pool = ('ceph', *self.words, 'osd', 'pool', 'create', 'pool', '1')
                self.until(lambda: dropin.run(*pool)[0] == 0, [monitor, store])  # a new monitor answers EPERM
                self.at_server('rados', '-p', 'pool', 'put', 'object', one)
                self.at_server('rados', '-p', 'pool', 'get', 'object', other)
                self.assertEqual((monitor.poll(), store.poll()), (None, None))
        self.assertTrue(filecmp.cmp(one, other, shallow=False))


class Qmp:
    """The monitor connection of a QEMU."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(dropin.SECONDS)
        self.socket.connect(path)
        self.lines = self.socket.makefile('r')
        self.lines.readline()
        self.ask('qmp_capabilities')

    def ask(self, command, **arguments):
        self.socket.sendall(json.dumps({'execute': command, 'arguments': arguments}).encode())
        while True:
            said = json.loads(self.lines.readline())
            if 'error' in said:
                raise AssertionError(f'{command}: {said}')
            if 'return' in said:
                return said['return']

    def close(self):
        self.lines.close()
        self.socket.close()


class Qemu(Known):
    MEGABYTES = 64

    def start(self, name, address, *options):
        disk = f'{self.folder}/{name}.disk'
        with open(disk, 'wb') as file:
            file.write(DIRTIES.ljust(510, b'\0') + b'\x55\xaa')
        path = f'{self.folder}/{name}.qmp'
        machine = dropin.Ended(
            ['qemu-system-x86_64', '-m', str(self.MEGABYTES), '-nodefaults', '-display', 'none', '-accel', 'tcg',
             '-machine', 'pc', '-drive', f'file={disk},format=raw,if=floppy',
             '-qmp', f'unix:{path},server=on,wait=off', *options], address)
        self.addCleanup(machine.__exit__, None, None, None)
        self.until(lambda: os.path.exists(path), [machine])
        monitor = Qmp(path)
        self.addCleanup(monitor.close)
        return machine, monitor

    def memory_of(self, monitor, name):
        path = f'{self.folder}/{name}.memory'
        monitor.ask('pmemsave', val=0, size=self.MEGABYTES << 20, filename=path)
        with open(path, 'rb') as file:
            return hashlib.sha1(file.read()).hexdigest()

    def test_a_guest_moves_with_all_its_memory(self):
        self.needs_package('qemu-system-x86_64', 'qemu-system-x86')
        for pins in (False, True):
            with self.subTest(pins=pins):
                port = dropin.free_port()
                source, at_source = self.start(f'source{pins}', CLIENT)
                target, at_target = self.start(f'target{pins}', SERVER, '-S', '-incoming', 'defer')
                wish = [{'capability': 'rdma-pin-all', 'state': pins}]
                for monitor in (at_source, at_target):
                    monitor.ask('migrate-set-capabilities', capabilities=wish)
                at_target.ask('migrate-incoming', uri=f'rdma:{SERVER}:{port}')
                at_source.ask('migrate-set-parameters', **{'max-bandwidth': 1 << 30, 'downtime-limit': 2000})
                time.sleep(1)
                at_source.ask('migrate', uri=f'rdma:{SERVER}:{port}')
                ends = ('completed', 'failed', 'cancelled')
                self.until(lambda: at_source.ask('query-migrate').get('status') in ends, [source, target])
                self.assertEqual(at_source.ask('query-migrate')['status'], 'completed')
                self.until(lambda: at_target.ask('query-migrate').get('status') == 'completed', [target])
                self.assertEqual(self.memory_of(at_source, 'source'), self.memory_of(at_target, 'target'))


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
