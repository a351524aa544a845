#!/usr/bin/env python3
"""cairn-run: programs on our libraries, the devices that they see, and why some devices are out of reach.

    cairn_run_test.py CAIRN_RUN LIBIBVERBS SHIM
"""
import contextlib
import glob
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import capture
import listening
import seccomp

BUILT, LIBRARY, SHIM = (os.path.abspath(path) for path in sys.argv[1:4])
NET = 64 + os.getpid() // 250 % 64, os.getpid() % 250 + 1  # concurrent runs on one machine use other addresses
ADDRESS, OTHER = (f'127.{NET[0]}.{NET[1]}.{host}' for host in (2, 3))
OF_NOBODY = tuple(f'127.{NET[0]}.{NET[1]}.{host}' for host in (4, 5))  # a broker keeps an address for its user for some
                                                                       # time
HEX = f'{NET[0]:02x}', f'{NET[1]:02x}'
DEVICES = f'cairn0={ADDRESS}'
NOBODY = 65533  # in a user namespace all other users appear as 65534
OVERFLOW = {'user': 65534, 'group': 65534, 'extra_groups': []}
SECONDS = 60
VIEWS = ('namespaces', 'shim')


def refuse_namespaces():
    seccomp.refuse(seccomp.NAMESPACES)


class Ended(subprocess.Popen):
    """A program that has ended when its block is left, for any reason."""

    def __exit__(self, *why):
        self.kill()
        super().__exit__(*why)


def listens(port, server):
    """Waits until a program listens on a TCP port."""
    for _ in range(SECONDS * 50):
        if listening.has_listener(port):
            return
        if server.poll() is not None:
            break
        time.sleep(0.02)
    server.kill()
    raise AssertionError(server.communicate()[0])


