#!/usr/bin/env python3
"""Unmodified verbs programs with our libibverbs.so.1 and librdmacm.so.1 in place of the installed ones: two processes,
an address each.

    dropin_test.py LIBIBVERBS LIBRDMACM [--full]    --full: the programs that a short run leaves out
"""
import contextlib
import glob
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import listening

LIBRARY, RDMACM = (os.path.abspath(path) for path in sys.argv[1:3])
FULL = '--full' in sys.argv[3:]
INSTALLED = '/usr/lib/x86_64-linux-gnu/'
PRIVATE = '@@CAIRN_'  # names that only our libraries use
NET = [127, os.getpid() // 250 % 250 + 1, os.getpid() % 250]  # of this run; others may run at the same time
SERVER, CLIENT = (('{}.{}.{}.' + host).format(*NET) for host in ('2', '3'))
SHARED, ALONE, RACED, KILLED, FOREIGN, UNSHARED, TAKEN, COUNTED, UNUSED = (
    '{}.{}.{}.{}'.format(*NET, host) for host in range(4, 13))
SECONDS = 60
# Some programs over rdma_cm.
ENDLESS = ('rping, many in turn', 'cmtime')  # their servers do not end
# The output of a client while the server does not listen yet.
NOT_YET = re.compile(r'REJECTED[;,]? error: 8|UNREACHABLE[;,]? error: 1\b|Unexpected CM event bl blka 8')
SAYS = {'fio': 'err= 0'}  # the success line of programs whose exit code is always 0


def environment(devices, **more):
    named = {} if devices is None else {'CAIRN_DEVICES': devices}
    return {**os.environ, 'LD_LIBRARY_PATH': os.path.dirname(LIBRARY), **named, **more}


def brokers(address):
    """Returns the processes that are brokers of the address."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline', 'rb') as file:
                words = file.read().split(b'\0')
        except OSError:
            continue
        if words[0].endswith(b'/cairn-broker') and words[1] == address.encode():
            found.append(int(pid))
    return found


class Ended(subprocess.Popen):
    """A program that has ended, with all processes that it started, when its block is left for any reason."""

    def __init__(self, command, address, devices=None, preexec=None, **more):
        devices = devices or (address and f'cairn0={address}')
        super().__init__(command, env=environment(devices, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, start_new_session=True, preexec_fn=preexec)

    def __exit__(self, *why):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        super().__exit__(*why)


def run(*command, devices=f'cairn0={SERVER}', **more):
    with Ended(command, None, devices, **more) as program:
        out, err = program.communicate(timeout=SECONDS)
        return program.returncode, out, err


def free_port():
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return free.getsockname()[1]


def symbols(path):
    out = subprocess.run(['readelf', '-W', '--dyn-syms', path], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {row[7] for row in rows if len(row) > 7 and '@' in row[7] and row[6] != 'UND'}


def needed(library):
    out = subprocess.run(['readelf', '-d', library], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r'NEEDED.*\[(.*)\]', out))


class DropIn(unittest.TestCase):
    def needs(self, program):
        if shutil.which(program) is None:
            self.skipTest(f'{program} is not installed (scripts/deps tests)')

    def settles(self, ready, server, fault):
        """Waits until `ready` returns true; the server lives."""
        for _ in range(SECONDS * 50):
            if ready():
                return
            if server.poll() is not None:
                self.fail(server.communicate())
            time.sleep(0.02)
        self.fail(fault)

    def listens(self, port, server):
        self.settles(lambda: listening.has_listener(port), server, 'the server does not listen')

    def pair(self, program, *arguments, addresses=(SERVER, CLIENT), before=lambda: None, meanwhile=lambda: None,
             pcap=None, preexec=None, **more):
        """Runs both ends, which must succeed; a program that talks to itself is no success. `pcap` is a folder for
        captures."""
        self.needs(program)
        if 'XRC' in arguments:
            self.share_domains()
        port = free_port()
        command = [program, '-p', str(port), *arguments]
        captures = [{'CAIRN_PCAP': f'{pcap}/{end}.pcap'} if pcap else {} for end in ('server', 'client')]
        with Ended(command, addresses[0], preexec=preexec, **captures[0], **more) as server:
            self.listens(port, server)
            before()
            with Ended([*command, '127.0.0.1'], addresses[1], preexec=preexec, **captures[1], **more) as client:
                meanwhile()
                out, err = client.communicate(timeout=SECONDS)
                code = client.returncode
            self.assertEqual(code, 0, out + err)
            out, err = server.communicate(timeout=SECONDS)
            self.assertEqual(server.returncode, 0, out + err)

    def awaits(self, address, server):
        """Waits until the server has opened its device. It listens a moment later."""
        wanted = ''.join(f'{int(part):02X}' for part in reversed(address.split('.')))
        for _ in range(SECONDS * 50):
            with open('/proc/net/udp', encoding='ascii') as table:
                if f' {wanted}:12B7 ' in table.read():
                    time.sleep(0.2)
                    return
            if server.poll() is not None:
                self.fail(server.communicate())
            time.sleep(0.02)
        self.fail('the server has not opened its device')

    def connect(self, name, server_command, client_command, at=SERVER, to=CLIENT):
        """Runs both ends, which must succeed."""
        where = {'s': at, 'c': to, 'p': free_port()}
        self.needs(server_command.split()[0])
        with Ended(server_command.format(**where).split(), at) as server:
            if name.startswith(('qperf', 'fi_pingpong')):  # they open their device at a request
                self.listens(where['p'], server)
            else:
                self.awaits(at, server)
            for _ in range(SECONDS):
                code, out, err = run(*client_command.format(**where).split(), devices=f'cairn0={to}')
                if not NOT_YET.search(out + err):
                    break
                time.sleep(0.1)
            self.assertEqual(code, 0, out + err)
            said = SAYS.get(name.split()[0], '')
            self.assertIn(said, out)
            if name in ENDLESS:
                self.assertIsNone(server.poll())
                return
            out, err = server.communicate(timeout=SECONDS)
            self.assertEqual(server.returncode, 0, out + err)
            self.assertIn(said, out)

    def share_domains(self):
        """Skips the test if other users' domain files of perftest are there, which make it fail. Deletes our own at the
        end."""
        for path in glob.glob('/tmp/xrc_domain*'):
            if os.stat(path).st_uid != os.getuid():
                self.skipTest(f'{path} is of another user, whose perftest left it')
        self.addCleanup(lambda: [os.unlink(path) for path in glob.glob('/tmp/xrc_domain*')])

    def kill_server(self, server_at, client_at):
        """Kills the server during a pingpong, which ends the pingpong at the other end."""
        self.needs('ibv_rc_pingpong')
        port = free_port()
        command = ['ibv_rc_pingpong', '-g', '1', '-p', str(port), '-n', '100000000']
        with Ended(command, server_at) as server:
            self.listens(port, server)
            with Ended([*command, '127.0.0.1'], client_at) as client:
                time.sleep(0.5)
                self.assertIsNone(client.poll())
                server.kill()
                _, err = client.communicate(timeout=SECONDS)
                self.assertEqual(client.returncode, 1)
                self.assertIn('transport retry counter exceeded', err)


class Library(DropIn):
    # Symbols of rdma-core 45 to 56 that its own libraries need when they are loaded; programs are linked with these.
    NEWER = {f'{name}@@IBVERBS_PRIVATE_34' for name in ('ibv_cmd_create_cq_ex2', 'ibv_wr_opcode_str')}

    def test_it_exports_what_the_installed_one_does(self):
        for library in (LIBRARY, RDMACM):
            with self.subTest(library=library):
                installed = INSTALLED + os.path.basename(library)
                if not os.path.exists(installed):
                    self.skipTest(f'{installed} is not installed')
                ours = {name for name in symbols(library) if PRIVATE not in name}
                self.assertEqual(ours - self.NEWER, symbols(installed) - self.NEWER)
                self.assertLessEqual(self.NEWER if library == LIBRARY else set(), ours)

    def test_it_needs_glibc_and_isal_only(self):
        self.assertLessEqual(needed(LIBRARY), {'libc.so.6', 'ld-linux-x86-64.so.2', 'libisal.so.2', 'libm.so.6'})
        self.assertLessEqual(needed(RDMACM), {'libc.so.6', 'libibverbs.so.1'})


class Machines(DropIn):
    """The libraries on other machines than the one of the build, and under valgrind."""

    # AVX-512: its registers and masks, and 32 bytes of carry-less multiplication, which only newer CPUs have.
    NEWER = re.compile(r'%zmm|%k[0-7]|%[xy]mm(1[6-9]|2\d|3[01])|vpclmul\w+ .*%ymm')
    CHOSEN = ('crc32_wide',)  # functions that are called if the CPU supports them

    def instructions(self, path):
        """Returns pairs of a function's name and a line of its listing. It lists a copy: on a busy machine this takes
        long, and the library may be linked anew meanwhile."""
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(path, folder)
            with subprocess.Popen(['objdump', '-d', '--no-show-raw-insn', copy], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True) as listing:
                function = ''
                for line in listing.stdout:
                    if line.endswith('>:\n'):
                        function = line.split('<')[1][:-3]
                    yield function, line
                self.assertEqual(listing.wait(), 0, listing.stderr.read())

    def test_no_instruction_is_newer_than_the_libraries_say(self):
        self.needs('objdump')
        seen, chosen = set(), set()
        for path in (LIBRARY, RDMACM, os.path.join(os.path.dirname(LIBRARY), 'cairn-broker')):
            for function, line in self.instructions(path):
                if any(name in function for name in self.CHOSEN):
                    chosen.add(function)
                if self.NEWER.search(line):
                    self.assertIn(function, chosen, f'{path}: {line}')
                    seen.add(function)
        self.assertEqual(seen != set(), chosen != set())  # the search can find such instructions

    @unittest.skipUnless(FULL, 'not in a short run')
    def test_a_pingpong_runs_under_valgrind(self):
        self.needs('valgrind')
        port = free_port()
        command = ['valgrind', '-q', '--error-exitcode=9', 'ibv_rc_pingpong', '-g', '1', '-c', '-n', '20', '-p',
                   str(port)]
        with Ended(command, SERVER) as server:
            self.listens(port, server)
            code, out, err = run(*command, '127.0.0.1', devices=f'cairn0={CLIENT}')
            self.assertEqual(code, 0, out + err)
            out, err = server.communicate(timeout=SECONDS)
            self.assertEqual(server.returncode, 0, out + err)


class Devices(DropIn):
    def test_each_configured_address_is_a_device(self):
        self.needs('ibv_devices')
        code, out, err = run('ibv_devices', devices='left=10.9.8.7,right=2001:db8::1')
        self.assertEqual((code, err), (0, ''))
        self.assertRegex(out, r'left\s+00ca0afffe090807\n')
        self.assertRegex(out, r'right\s+0000000000000001\n')

    def test_a_wrong_configuration_is_explained_and_has_no_devices(self):
        self.needs('ibv_devices')
        code, out, err = run('ibv_devices', devices='cairn0=nowhere')
        self.assertEqual(code, 0)
        self.assertNotIn('cairn0', out)
        self.assertEqual(err.count('\n'), 1)
        self.assertIn("CAIRN_DEVICES: 'cairn0=nowhere' has no IP address", err)

    def test_a_device_tells_what_it_is(self):
        self.needs('ibv_devinfo')
        code, out, err = run('ibv_devinfo', '-v')
        self.assertEqual((code, err), (0, ''))
        for wanted in ('hca_id:\tcairn0', 'vendor_id:\t\t\t0xffffff', 'PORT_ACTIVE', 'link_layer:\t\tEthernet',
                       f'::ffff:{SERVER}, RoCE v2', 'fe80::ca:{:x}ff:fe{:02x}:{:x}02, RoCE v2'.format(*NET)):
            self.assertIn(wanted, out)

    def test_an_address_that_is_taken_is_named(self):
        self.needs('ibv_devinfo')
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
            holder.bind((TAKEN, 4791))
            code, out, err = run('ibv_devinfo', devices=f'cairn0={TAKEN}')
        self.assertNotEqual(code, 0, out)
        self.assertRegex(err, rf'cannot bind UDP {re.escape(TAKEN)} port 4791: .*; .*ss -lunp')


class Pingpongs(DropIn):
    def test_of_each_kind_polling_and_sleeping(self):
        for events in ((), ('-e',)):
            for kind in ('rc', 'uc', 'srq'):
                with self.subTest(kind=kind, events=events):
                    self.pair(f'ibv_{kind}_pingpong', '-g', '1', '-c', '-n', '300', *events)
            for kind in ('ud', 'xsrq'):
                with self.subTest(kind=kind, events=events):
                    self.pair(f'ibv_{kind}_pingpong', '-g', '1', '-n', '300', *events)

    def test_by_extended_queues(self):
        for option in ('-N', '-t'):
            with self.subTest(option=option):
                self.pair('ibv_rc_pingpong', '-g', '1', '-c', '-n', '300', option)

    def test_in_device_memory_and_in_memory_on_demand(self):
        for options in ('-j', '-j -N', '-o', '-o -P', '-O'):
            with self.subTest(options=options):
                self.pair('ibv_rc_pingpong', '-g', '1', '-c', '-n', '100', *options.split())

    def test_of_any_size_and_mtu(self):
        for size, mtu in ((1, 256), (4096, 1024), (1 << 20, 4096), (70001, 512)):
            with self.subTest(size=size, mtu=mtu):
                self.pair('ibv_rc_pingpong', '-g', '1', '-c', '-n', '20', '-s', str(size), '-m', str(mtu))

    def test_by_a_link_local_gid(self):
        self.pair('ibv_rc_pingpong', '-g', '0', '-c', '-n', '100')

    def test_a_peer_that_is_killed_is_an_error(self):
        self.kill_server(SERVER, CLIENT)


class OneAddress(DropIn):
    """Programs that share an address through the broker."""

    def settled(self, look, wanted):
        for _ in range(SECONDS * 50):
            found = look()
            if wanted(found):
                return found
            time.sleep(0.02)
        return self.fail(f'found {found}')

    def one_broker(self, address, but=None):
        return self.settled(lambda: brokers(address), lambda found: len(found) == 1 and found[0] != but)[0]

    def test_two_programs_talk_on_it(self):
        for kind in ('rc', 'ud'):
            with self.subTest(kind=kind):
                self.pair(f'ibv_{kind}_pingpong', '-g', '1', '-n', '300', addresses=(SHARED, SHARED))

    def test_two_programs_talk_on_the_default_device(self):
        self.pair('ibv_rc_pingpong', '-g', '1', '-c', '-n', '300', addresses=(None, None))

    def test_the_broker_is_left_alone_by_who_started_it(self):
        self.needs('ibv_devinfo')
        code, out, err = run('setsid', 'sh', '-c', 'x=$(ibv_devinfo); echo "$x"; wait', devices=f'cairn0={ALONE}')
        self.assertEqual((code, err), (0, ''))
        self.assertIn('cairn0', out)
        broker = self.one_broker(ALONE)  # it survives the shell, which waited for its pipe
        with open(f'/proc/{broker}/stat', encoding='ascii') as file:
            _, _, session, terminal = file.read().rpartition(')')[2].split()[1:5]
        self.assertEqual((int(session), terminal), (broker, '0'))
        held = {os.readlink(f'/proc/{broker}/fd/{fd}') for fd in os.listdir(f'/proc/{broker}/fd')}
        self.assertEqual({name.split(':')[0] for name in held}, {'/dev/null', 'socket', 'anon_inode'})
        self.settled(lambda: brokers(ALONE), lambda found: not found)  # and ends

    def test_what_the_broker_counted_is_shown(self):
        self.needs('ibv_rc_pingpong')
        program = os.path.join(os.path.dirname(LIBRARY), 'cairn-broker')
        port = free_port()
        with Ended(['ibv_rc_pingpong', '-g', '1', '-p', str(port)], COUNTED) as server:
            self.listens(port, server)
            code, out, err = run(program, COUNTED, '--counters')
            self.assertEqual((code, err), (0, ''), out)
            self.assertRegex(out, r'\A *broker_lent +1 +slots lent to programs\n\Z')
        code, out, err = run(program, UNUSED, '--counters')
        self.assertEqual((code, out), (2, ''))
        self.assertIn(f'no broker of UDP {UNUSED} port 4791 listens: Connection refused', err)

    def test_programs_that_start_at_once_get_one_broker(self):
        self.needs('ibv_devinfo')
        with contextlib.ExitStack() as programs:
            all_of_them = [programs.enter_context(Ended(['ibv_devinfo'], RACED)) for _ in range(12)]
            for each in all_of_them:
                out, err = each.communicate(timeout=SECONDS)
                self.assertEqual((each.returncode, err), (0, ''), out)
            self.one_broker(RACED)

    def test_programs_survive_their_broker(self):
        """One of them waits for the other meanwhile, or both talk."""
        killed = []

        def kill():
            killed.append(self.one_broker(KILLED))
            os.kill(killed[-1], signal.SIGKILL)

        def kill_and_look():
            kill()
            self.one_broker(KILLED, but=killed[-1])  # running programs start the next broker, and new ones find it
            code, out, err = run('ibv_devinfo', devices=f'cairn0={KILLED}')
            self.assertEqual((code, err), (0, ''), out)

        self.needs('ibv_devinfo')
        self.pair('ibv_rc_pingpong', '-g', '1', '-c', '-n', '1000', addresses=(KILLED, KILLED), before=kill_and_look,
                  meanwhile=kill)
        self.assertEqual(len(killed), 2)

    def test_a_program_that_is_killed_leaves_nothing_in_the_way(self):
        self.kill_server(KILLED, KILLED)
        for _ in range(3):
            self.pair('ibv_rc_pingpong', '-g', '1', '-n', '100', addresses=(KILLED, KILLED))

    def test_without_a_broker_the_second_is_told(self):
        self.needs('ibv_rc_pingpong')
        port = free_port()
        nowhere = {'CAIRN_BROKER': '/nowhere/cairn-broker'}
        with Ended(['ibv_rc_pingpong', '-g', '1', '-p', str(port)], UNSHARED, **nowhere) as server:
            self.listens(port, server)
            code, out, err = run('ibv_devinfo', devices=f'cairn0={UNSHARED}', **nowhere)
        self.assertNotEqual(code, 0, out)
        self.assertRegex(err, rf'cannot bind UDP {re.escape(UNSHARED)} port 4791: .*cannot be shared: cannot start '
                              r"'/nowhere/cairn-broker': No such file")

    def test_another_users_broker_is_named(self):
        if os.geteuid() != 0 or shutil.which('setpriv') is None:
            self.skipTest('only root can be another user')
        self.needs('ibv_rc_pingpong')
        port = free_port()
        with Ended(['ibv_rc_pingpong', '-g', '1', '-p', str(port)], FOREIGN) as server:
            self.listens(port, server)
            code, out, err = run('setpriv', '--reuid=65534', '--clear-groups', 'ibv_devinfo',
                                 devices=f'cairn0={FOREIGN}')
            self.assertNotEqual(code, 0, out)
            self.assertRegex(err, rf'UDP {re.escape(FOREIGN)} port 4791 belongs to programs of root \(uid 0\): '
                                  rf'their broker is process {self.one_broker(FOREIGN)}')
        for user in ('--reuid=65534', '--reuid=65533', '--reuid=0'):  # at once after the last program
            code, out, err = run('setpriv', user, '--clear-groups', 'ibv_devinfo', devices=f'cairn0={FOREIGN}')
            self.assertEqual((code, err), (0, ''), out)


# A port whose address and interface go and come back. Each line of the watcher answers a step.
NAMESPACE = '''
ip link set lo up && ip addr add {address}/32 dev lo || exit 1
ibv_asyncwatch > "$0" & watcher=$!
await() {{ until [ "$(grep -c . "$0")" -ge "$1" ]; do sleep 0.02; done; }}
await 1
ip addr del {address}/32 dev lo && await 3
ip addr add {address}/32 dev lo && await 5
ip link set lo down && await 6
ip link set lo up && await 7
kill -TERM $watcher && wait $watcher
'''


class Events(DropIn):
    def test_the_watcher_ends_by_a_signal(self):
        self.needs('ibv_asyncwatch')
        with tempfile.TemporaryFile('w+') as said, subprocess.Popen(
                ['ibv_asyncwatch'], env=environment(f'cairn0={SERVER}'), stdout=said, stderr=said) as watcher:
            try:
                for _ in range(SECONDS * 50):
                    said.seek(0)
                    if 'cairn0: async event FD' in said.read() or watcher.poll() is not None:
                        break
                    time.sleep(0.02)
                self.assertIsNone(watcher.poll())
                watcher.send_signal(signal.SIGINT)
                self.assertEqual(watcher.wait(SECONDS), -signal.SIGINT)
            finally:
                watcher.kill()

    def test_what_the_kernel_tells_of_the_port_is_an_event(self):
        for needed_program in ('ibv_asyncwatch', 'ip', 'unshare'):
            self.needs(needed_program)
        if subprocess.run(['unshare', '-Urn', 'true'], capture_output=True, check=False).returncode != 0:
            self.skipTest('namespaces are refused')
        address = '10.99.0.1'
        with tempfile.NamedTemporaryFile('r') as said:
            run('unshare', '-Urn', 'sh', '-c', NAMESPACE.format(address=address), said.name,
                devices=f'cairn0={address}', CAIRN_BROKER='off')
            events = re.findall(r'IBV_EVENT_(\w+)', said.read())
        self.assertEqual(events, ['GID_CHANGE', 'PORT_ERR', 'GID_CHANGE', 'PORT_ACTIVE', 'PORT_ERR', 'PORT_ACTIVE'])


# Programs over rdma_cm: (name, server, client). {s} is the server's address, {p} a port.


# Programs over rdma_cm: (name, server, client). {s} is the server's address, {c} the client's, {p} a port.
CONNECTING = (
    ('rping', 'rping -s -a {s} -p {p} -C 20 -v -V', 'rping -c -a {s} -p {p} -C 20 -v -V'),
    ('ucmatose', 'ucmatose -b {s} -p {p} -c 5 -C 20 -S 1000', 'ucmatose -s {s} -p {p} -c 5 -C 20 -S 1000'),
    ('udaddy', 'udaddy -b {s} -c 3 -C 20', 'udaddy -s {s} -c 3 -C 20'),
    ('rdma_server', 'rdma_server -s {s} -p {p}', 'rdma_client -s {s} -p {p}'),
)
CONNECTING_FULL = (
    *((f'{test} {options}', f'{test} -R -p {{p}} -n 500 {options}', f'{test} -R -p {{p}} -n 500 {options} {{s}}')
      for test, options in (('ib_write_bw', ''), ('ib_write_bw', '-q 4'), ('ib_read_bw', ''), ('ib_atomic_lat', ''),
                            ('ib_send_bw', '-e'), ('ib_send_lat', ''), ('ib_send_bw', '-c UD'))),
    *((f'qperf {test}', 'qperf -lp {p}', f'qperf {{s}} -lp {{p}} -t 1 -cm 1 {test} quit')
      for test in ('rc_bw', 'rc_lat', 'rc_rdma_write_lat')),
    # fio's client sends without being asked, and has no RNR retry, so there is a receive request for each message.
    *((f'fio {verb}', 'fio --name=server --ioengine=rdma --port={p} --rw=read --bs=64k --size=8m --iodepth=128',
       'fio --name=client --ioengine=rdma --hostname={s} --port={p} --bs=64k --size=8m --iodepth=8 --rw=write '
       f'--verb={verb}') for verb in ('write', 'read', 'send')),
    ('mckey', 'mckey -b {s} -m 239.1.2.3 -C 20', 'mckey -s -b {c} -m 239.1.2.3 -C 20'),
    ('rping, many in turn', 'rping -s -P -a {s} -p {p}', 'rping -c -a {s} -p {p} -C 5'),
    ('cmtime', 'cmtime -b {s} -p {p} -c 100', 'cmtime -s {s} -p {p} -c 100'),
)


class Connecting(DropIn):
    def test_programs_connect_and_part(self):
        for row in CONNECTING_FULL if FULL else CONNECTING:
            with self.subTest(name=row[0]):
                self.connect(*row)

    def test_one_listener_behind_another_at_a_shared_address(self):
        """perftest ends its first listener and makes the next one at the same port while its client connects."""
        for number in range(50 if FULL else 2):
            for transport in ('UD', 'RC'):
                with self.subTest(transport=transport, number=number):
                    command = f'ib_send_bw -R -F -p {{p}} -n 100 -c {transport}'
                    self.connect('ib_send_bw', command, command + ' {s}', at=SHARED, to=SHARED)

    def test_a_server_that_is_stopped_for_a_while_is_waited_for(self):
        """An adapter also acknowledges for a program that a debugger has stopped."""
        self.needs('rping')
        port = free_port()
        with Ended(f'rping -s -a {SERVER} -p {port}'.split(), SERVER) as server:
            self.awaits(SERVER, server)
            with Ended(f'rping -c -a {SERVER} -p {port} -C 100000000'.split(), CLIENT) as client:
                for pause in (5, 3) if FULL else (3,):
                    time.sleep(0.5)
                    self.assertEqual((server.poll(), client.poll()), (None, None))
                    server.send_signal(signal.SIGSTOP)
                    time.sleep(pause)
                    server.send_signal(signal.SIGCONT)
                time.sleep(1)
                self.assertEqual((server.poll(), client.poll()), (None, None))

    def test_an_address_without_a_device_is_told_once(self):
        self.needs('rping')
        nowhere = '10.9.8.7'  # an address that no interface has
        for side, address, wanted in (
                ('-s', UNUSED, f'no device has the address {UNUSED}; '
                               f'CAIRN_DEVICES=cairn0={SERVER},cairn1={UNUSED} gives it one'),
                ('-s', nowhere, ''),
                ('-c', nowhere, f'no interface has the address {nowhere}; give an address of this machine'),
                ('-c', SERVER, f'no device has the address 127.0.0.1; '
                               f'CAIRN_DEVICES=cairn0={nowhere},cairn1=127.0.0.1 gives it one')):
            with self.subTest(side=side, address=address):
                devices = f'cairn0={SERVER if side == "-s" else nowhere}'
                bound = ('-I', nowhere) if side == '-c' and address == nowhere else ()
                code, out, err = run('rping', side, '-a', address, *bound, '-C', '1', devices=devices)
                self.assertNotEqual(code, 0, out)
                self.assertEqual(err.count('(cairn): '), 1 if wanted else 0, err)
                self.assertIn(wanted, err)

    @unittest.skipUnless(FULL, 'not in a short run')
    def test_libfabric(self):
        """A server finds itself by the host's name, which resolves to 127.0.0.1 here."""
        for kind in ('msg', 'rdm'):
            with self.subTest(kind=kind):
                options = f'-p {"verbs" if kind == "msg" else "verbs;ofi_rxm"} -e {kind} -d cairn0 -I 10'
                self.connect('fi_pingpong', f'fi_pingpong {options} -B {{p}}', f'fi_pingpong {options} -P {{p}} {{s}}',
                             at='127.0.0.1')

    def test_nobody_is_there(self):
        self.needs('rping')
        code, out, err = run('rping', '-c', '-a', SERVER, '-C', '1', devices=f'cairn0={CLIENT}')
        self.assertNotEqual(code, 0)
        self.assertIn('RDMA_CM_EVENT_UNREACHABLE, error -110', out + err)

    def test_nobody_listens(self):
        self.needs('rping')
        with Ended(['rping', '-s', '-a', SERVER, '-p', '7001'], SERVER) as server:
            self.awaits(SERVER, server)
            code, out, err = run('rping', '-c', '-a', SERVER, '-p', '7002', devices=f'cairn0={CLIENT}')
            self.assertNotEqual(code, 0)
            self.assertIn('RDMA_CM_EVENT_REJECTED, error 8', out + err)
            self.assertIsNone(server.poll())

    def test_a_program_that_was_killed_leaves_nothing_behind(self):
        self.needs('rping')
        with Ended(['rping', '-s', '-a', SERVER, '-p', '7001'], SERVER) as server:
            self.awaits(SERVER, server)
            client = ['rping', '-c', '-a', SERVER, '-p', '7001', '-C', '100000000']
            with Ended(client, CLIENT) as other:
                time.sleep(0.3)
                self.assertIsNone(other.poll())
        self.connect('rping', 'rping -s -a {s} -p 7001 -C 5', 'rping -c -a {s} -p 7001 -C 5')


if __name__ == '__main__':
    chosen = [name for name in sys.argv[3:] if name != '--full']
    unittest.main(argv=[sys.argv[0], *(chosen or ['Connecting', 'Machines'] * FULL)])
