#!/usr/bin/env python3
"""cairn-fsd on Linux's persistent memory: an emulated NVDIMM in a virtual machine, as a DAX device and under file
systems that are mounted with DAX.

    dax.py CASE BUILD_FOLDER FOLDER_OF_IMAGES

Each case is a test of its own: exit 0 passed, 77 skipped with the reason on stdout, else failed. $CAIRN_FS_SEED repeats
the choices of a seed, as far as the machine's timing allows. The emulator has no caches: stored data that was not
flushed also survives a loss of power. Data in the memory of the guest's kernel is lost.
"""
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../programs'))

import fs_history  # noqa: E402
import fs_programs  # noqa: E402
import guest  # noqa: E402
import image  # noqa: E402
import rig  # noqa: E402
from rig import expect  # noqa: E402

ILLEGAL_INSTRUCTION = 128 + 4
BUILD, IMAGES = sys.argv[2:4]
PROGRAMS = ('apps/cairn-fsd', 'apps/cairn-fs', 'tests/programs/fs_caller')
SEED = int(os.environ.get('CAIRN_FS_SEED', time.time_ns() % 10**9))
LABELS_MB = 16  # room for the labels, and the unit of a namespace's length
WRITERS, POWER_LOSSES, KILLS = 2, 3, 4
# For a shard whose daemon is killed: it keeps removed files for ten seconds after each start.
KILLED_MB = 192
CALL_S = 120


class Machine:
    """A guest with one NVDIMM, which survives the guest."""

    def __init__(self, built, work, nvdimm_mb, persistence='mem-ctrl'):
        self.work, self.nvdimm_mb, self.persistence = work, nvdimm_mb, persistence
        self.file = os.path.join(work, 'nvdimm')
        with open(self.file, 'wb') as file:
            file.truncate(nvdimm_mb << 20)
        initramfs = os.path.join(work, 'initramfs.cpio')
        image.with_programs(built[1], [os.path.join(BUILD, program) for program in PROGRAMS], initramfs)
        self.image, self.guest = (built[0], initramfs), None

    def boot(self):
        hardware = ['-m', '512,slots=1,maxmem=4G', '-cpu', 'max,la57=off',
                    '-machine', f'q35,smm=off,hpet=off,nvdimm=on,nvdimm-persistence={self.persistence}',
                    '-object', f'memory-backend-file,id=memory,share=on,mem-path={self.file},size={self.nvdimm_mb}M',
                    '-device', 'nvdimm,id=nvdimm,memdev=memory,label-size=128K']
        self.guest = guest.Guest(self.image, self.work, hardware, {})
        self.guest.await_ready()

        status, said = self.guest.run('cairn-fsd --version')
        if status == ILLEGAL_INSTRUCTION:
            print('skipped: the programs are built for a CPU that is not emulated; meson setup -Dcpu=x86-64-v2')
            sys.exit(rig.SKIPPED)
        expect(status == 0, said)

    def lose_power(self):
        self.guest.lose_power()
        self.guest = None

    def must(self, command, seconds=60):
        """Runs a command that must succeed, and returns its output."""
        status, said = self.guest.run(command, seconds)
        expect(status == 0, f'{command}: {status}: {said}')
        return said

    def refuses(self, command, *words):
        """Checks that the command is refused with exit code 2 and a line that has these words."""
        status, said = self.guest.run(command)
        expect(status == 2 and all(word in said for word in words), f'{command}: {status}: {said}, not {words}')
        print(said.strip())

    def divide(self, *namespaces):
        """Makes a new NVDIMM with namespaces of this mode and these MiB."""
        self.must('ndctl disable-region all && ndctl init-labels -f all && ndctl enable-region all')
        for mode, megabytes in namespaces:
            self.must(f'ndctl create-namespace -m {mode} -s {megabytes}M')


