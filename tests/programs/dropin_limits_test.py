#!/usr/bin/env python3
"""Programs under low limits of the machine: they work, or one line on stderr names the limit to raise.

    dropin_limits_test.py LIBIBVERBS LIBRDMACM
"""
import os
import resource
import subprocess
import sys
import unittest

LIBRARY, RDMACM = (os.path.abspath(path) for path in sys.argv[1:3])
NET = [127, 128 + os.getpid() // 250 % 64, os.getpid() % 250 + 1]  # of this run; others may run at the same time
SECONDS = 60
FAILED = 3
NO_USER = 4
ORDINARY = 65533  # a user, since the kernel does not limit the processes of root

# The objects that programs open one after the other. The limit is set once the libraries are loaded, since loading is
# not our code. A program's own descriptors take the first numbers, as in any program.
PROGRAM = f"""
import ctypes, os, resource, sys
which, limit, more, user = getattr(resource, sys.argv[1], -1), *map(int, sys.argv[2:5])
verbs = ctypes.CDLL('{LIBRARY}')
cm = ctypes.CDLL('{RDMACM}')
for name in ('ibv_get_device_list', 'ibv_open_device', 'ibv_create_comp_channel', 'ibv_alloc_pd', 'ibv_create_cq',
             'ibv_create_qp'):
    getattr(verbs, name).restype = ctypes.c_void_p
cm.rdma_create_event_channel.restype = ctypes.c_void_p
used = 0
if more:
    with open('/proc/self/statm') as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
if user and os.getuid() == 0:
    try:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    except OSError:
        os._exit({NO_USER})
if which >= 0:
    resource.setrlimit(which, (used + limit, used + limit))
def need(made):
    if not made:
        os._exit({FAILED})
    return ctypes.c_void_p(made)
devices = need(verbs.ibv_get_device_list(None))
first = ctypes.c_void_p(ctypes.cast(devices, ctypes.POINTER(ctypes.c_void_p))[0])
context = need(verbs.ibv_open_device(first))
domain = need(verbs.ibv_alloc_pd(context))
channel = need(verbs.ibv_create_comp_channel(context))
queue = need(verbs.ibv_create_cq(context, 16, None, channel, 0))
if which < 0:
    class Wanted(ctypes.Structure):
        _fields_ = [(name, ctypes.c_void_p) for name in ('context', 'sends', 'receives', 'shared')] + [
            (name, ctypes.c_uint32) for name in ('send_wr', 'recv_wr', 'send_sge', 'recv_sge', 'inline')] + [
            ('type', ctypes.c_int), ('signals_all', ctypes.c_int)]
    for _ in range(2):
        if verbs.ibv_create_qp(domain, ctypes.byref(Wanted(None, queue, queue, None, 4, 4, limit, 1, 0, 2, 0))):
            os._exit(0)
    os._exit({FAILED})
events = need(cm.rdma_create_event_channel())
identifier = ctypes.c_void_p()
need(cm.rdma_create_id(events, ctypes.byref(identifier), None, 0x106) == 0)
os._exit(0)
"""


class Limits(unittest.TestCase):
    def try_it(self, which, limit, host, more=False, user=0, stack=None, **environment):
        """Returns the program's exit code and its output. `more`: the limit comes on top of its current use. `user`:
        the program's user, if root runs this test. `stack`: the size of a thread's stack in bytes."""
        def limit_stacks():
            if stack is not None:
                resource.setrlimit(resource.RLIMIT_STACK, (stack, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        address = '{}.{}.{}.{}'.format(*NET, host)
        done = subprocess.run([sys.executable, '-c', PROGRAM, which, str(limit), str(int(more)), str(user)],
                              capture_output=True, text=True, timeout=SECONDS, check=False, preexec_fn=limit_stacks,
                              env={**os.environ, 'CAIRN_DEVICES': f'cairn0={address}', **environment})
        return done.returncode, done.stderr

    def works_or_names(self, remedy, outcome):
        code, said = outcome
        if code == NO_USER:
            self.skipTest('root may become no other user here')
        self.assertIn(code, (0, FAILED), said)
        if code == 0:
            self.assertEqual(said, '')
            return True
        self.assertEqual(said.count('\n'), 1, said)
        self.assertIn('(cairn): ', said)
        self.assertRegex(said, remedy)
        return False

    def test_descriptors(self):
        for name, environment in (('shared', {}), ('alone', {'CAIRN_BROKER': 'off'})):
            works = []
            for limit in range(8, 41):
                with self.subTest(name=name, limit=limit):
                    outcome = self.try_it('RLIMIT_NOFILE', limit, limit, **environment)
                    works.append(self.works_or_names(r'ulimit -n', outcome))
            with self.subTest(name=name):
                self.assertTrue(works and works[-1] and not works[0], works)

    def test_address_space(self):
        works = []
        for mebibytes in (0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 512):
            with self.subTest(mebibytes=mebibytes):
                outcome = self.try_it('RLIMIT_AS', mebibytes << 20, 100, more=True, CAIRN_BROKER='off')
                works.append(self.works_or_names(r'ulimit -v', outcome))
        self.assertTrue(works and works[-1] and not works[0], works)

    def test_address_space_for_stacks(self):
        stack = 1 << 30
        most = resource.getrlimit(resource.RLIMIT_STACK)[1]
        if most not in (resource.RLIM_INFINITY, max(most, stack)):
            self.skipTest('stacks are limited already (ulimit -Hs)')
        outcome = self.try_it('RLIMIT_AS', 256 << 20, 103, more=True, stack=stack, CAIRN_BROKER='off')
        self.assertFalse(self.works_or_names(r'cannot start a thread.*ulimit -v.*ulimit -s', outcome))

    def test_threads(self):
        for name, environment in (('shared', {}), ('alone', {'CAIRN_BROKER': 'off'})):
            with self.subTest(name=name):
                outcome = self.try_it('RLIMIT_NPROC', 0, 102, user=ORDINARY, **environment)
                self.assertFalse(self.works_or_names(r'cannot start a thread.*ulimit -u', outcome))

    def test_pieces(self):
        self.assertEqual(self.try_it('pieces', 32, 101, CAIRN_BROKER='off'), (0, ''))
        said = 'libibverbs (cairn): max_send_sge of 33 is refused; the device has 32 (max_sge)\n'
        self.assertEqual(self.try_it('pieces', 33, 101, CAIRN_BROKER='off'), (FAILED, said))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