class CairnRun(unittest.TestCase):
    """An installed tree that any user can read."""

    @classmethod
    def setUpClass(cls):
        cls.tree = tempfile.mkdtemp(prefix='cairn-run-test-')
        os.chmod(cls.tree, 0o755)
        os.makedirs(f'{cls.tree}/bin')
        os.makedirs(f'{cls.tree}/lib/cairn')
        cls.program = shutil.copy(BUILT, f'{cls.tree}/bin/')
        cls.library = shutil.copy(LIBRARY, f'{cls.tree}/lib/cairn/')
        shutil.copy(SHIM, f'{cls.tree}/lib/cairn/')
        for beside in ('cairn-broker', 'librdmacm.so.1'):
            shutil.copy(f'{os.path.dirname(LIBRARY)}/{beside}', f'{cls.tree}/lib/cairn/')

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tree)

    def run_it(self, *arguments, devices=DEVICES, env=None, **options):
        environment = {**os.environ, **(env or {})}
        environment.pop('CAIRN_DEVICES', None)
        if devices is not None:
            environment['CAIRN_DEVICES'] = devices
        return subprocess.run([self.program, *arguments], env=environment, capture_output=True, text=True,
                              timeout=SECONDS, check=False, cwd='/', **options)

    def output(self, *arguments, **options):
        done = self.run_it(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        return done.stdout

    def refused(self, *arguments, **options):
        done = self.run_it(*arguments, **options)
        self.assertEqual((done.returncode, done.stdout), (2, ''), done.stderr)
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
        self.assertTrue(done.stderr.startswith('cairn-run: '), done.stderr)
        return done.stderr

    def needs(self, *programs):
        for program in programs:
            if shutil.which(program) is None:
                self.skipTest(f'{program} is not installed')

    def views(self):
        """Yields each way to see devices that this machine allows, each as every available user."""
        users = [{}] if os.getuid() != 0 else [{}, {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}]
        for user in users:
            for view in VIEWS:
                if view == 'namespaces' and self.run_it('--view', view, 'true', **user).returncode == 2:
                    continue
                with self.subTest(view=view, user=user.get('user', os.getuid())):
                    yield view, user


    def ends(self, command, common, of_client, env=None, **options):
        """Runs two programs at an address each, which must succeed. Returns the client's output."""
        self.needs(command[-1])
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        command = [self.program, *command, '-p', str(port), *common]
        ours, theirs = OF_NOBODY if options.get('user') == NOBODY else (ADDRESS, OTHER)
        with Ended(command, env={**os.environ, **(env or {}), 'CAIRN_DEVICES': f'cairn0={ours}'}, text=True,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options) as server:
            listens(port, server)
            client = self.run_it(*command[1:], '127.0.0.1', *of_client, devices=f'cairn0={theirs}', env=env, **options)
            if client.returncode != 0:
                server.kill()
            out, _ = server.communicate(timeout=SECONDS)
        self.assertEqual((client.returncode, server.returncode), (0, 0), client.stdout + client.stderr + out)
        return client.stdout


class Running(CairnRun):
    def test_arguments_output_and_exit_status_are_the_programs_own(self):
        self.assertEqual(self.output('sh', '-c', 'echo "$@"', 'x', '--help', '-v', ''), '--help -v \n')
        self.assertEqual(self.run_it('sh', '-c', 'exit 37').returncode, 37)
        self.assertEqual(self.output('--', 'sh', '-c', 'echo "$0"', '--help'), '--help\n')

    def test_signals_are_the_programs_own(self):
        for view in (*VIEWS, 'none'):
            self.assertEqual(self.run_it('--view', view, 'sh', '-c', 'kill -9 $$').returncode, -signal.SIGKILL)
        with Ended([self.program, 'sleep', '60']) as program:
            for _ in range(SECONDS * 50):
                with open(f'/proc/{program.pid}/comm', encoding='ascii') as name:
                    if name.read() == 'sleep\n':
                        break
                time.sleep(0.02)
            program.terminate()
            self.assertEqual(program.wait(SECONDS), -signal.SIGTERM)

    def test_the_library_stands_before_others(self):
        out = self.output('sh', '-c', 'echo $LD_LIBRARY_PATH', env={'LD_LIBRARY_PATH': '/elsewhere'})
        self.assertEqual(out, f'{self.tree}/lib/cairn:/elsewhere\n')

    def test_a_build_tree_will_do(self):
        done = subprocess.run([BUILT, '--view', 'none', 'sh', '-c', 'echo $LD_LIBRARY_PATH'], capture_output=True,
                              text=True, timeout=SECONDS, check=True)
        self.assertEqual(done.stdout.split(':')[0].strip(), os.path.dirname(LIBRARY))

    def test_options_set_what_the_library_reads(self):
        out = self.output('--devices', 'left=127.0.0.9', '--pcap', '/tmp/x.pcap', '--faults', 'loss=1%',
                          'sh', '-c', 'echo $CAIRN_DEVICES $CAIRN_PCAP $CAIRN_FAULTS')
        self.assertEqual(out, 'left=127.0.0.9 /tmp/x.pcap loss=1%\n')

    def test_a_file_has_the_same_arguments(self):
        path = f'{self.tree}/run.toml'
        with open(path, 'w', encoding='ascii') as file:
            file.write('devices = "right=127.0.0.8"\n')
        self.assertEqual(self.output('--config', path, 'sh', '-c', 'echo $CAIRN_DEVICES'), 'right=127.0.0.8\n')

    def test_the_help_names_what_there_is(self):
        out = self.output('--help')
        for word in ('CAIRN_DEVICES', 'CAIRN_PCAP', 'CAIRN_FAULTS', 'CAIRN_POLL', 'CAIRN_RDMACM', 'config/', '--view',
                     '--info', '--stat'):
            self.assertIn(word, out)

    def test_devices_are_the_librarys(self):
        self.needs('ibv_devices')
        self.assertIn(f'cairn0          \t00ca7ffffe{HEX[0]}{HEX[1]}02', self.output('ibv_devices'))


class OutOfReach(CairnRun):
    def copy_of(self, program, name):
        return shutil.copy(shutil.which(program), f'{self.tree}/{name}')

    def test_wrong_arguments(self):
        self.assertIn('there is no argument --nonsense', self.refused('--nonsense', 'true'))
        self.assertIn('no program was given', self.refused())
        self.assertIn("CAIRN_DEVICES: 'cairn0' has no name", self.refused('--devices', 'cairn0', 'true'))
        self.assertIn("CAIRN_FAULTS: the fault 'loss=1' has another form", self.refused('--faults', 'loss=1', 'true'))

    def test_what_is_not_there(self):
        self.assertIn("there is no program 'no-such-program' in PATH", self.refused('no-such-program'))
        self.assertIn('No such file', self.refused('/no/such/program'))
        self.assertIn('not an executable file', self.refused('/etc/passwd'))
        self.assertIn('not an executable file', self.refused('/etc'))

    def test_what_is_no_program(self):
        path = f'{self.tree}/text'
        with open(path, 'w', encoding='ascii') as file:
            file.write('hello\n')
        os.chmod(path, 0o755)
        self.assertIn('neither an ELF program nor a script', self.refused(path))

    def test_a_script_is_what_its_interpreter_is(self):
        path = f'{self.tree}/script'
        with open(path, 'w', encoding='ascii') as file:
            file.write('#!/bin/sh\necho "$0" "$1"\n')
        os.chmod(path, 0o755)
        self.assertEqual(self.output(path, 'one'), f'{path} one\n')
        with open(path, 'w', encoding='ascii') as file:
            file.write('#!/no/such/shell\n')
        self.assertIn('is a script of /no/such/shell, which is not there', self.refused(path))

    def test_other_machines_and_damage(self):
        path = self.copy_of('true', 'other')
        for at, byte, why in ((4, 1, 'another architecture'), (18, 0xb7, 'another architecture'),
                              (54, 1, 'damaged')):
            with open(shutil.which('true'), 'rb') as file:
                bytes_of = bytearray(file.read())
            bytes_of[at] = byte
            with open(path, 'wb') as file:
                file.write(bytes_of)
            self.assertIn(why, self.refused(path))

    def compiled(self, source, name, *arguments):
        self.needs('cc')
        path = f'{self.tree}/{name}'
        done = subprocess.run(['cc', '-x', 'c', '-', '-x', 'none', '-o', path, *arguments], input=source, text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def test_static_programs(self):
        path = self.compiled('void _start(void) { for (;;); }', 'static', '-static', '-nostdlib')
        self.assertIn('linked statically', self.refused(path))

    def test_verbs_that_are_linked_in(self):
        path = self.compiled('void ibv_open_device(void) {} int main(void) { return 0; }', 'own')
        self.assertIn('has a verbs library linked in', self.refused(path))

    def test_an_rpath_that_brings_another_library(self):
        os.makedirs(f'{self.tree}/copy', exist_ok=True)
        own = self.compiled('void ibv_open_device(void) {}', 'copy/libibverbs.so.1', '-shared', '-fPIC',
                            '-Wl,-soname,libibverbs.so.1')
        source = 'void ibv_open_device(void); int main(void) { ibv_open_device(); return 0; }'
        path = self.compiled(source, 'rpath', own, f'-Wl,-rpath,{self.tree}/copy,--disable-new-dtags')
        self.assertIn(f'it loads {own} as libibverbs.so.1 by its RPATH ({self.tree}/copy)', self.refused(path))
        path = self.compiled(source, 'runpath', own, f'-Wl,-rpath,{self.tree}/copy,--enable-new-dtags')
        self.assertNotEqual(self.run_it(path).returncode, 2)  # our file comes before it

    def test_programs_that_gain_rights(self):
        if os.getuid() != 0:
            self.skipTest('not root')
        path = self.copy_of('true', 'setuid')
        os.chmod(path, stat.S_ISUID | 0o755)
        self.assertIn('setuid', self.refused(path, user=NOBODY, group=NOBODY, extra_groups=[]))
        self.assertEqual(self.output(path), '')  # root gains nothing
        os.chmod(path, 0o755)
        if shutil.which('setcap') is not None:
            subprocess.run(['setcap', 'cap_net_raw+ep', path], check=True)
            self.assertIn('capabilities', self.refused(path, user=NOBODY, group=NOBODY, extra_groups=[]))

    def test_no_process_can_be_started(self):
        """The kernel's EAGAIN is not a refusal of namespaces. For root there is no limit."""
        user = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []} if os.getuid() == 0 else {}
        said = self.refused('true', preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (0, 0)), **user)
        self.assertEqual(said, 'cairn-run: cannot start a process: Resource temporarily unavailable; raise the limit '
                         'of processes (ulimit -u, or that of the container)\n')

    def test_a_tree_without_the_library(self):
        os.makedirs(f'{self.tree}/alone/bin')
        alone = shutil.copy(BUILT, f'{self.tree}/alone/bin/')
        done = subprocess.run([alone, 'true'], capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('there is no libibverbs.so.1 beside', done.stderr)


class Views(CairnRun):
    def test_devices_are_seen_as_the_kernel_shows_them(self):
        script = ('for f in /sys/class/infiniband/cairn0/ports/1/{state,link_layer,rate,gids/1,gids/5,pkeys/0,'
                  'gid_attrs/types/1,gid_attrs/ndevs/1} /sys/class/infiniband/cairn0/{node_guid,node_type} '
                  '/sys/class/infiniband_verbs/uverbs0/ibdev; do echo "$(< $f)"; done; '
                  'ls /sys/class/infiniband; test -c /dev/infiniband/uverbs0 -a -r /dev/infiniband/uverbs0 '
                  '-a -w /dev/infiniband/uverbs0 && echo device')
        gid, guid = f'0000:0000:0000:0000:0000:ffff:7f{HEX[0]}:{HEX[1]}02', f'00ca:7fff:fe{HEX[0]}:{HEX[1]}02'
        wanted = ['4: ACTIVE', 'Ethernet', '100 Gb/sec (4X EDR)', gid,
                  '0000:0000:0000:0000:0000:0000:0000:0000', '0xffff', 'RoCE v2', 'lo', guid,
                  '1: CA', 'cairn0', 'cairn0', 'device']
        for view, user in self.views():
            self.assertEqual(self.output('--view', view, 'bash', '-c', script, **user).splitlines(), wanted)

    def test_all_else_is_there_and_the_user_stays_who_he_is(self):
        script = 'id -u; id -g; ls /sys/class /dev | grep -v -e ^infiniband; ls /sys/class/net; echo x >/dev/null'
        for view, user in self.views():
            bare = subprocess.run(['bash', '-c', script], capture_output=True, text=True, check=True, cwd='/', **user)
            self.assertEqual(self.output('--view', view, 'bash', '-c', script, **user), bare.stdout)

    def test_nothing_is_seen_outside(self):
        before = os.listdir('/dev'), os.listdir('/sys/class')
        for view, user in self.views():
            with Ended([self.program, '--view', view, 'sh', '-c', 'echo ready; read line'],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env={**os.environ, 'CAIRN_DEVICES': DEVICES}, **user) as program:
                program.stdout.readline()
                self.assertEqual((os.listdir('/dev'), os.listdir('/sys/class')), before)
                program.communicate(b'\n', SECONDS)

    def test_the_shims_folder_goes_with_the_program(self):
        for end in ('exit 0', 'kill -9 $$'):
            done = self.run_it('--view', 'shim', 'sh', '-c', f'echo $CAIRN_SHIM_ROOT; {end}')
            folder = done.stdout.strip()
            self.assertTrue(folder.startswith('/'), done)
            for _ in range(SECONDS * 50):
                if not os.path.exists(folder):
                    break
                time.sleep(0.02)
            self.assertFalse(os.path.exists(folder))

    def test_a_folder_that_nobody_keeps_is_removed(self):
        with tempfile.TemporaryDirectory() as runtime:
            os.makedirs(f'{runtime}/cairn-run.stale0/sys/class/infiniband')
            out = self.output('--view', 'shim', 'sh', '-c', 'ls $XDG_RUNTIME_DIR', env={'XDG_RUNTIME_DIR': runtime})
            self.assertRegex(out, r'^cairn-run\.[A-Za-z0-9]{6}\n$')
            for _ in range(SECONDS * 50):
                if not glob.glob(f'{runtime}/*'):
                    break
                time.sleep(0.02)

    def test_folders_of_users_stay(self):
        with tempfile.TemporaryDirectory() as runtime:
            for kept in ('cairn-run.results/sys/class/infiniband', 'cairn-run.abcdef', 'cairn-run.ghijkl/sys/class',
                         'cairn-run.mnopqr/sys/class/infiniband', 'cairn-run.mnopqr/data'):
                os.makedirs(f'{runtime}/{kept}')
            before = sorted(os.listdir(runtime))
            self.output('--view', 'shim', 'true', env={'XDG_RUNTIME_DIR': runtime})
            self.assertEqual([name for name in before if not os.path.exists(f'{runtime}/{name}')], [])

    def test_it_runs_beneath_itself(self):
        """The inner one sees the devices of the machine, not those that the outer one shows, and changes none of
        them."""
        gid = '/sys/class/infiniband/cairn0/ports/1/gids/1'
        inner = f'{self.program} --devices cairn0={OTHER}'
        script = f'{inner} cat {gid}; cat {gid}; {inner} --view shim cat {gid}; stat -c %a /dev/null'
        command = ['sh', '-c', script]
        if os.getuid() == 0:  # the machine's own /dev/null is not at risk
            command = ['unshare', '--mount', 'sh', '-c',
                       'cp -a /dev/null "$0" && mount --bind "$0" /dev/null && exec "$@"',
                       f'{self.tree}/null', self.program, '--view', 'shim', *command]
            done = subprocess.run(command, env={**os.environ, 'CAIRN_DEVICES': DEVICES}, capture_output=True, text=True,
                                  timeout=SECONDS, check=False)
            out = done.stdout
            self.assertEqual((done.returncode, done.stderr), (0, ''), out)
        else:
            out = self.output('--view', 'shim', *command)
        gids = [f'0000:0000:0000:0000:0000:ffff:7f{HEX[0]}:{HEX[1]}0{host}' for host in (2, 3)]
        self.assertEqual(out.splitlines(), [gids[1], gids[0], gids[1], '666'])

    def test_terminals_are_there(self):
        script = ('import os; ours, theirs = os.openpty(); os.write(ours, b"typed\\n"); '
                  'print(os.read(theirs, 9), os.isatty(theirs), '
                  'os.path.samefile(os.ttyname(theirs), f"/proc/self/fd/{theirs}"))')
        self.needs('/usr/bin/python3')  # readable by other users, unlike an interpreter in a home directory
        for view, user in self.views():
            out = self.output('--view', view, '/usr/bin/python3', '-c', script, **user)
            self.assertEqual(out, "b'typed\\n' True True\n")

    def test_root_keeps_its_rights(self):
        if os.getuid() != 0:
            self.skipTest('only root has rights to lose')
        self.needs('setpriv')
        path = f'{self.tree}/private'
        with open(path, 'w', encoding='ascii') as file:
            file.write('mine\n')
        os.chown(path, NOBODY, NOBODY)
        os.chmod(path, 0o600)
        done = subprocess.run(['setpriv', '--bounding-set=-sys_admin', self.program, 'sh', '-c',
                               f'cat {path}; cat /sys/class/infiniband/cairn0/node_type'],
                              env={**os.environ, 'CAIRN_DEVICES': DEVICES}, capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        self.assertEqual((done.stdout, done.stderr), ('mine\n1: CA\n', ''))

    def test_who_all_others_seem_to_be_has_no_user_namespace(self):
        if os.getuid() != 0:
            self.skipTest('only root may become another user')
        self.assertIn("all other users would have this user's number",
                      self.refused('--view', 'namespaces', 'true', **OVERFLOW))
        self.assertRegex(self.output('sh', '-c', 'echo $CAIRN_SHIM_ROOT', **OVERFLOW), '^/.*cairn-run')

    def test_whoever_waits_for_output_or_children_does_not_wait_for_the_keeper(self):
        script = 'import os\ntry: os.wait()\nexcept ChildProcessError: print("childless")'
        self.assertEqual(self.output('--view', 'shim', sys.executable, '-c', script), 'childless\n')

    def test_a_starter_may_ignore_the_ends_of_its_children(self):
        for view, user in self.views():
            out = self.output('--view', view, 'cat', '/sys/class/infiniband/cairn0/node_type', **user,
                              preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
            self.assertEqual(out, '1: CA\n')

    def test_where_namespaces_are_refused_the_shim_does_it(self):
        script = ('echo "$CAIRN_SHIM_ROOT"; test -c /dev/infiniband/uverbs0 && '
                  'cat /sys/class/infiniband/cairn0/node_type')
        out = self.output('bash', '-c', script, preexec_fn=refuse_namespaces)
        self.assertRegex(out, r'^/.*/cairn-run\.\w+\n1: CA\n$')
        self.assertIn('private namespaces are refused: unshare: Operation not permitted',
                      self.refused('--view', 'namespaces', 'true', preexec_fn=refuse_namespaces))

    def test_the_shim_leads_every_call_that_takes_a_path(self):
        path, node = '/sys/class/infiniband/cairn0/node_type', '/dev/infiniband/uverbs0'
        script = f'''
import ctypes, os, stat
libc = ctypes.CDLL(None)
libc.fopen.restype = libc.fopen64.restype = libc.opendir.restype = libc.realpath.restype = ctypes.c_void_p
path, node, folder = b"{path}", b"{node}", b"/sys/class/infiniband/cairn0"
room = ctypes.create_string_buffer(4096)
listed = ctypes.c_void_p()
none = ctypes.c_void_p()
for name, call in (
        ("open", lambda f: f(path, 0) >= 0), ("open64", lambda f: f(path, 0) >= 0),
        ("openat", lambda f: f(-100, path, 0) >= 0), ("openat64", lambda f: f(-100, path, 0) >= 0),
        ("__open_2", lambda f: f(path, 0) >= 0), ("__open64_2", lambda f: f(path, 0) >= 0),
        ("__openat_2", lambda f: f(-100, path, 0) >= 0), ("__openat64_2", lambda f: f(-100, path, 0) >= 0),
        ("fopen", lambda f: f(path, b"r")), ("fopen64", lambda f: f(path, b"r")),
        ("opendir", lambda f: f(folder)), ("scandir", lambda f: f(folder, ctypes.byref(listed), none, none) > 3),
        ("scandir64", lambda f: f(folder, ctypes.byref(listed), none, none) > 3),
        ("access", lambda f: f(node, 6) == 0), ("eaccess", lambda f: f(node, 6) == 0),
        ("euidaccess", lambda f: f(node, 6) == 0), ("faccessat", lambda f: f(-100, node, 6, 0) == 0),
        ("realpath", lambda f: f(folder, room)), ("readlink", lambda f: f(path, room, 4096) < 0),
        ("__xstat", lambda f: f(1, node, room) == 0), ("__lxstat", lambda f: f(1, node, room) == 0),
        ("__xstat64", lambda f: f(1, node, room) == 0), ("__lxstat64", lambda f: f(1, node, room) == 0),
        ("__fxstatat", lambda f: f(1, -100, node, room, 0) == 0),
        ("__fxstatat64", lambda f: f(1, -100, node, room, 0) == 0),
        ("statx", lambda f: f(-100, node, 256, 1, room) == 0)):
    if not call(getattr(libc, name)):
        print(name)
for name in ("stat", "lstat", "stat64", "lstat64"):
    if getattr(libc, name)(node, room) != 0 or not stat.S_ISCHR(int.from_bytes(room.raw[24:28], "little")):
        print(name)
for follow in (0, 256):
    for name in ("fstatat", "fstatat64"):
        if getattr(libc, name)(-100, node, room, follow) != 0 or room.raw[25] >> 4 != 2:
            print(name, follow)
if not stat.S_ISCHR(os.lstat("{node}").st_mode): print("lstat of Python")
for outside in ("/sys/class/infiniband/../net", "/sys/class/net", "/dev/null", "/sys/class/infinibandx"):
    if os.path.realpath(outside) != os.path.realpath("/proc/self/root" + outside).replace("/proc/self/root", ""):
        print(outside)
'''
        self.assertEqual(self.output('--view', 'shim', sys.executable, '-c', script), '')


class Telling(CairnRun):
    def test_info_shows_devices_limits_and_what_the_machine_allows(self):
        out = self.output('--info')
        for wanted in (f'library: {self.tree}/lib/cairn/libibverbs.so.1\n', f'cairn0: address {ADDRESS}, GUID 00ca',
                       f'GID 1: ::ffff:{ADDRESS}\n', 'path MTU 4096', 'queue pairs', 'locked memory: not needed'):
            self.assertIn(wanted, out)
        out = self.output('--info', preexec_fn=refuse_namespaces)
        self.assertIn('by the shim (private namespaces are refused: ', out)

    def test_info_agrees_with_what_programs_are_told(self):
        self.needs('ibv_devinfo')
        info, devinfo = self.output('--info'), self.output('ibv_devinfo', '-v')
        self.assertEqual(re.search(r'(\d+) queue pairs of (\d+) requests', info).groups(),
                         tuple(re.search(rf'max_{name}:\s+(\d+)', devinfo).group(1) for name in ('qp', 'qp_wr')))

    def test_a_helper_that_spins_uses_its_cpu_and_one_that_is_adaptive_sleeps(self):
        self.needs('ibv_asyncwatch')

        def ticks(program):
            with open(f'/proc/{program.pid}/stat', encoding='ascii') as file:
                return sum(int(field) for field in file.read().rsplit(')', 1)[1].split()[11:13])

        with contextlib.ExitStack() as stack:
            sleeper, spinner = (
                stack.enter_context(Ended([self.program, '--poll', poll, 'ibv_asyncwatch', '-d', 'cairn0'],
                                          env={**os.environ, 'CAIRN_DEVICES': f'cairn0={address}'},
                                          stdout=subprocess.DEVNULL))
                for poll, address in (('adaptive', ADDRESS), ('spin', OTHER)))
            for _ in range(SECONDS * 50):
                if ticks(spinner) > 50:
                    break
                time.sleep(0.02)
            self.assertGreater(ticks(spinner), 50)
            self.assertLess(ticks(sleeper), 25)

    def test_counters_of_running_programs(self):
        self.needs('ibv_asyncwatch')
        with Ended([self.program, 'ibv_asyncwatch', '-d', 'cairn0'], env={**os.environ, 'CAIRN_DEVICES': DEVICES},
                   stdout=subprocess.DEVNULL) as program:
            shown = None
            for _ in range(SECONDS * 50):
                shown = self.run_it('--stat', str(program.pid))
                if shown.returncode == 0:
                    break
                time.sleep(0.02)
            self.assertEqual(shown.returncode, 0, shown)
            self.assertTrue(shown.stdout.startswith(f'{program.pid} ibv_asyncwatch\n  cairn0 {ADDRESS}\n'),
                            shown.stdout)
            self.assertIn(f'{program.pid} ibv_asyncwatch\n', self.output('--stat'))
            if os.getuid() == 0:
                other = self.output('--stat', user=NOBODY, group=NOBODY, extra_groups=[])
                self.assertNotIn('ibv_asyncwatch', other)
        gone = self.run_it('--stat', str(program.pid))
        self.assertEqual((gone.returncode, gone.stdout), (1, f'process {program.pid} does not use the library\n'))

    def pretend(self, name):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(f'\0cairn-stat.{os.getpid()}.{name}')
        listener.listen(1)
        listener.settimeout(SECONDS)
        return listener

    def test_one_user_does_not_take_all_sockets(self):
        for number in range(300):
            self.pretend(f'silent{number}')
        shown = self.run_it('--stat', str(os.getpid()))
        self.assertEqual(shown.stdout.count(f'{os.getpid()} does not answer\n'), 256)
        self.assertIn(f'uid {os.getuid()} has more than 256 sockets', shown.stderr)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        few = self.run_it('--stat', str(os.getpid()), preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (min(soft, 100), hard)))
        self.assertIn('not all programs are shown: no socket: Too many open files', few.stderr)

    def test_programs_that_do_not_answer_or_say_too_much(self):
        """Any process of this user may pretend to be a program of the library."""
        def flood(listener):
            connection, _ = listener.accept()
            with connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.settimeout(SECONDS)
                for _ in range(8 << 10):
                    connection.sendall(b'loud\x1b[2J\xc2\x9b\x80\n' * 100)

        for number in range(20):
            self.pretend(f'silent{number}')
        talker = threading.Thread(target=flood, args=(self.pretend('loud'),))
        talker.start()
        shown = self.run_it('--stat', str(os.getpid())).stdout
        talker.join()
        self.assertEqual(shown.count(f'{os.getpid()} does not answer\n'), 20)
        self.assertIn(f'{os.getpid()} loud?[2J???\n  loud', shown)
        for strange in '\x1b', '\x9b':
            self.assertNotIn(strange, shown)
        for line in shown.splitlines():  # no line begins as a line of another program
            self.assertTrue(line.startswith((f'{os.getpid()} ', '  ')), line)
        self.assertLess(len(shown), 2 << 20)

    def test_what_is_no_pid_is_refused(self):
        for text in ('abc', '0', '1x', '99999999999999999999'):
            self.assertIn(f'{text} is no PID: these are whole numbers from 1', self.refused('--stat', text))

    def test_they_stand_alone(self):
        self.assertIn('stand alone', self.refused('--info', 'true'))
        self.assertIn('stand alone', self.refused('--info', '--stat'))


class Faults(CairnRun):
    def pingpong(self, faults, *arguments, **options):
        return self.ends(['--faults', faults, 'ibv_rc_pingpong'], ['-g', '1', *arguments], [], **options)

    def test_a_bad_network_only_takes_longer(self):
        self.pingpong('loss=1%,duplicates=1%,reorder=1%', '-c', '-n', '300')
        self.pingpong('loss=1%,duplicates=1%,reorder=1%,damage=1%,seed=7', '-c', '-n', '300', '-e')
        self.pingpong('loss=1%,reorder=1%', '-c', '-n', '10', '-s', '100000', '-e')
        self.pingpong('delay=2ms', '-c', '-n', '30')

    def first_to_end(self, faults):
        """Runs two ends that exchange messages for ever. Returns the exit status and the output of the end that fails
        first."""
        self.needs('ibv_rc_pingpong')
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        command = [self.program, '--faults', faults, 'ibv_rc_pingpong', '-g', '1', '-p', str(port), '-n', '100000000']
        options = {'text': True, 'stdout': subprocess.PIPE, 'stderr': subprocess.STDOUT}
        with Ended(command, env={**os.environ, 'CAIRN_DEVICES': DEVICES}, **options) as server:
            listens(port, server)
            with Ended([*command, '127.0.0.1'], env={**os.environ, 'CAIRN_DEVICES': f'cairn0={OTHER}'},
                       **options) as client:
                for _ in range(SECONDS * 50):
                    for end in (client, server):
                        if end.poll() is not None:
                            return end.returncode, end.communicate()[0]
                    time.sleep(0.02)
        self.fail('nobody noticed')

    def test_a_port_or_peer_that_fails_is_an_error(self):
        for faults in ('port=200ms', f'peer={ADDRESS}@200ms'):
            with self.subTest(faults=faults):
                status, out = self.first_to_end(faults)
                self.assertEqual(status, 1)
                self.assertIn('transport retry counter exceeded', out)

    def test_a_queue_pair_that_fails_ends_both_programs(self):
        status, out = self.first_to_end('qp=200ms')
        self.assertEqual(status, 1)
        self.assertRegex(out, 'Work Request Flushed Error|transport retry counter exceeded')

    def test_a_port_that_comes_back_is_none(self):
        self.pingpong('port=10ms+20ms', '-c', '-n', '300')

    def test_wrong_variables_are_explained_and_there_are_no_devices(self):
        self.needs('ibv_devices')
        for name, value, words in (('CAIRN_FAULTS', 'rain=1%', "there is no fault 'rain=1%'"),
                                   ('CAIRN_POLL', 'often', "'often'; it is adaptive or spin")):
            with self.subTest(name=name):
                done = subprocess.run(['ibv_devices'], capture_output=True, text=True, timeout=SECONDS, check=False,
                                      env={**os.environ, 'LD_LIBRARY_PATH': f'{self.tree}/lib/cairn', name: value})
                self.assertEqual(done.returncode, 0)
                self.assertNotIn('cairn0', done.stdout)
                self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
                self.assertRegex(done.stderr, f'{name}: .*{re.escape(words)}')


class Ucx(CairnRun):
    def test_it_lists_the_device(self):
        self.needs('ucx_info')
        for view, user in self.views():
            address = OF_NOBODY[0] if user else ADDRESS
            out = self.output('--view', view, 'ucx_info', '-d', devices=f'cairn0={address}', **user)
            self.assertEqual(re.findall(r'Transport: (\w+_verbs)\n#\s+Device: (\S+)\n', out),
                             [('rc_verbs', 'cairn0:1'), ('ud_verbs', 'cairn0:1')])

    def pair(self, view, *arguments, transports='rc_verbs,ud_verbs,self', user=None, **variables):
        env = {'UCX_TLS': transports, 'UCX_WARN_UNUSED_ENV_VARS': 'n', **variables}
        out = self.ends(['--view', view, 'ucx_perftest'], [], arguments, env=env, **(user or {}))
        self.assertIn('Final:', out)

    def test_it_sends_puts_and_gets(self):
        for view, user in self.views():
            self.pair(view, '-t', 'tag_lat', '-n', '100', '-w', '10', '-s', '64', user=user)
        for test in ('tag_bw', 'ucp_am_bw', 'ucp_put_bw', 'ucp_get'):
            with self.subTest(test=test):
                self.pair('shim', '-t', test, '-n', '50', '-w', '10', '-s', '65536')

    def test_it_sends_by_datagrams_alone(self):
        self.pair('namespaces' if os.getuid() == 0 else 'shim', '-t', 'tag_lat', '-n', '30', '-w', '5', '-s', '64',
                  transports='ud_verbs,self')

    def test_who_sleeps_in_a_poll_of_its_own_gets_over_losses(self):
        self.pair('shim', '-t', 'tag_lat', '-E', 'sleep', '-n', '60', '-w', '5', '-s', '64', CAIRN_FAULTS='loss=2%',
                  UCX_RC_VERBS_TIMEOUT='30ms', UCX_RC_TIMEOUT='30ms')


class UcxAtLength(Ucx):
    def test_each_operation_of_each_size(self):
        for test in ('tag_lat', 'tag_bw', 'tag_sync_bw', 'ucp_am_lat', 'ucp_am_bw', 'ucp_put_lat', 'ucp_put_bw',
                     'ucp_get', 'stream_bw', 'stream_lat'):
            for size in (1, 8, 1000, 4096, 8192, 65536, 1 << 20, 8 << 20):
                with self.subTest(test=test, size=size):
                    self.pair('shim', '-t', test, '-n', '50', '-w', '5', '-s', str(size))

    def test_atomics(self):
        for test in ('ucp_add', 'ucp_fadd', 'ucp_swap', 'ucp_cswap'):
            for size in (4, 8):
                with self.subTest(test=test, size=size):
                    self.pair('shim', '-t', test, '-n', '200', '-w', '5', '-s', str(size))

    def test_datagrams(self):
        for test in ('tag_bw', 'ucp_am_bw', 'ucp_get'):
            for size in (8, 4096, 65536):
                with self.subTest(test=test, size=size):
                    self.pair('shim', '-t', test, '-n', '50', '-w', '5', '-s', str(size), transports='ud_verbs,self')


class OpenMpi(CairnRun):
    """Ranks on one address, by UCX alone."""
    WORDS = ('--oversubscribe', '--mca', 'pml', 'ucx', '--mca', 'pml_ucx_tls', 'any', '--mca', 'pml_ucx_devices', 'any',
             '--mca', 'btl', 'self', '--mca', 'osc', '^ucx')
    ENVIRONMENT = {'UCX_TLS': 'rc_verbs,ud_verbs,self', 'OMPI_ALLOW_RUN_AS_ROOT': '1',
                   'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}

    def ranks(self, view, user, *arguments):
        """Returns the output of the ranks; each has an ICRC-checked capture of its own."""
        self.needs('mpirun', arguments[0])
        address = OF_NOBODY[0] if user else ADDRESS
        with tempfile.TemporaryDirectory(prefix='cairn-mpi-') as folder:
            os.chmod(folder, 0o777)
            done = subprocess.run(
                ['mpirun', '-n', '2', *self.WORDS, 'sh', '-c',
                 f'exec {self.program} --view {view} --pcap {folder}/$OMPI_COMM_WORLD_RANK.pcap "$0" "$@"', *arguments],
                env={**os.environ, **self.ENVIRONMENT, 'CAIRN_DEVICES': f'cairn0={address}', 'HOME': folder},
                capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder, **user)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for rank in range(2):
                packets, faults = capture.judge(f'{folder}/{rank}.pcap')
                self.assertEqual(faults, [])
                self.assertGreater(packets, 1000)
        return done.stdout + done.stderr

    def test_netpipe_finds_each_byte(self):
        for view, user in self.views():
            out = self.ranks(view, user, 'NPopenmpi', '-i', '-n', '3', '-u', '300000')
            self.assertRegex(out, '262145 bytes .* Integrity check passed')
            self.assertNotIn('failed', out)


# The slow tests, which are chosen by name.
def load_tests(loader, tests, _pattern):
    return loader.suiteClass(each for each in tests if not any(isinstance(one, (UcxAtLength, OpenMpi)) for one in each))


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