class Caller(fs_programs.Caller):
    """A process in the guest that uses the library."""

    def __init__(self):
        connection = socket.create_connection(('127.0.0.1', guest.CALLS_PORT), timeout=CALL_S)
        # The files made from the connection keep it open.
        self.process = types.SimpleNamespace(stdin=connection.makefile('wb'), stdout=connection.makefile('rb'))
        connection.close()
        if self.process.stdout.readline() != b'ready\n':
            raise AssertionError('fs_caller cannot connect')

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()


class Daemons:
    """cairn-fsd in the guest, one process for each argument; the first one serves the clients."""
    socket = '/run/fs.sock'

    def __init__(self, machine, *arguments):
        self.machine, self.pids = machine, []
        self.commands = [f'RUNTIME_DIRECTORY=/run setsid cairn-fsd --chunk-size 64K --shm-prefix {prefix} {each}'
                         for prefix, each in zip(('/run/fs', '/run/fs1'), arguments)]

    def start(self):
        """Starts the daemons and returns their output."""
        texts, self.pids = [], []
        for number, command in enumerate(self.commands):
            log = f'/run/fsd{number}.log'
            said = self.machine.must(f'{command} >{log} 2>&1 & echo $!; until grep -q "^ready on" {log}; do '
                                     f'kill -0 $! || {{ cat {log}; exit 1; }}; sleep 0.05; done; cat {log}')
            pid, text = said.split('\n', maxsplit=1)
            self.pids.append(pid)
            texts.append(text)
        return ''.join(texts)

    def kill(self, signal='KILL'):
        self.machine.must(f'kill -{signal} {" ".join(self.pids)}; for pid in {" ".join(self.pids)}; do '
                          'while [ -d /proc/$pid ]; do sleep 0.02; done; done')

    def tool(self, arguments, seconds=120):
        return self.machine.must(f'cairn-fs --socket {self.socket} {arguments}', seconds)

    def assert_sound(self):
        for command, words in (('fsck', 'nothing is wrong'), ('scrub', 'nothing is damaged')):
            said = self.tool(command)
            expect(words in said, f'{command}: {said}')

    def assert_durable(self, said, stores):
        """Checks that each store is persistent memory to its shard, and that all of it is mapped accordingly."""
        for shard, path in enumerate(stores):
            expect(re.search(rf"^shard {shard}: persistent memory, \d+ MiB of '{path}': survives a loss of power", said,
                             re.M), said)
            smaps = ' '.join(f'/proc/{pid}/smaps' for pid in self.pids)
            mapped = self.machine.must(f'cat {smaps} | grep -A 30 {path}')
            expect(int(mapped.split('-')[0], 16) % (2 << 20) == 0, f'{path} is not mapped by 2 MiB: {mapped}')
            flags = re.search('^VmFlags: (.*)', mapped, re.M).group(1).split()
            expect('sf' in flags or path.startswith('/dev/'), f'{path} is mapped without MAP_SYNC: {flags}')
        expect(said.count('durable when answered') == len(stores) and 'FAKE' not in said, said)
        print(said.strip())


class Trial:
    """Writers and a daemon; the daemon is killed, and the power is lost."""

    def __init__(self, daemons, mount='true'):
        """`mount` is the command that a boot needs before daemons start."""
        self.machine, self.daemons, self.mount = daemons.machine, daemons, mount
        self.chance, self.callers, self.trees = random.Random(SEED), [], [None] * WRITERS

    def begin(self, stores):
        self.daemons.assert_durable(self.daemons.start(), stores)
        self.daemons.tool('cp /usr/bin/cairn-fsd cairn:/copy')
        self.callers = [Caller() for _ in self.trees]

    def start_writers(self):
        writers = [fs_history.Writer(caller, f'/writer{which}', f'{self.chance.random()}', tree)
                   for which, (caller, tree) in enumerate(zip(self.callers, self.trees))]
        for writer in writers:
            writer.start()
        return writers

    def judge(self, writers):
        self.trees = [writer.judge(caller) for writer, caller in zip(writers, self.callers)]
        self.machine.must(f'cairn-fs --socket {self.daemons.socket} cat /copy | cmp - /usr/bin/cairn-fsd')
        self.daemons.assert_sound()

    def kill_daemons(self):
        """Kills the daemons; every call is still answered."""
        writers = self.start_writers()
        for _ in range(KILLS):
            time.sleep(0.3 + self.chance.random())
            self.daemons.kill()
            time.sleep(self.chance.random() ** 3)
            self.daemons.start()
        before = [writer.calls for writer in writers]
        while any(writer.calls < calls + 20 and writer.is_alive() for writer, calls in zip(writers, before)):
            time.sleep(0.05)
        for writer in writers:
            writer.finish(CALL_S)
        print(f'{KILLS} kills in {[writer.calls for writer in writers]} calls')
        self.judge(writers)

    def lose_power(self):
        """Cuts the power. All answered writes are there when it is back."""
        writers = self.start_writers()
        calls = self.chance.randrange(20, 400)
        while all(writer.calls < calls and writer.is_alive() for writer in writers):
            time.sleep(0.001)
        expect(all(writer.is_alive() for writer in writers), [(writer.last, writer.failure) for writer in writers])
        self.machine.lose_power()
        for writer in writers:
            writer.join(timeout=CALL_S)
            expect(writer.is_cut_off(), f'{writer.last}: {writer.failure!r}')
        print(f'power lost behind {[writer.calls for writer in writers]} calls, in {[w.last[0] for w in writers]}')
        self.machine.boot()
        self.machine.must(self.mount)
        said = self.daemons.start()
        expect(said.count('; opened in ') == said.count('shard ') > 0, f'not opened: {said}')
        self.callers = [Caller() for _ in self.trees]
        self.judge(writers)


def survive(trial, stores):
    trial.begin(stores)
    for _ in range(POWER_LOSSES):
        trial.lose_power()
        trial.kill_daemons()
    trial.daemons.kill('TERM')
    trial.daemons.start()
    trial.daemons.assert_sound()


# A file system that writes nothing back by itself during a test.
EXT4 = 'mkdir -p /mnt && mount -t ext4 -o dax=always,commit=900 /dev/pmem0 /mnt'
XFS = 'echo 720000 >/proc/sys/fs/xfs/xfssyncd_centisecs && mkdir -p /mnt && mount -t xfs -o dax=always /dev/pmem0 /mnt'


def fsdax(machine, make, mount):
    machine.boot()
    machine.divide(('fsdax', machine.nvdimm_mb - LABELS_MB))
    machine.must(f'{make} /dev/pmem0 && {mount}')
    survive(Trial(Daemons(machine, f'--pmem-path /mnt/store --capacity {KILLED_MB}M'), mount), ['/mnt/store'])


def ext4(machine):
    fsdax(machine, 'mkfs.ext4 -q -b 4096', EXT4)


def xfs(machine):
    """The machine's caches survive a loss of power."""
    fsdax(machine, 'mkfs.xfs -q -m reflink=0', XFS)


def devdax(machine):
    """A shard on each of two devices."""
    machine.boot()
    machine.divide(('devdax', KILLED_MB), ('devdax', KILLED_MB))
    survive(Trial(Daemons(machine, '--pmem-path /dev/dax0 --daemons-per-node 2')), ['/dev/dax0.0', '/dev/dax0.1'])


def nodes(machine):
    """Two daemons over sockets, one on a file and one on a device, lose their power at once. They are not killed: calls
    that wait too long for the other daemon fail."""
    machine.boot()
    machine.divide(('fsdax', 64), ('devdax', 48))
    mount = (f'(umask 077; printf %s cluster-{SEED}-for-this-test >/run/key) && ip addr add 127.0.0.2/8 dev lo && '
             f'{EXT4}')
    machine.must(f'mkfs.ext4 -q -b 4096 /dev/pmem0 && {mount}')
    network = '--nodes 127.0.0.1,127.0.0.2 --key-file /run/key --port uring:127.0.0'
    trial = Trial(Daemons(machine, f'{network}.1 --pmem-path /mnt/store --capacity 48M',
                          f'{network}.2 --pmem-path /dev/dax0.1'), mount)
    trial.begin(['/mnt/store', '/dev/dax0.1'])
    for _ in range(POWER_LOSSES):
        trial.lose_power()


def refusals(machine):
    """Files that are refused as persistent memory, and files that work nevertheless."""
    machine.boot()
    machine.divide(('devdax', 48), ('fsdax', 48), ('devdax', 288))
    machine.must('ln -s /dev/dax0.0 /run/store')
    other = 'cairn-fsd --shm-prefix /run/other'

    def serves(arguments, *words):
        daemons = Daemons(machine, arguments)
        said = daemons.start()
        expect(all(word in said for word in ('survives a loss of power', *words)), said)
        return daemons

    daemons = serves('--pmem-path /run/store', "46 MiB of '/run/store'", 'a new store')
    machine.refuses(f'{other} --pmem-path /dev/dax0.0', "'/dev/dax0.0' is in use by another daemon")
    daemons.kill('TERM')
    serves('--pmem-path /dev/dax0.0 --capacity 46M', 'opened in').kill()
    machine.refuses(f'{other} --pmem-path /dev/dax0.0 --capacity 48M', 'has 46 MiB, not 48 MiB', '--capacity')
    machine.refuses(f'{other} --data-path /dev/dax0.0', 'is a DAX device, not a file')
    machine.refuses(f'{other} --pmem-path /dev/pmem0.1', 'is a disk', 'ndctl create-namespace -m devdax')
    machine.refuses(f'{other} --pmem-path /dev/zero', 'no DAX device')
    machine.refuses(f'{other} --pmem-path /dev/dax9.9 --capacity 16M --allow-fake-pmem', 'No such file', 'daxctl list')

    machine.must('daxctl disable-device dax0.0')
    machine.refuses(f'{other} --pmem-path /dev/dax0.0', 'cannot open', 'daxctl reconfigure-device --mode=devdax')
    machine.must('daxctl enable-device dax0.0')
    serves('--pmem-path /dev/dax0.0', 'opened in').kill()
    machine.must('daxctl reconfigure-device --no-online --mode=system-ram dax0.2')
    machine.refuses(f'{other} --pmem-path /dev/dax0.2', "the system's memory")
    machine.must('daxctl reconfigure-device --mode=devdax dax0.2')
    serves('--pmem-path /dev/dax0.2', 'a new store').kill()

    machine.must('mkfs.ext4 -q -b 4096 /dev/pmem0.1 && mkdir /mnt && mount -t ext4 -o dax=never /dev/pmem0.1 /mnt')
    machine.refuses(f'{other} --pmem-path /mnt/store --capacity 16M', "'/mnt/store' is no persistent memory")
    machine.must('[ ! -e /mnt/store ] && umount /mnt && mount -t ext4 -o dax=always /dev/pmem0.1 /mnt')
    serves('--pmem-path /mnt/store --capacity 16M', 'a new store').kill()


CASES = {'ext4': (ext4, 256, 'mem-ctrl'), 'xfs': (xfs, 336, 'cpu'), 'devdax': (devdax, 400, 'mem-ctrl'),
         'nodes': (nodes, 144, 'mem-ctrl'), 'refusals': (refusals, 400, 'mem-ctrl')}


def main():
    built = rig.enter(IMAGES, image.DAX)
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
    test, nvdimm_mb, persistence = CASES[sys.argv[1]]
    print(f'seed {SEED}')
    work = tempfile.mkdtemp(prefix='cairn-dax-')
    try:
        test(Machine(built, work, nvdimm_mb, persistence))
    finally:
        shutil.rmtree(work, ignore_errors=True)


main()
