#!/usr/bin/env python3
"""Calls over sockets if the kernel refuses a feature: the refusal is reported or counted, and the calls still work.

    refusals.py CASE FOLDER_OF_PROGRAMS [LIBRARY]
    refusals.py deny SYSTEM_CALL ERRNO PROGRAM ARGUMENT...      runs a program whose system call fails so

Each case is a test of its own: exit 0 passed, 77 skipped with the reason on stdout, else failed.
"""
import ctypes
import errno
import json
import os
import shutil
import struct
import sys

from session import end, expect, expect_refused, run_case, skip
from sockets import SERVER, client, listen, start

IO_URING_SETUP = 425  # on every architecture


def deny(number, error):
    """Makes the system call fail from now on, also after exec (seccomp(2))."""
    load_number, equal, give = 0x20, 0x15, 0x06
    program = b''.join(struct.pack('HBBI', *step) for step in (
        (load_number, 0, 0, 0), (equal, 0, 1, number), (give, 0, 0, 0x50000 | error), (give, 0, 0, 0x7fff0000)))
    steps = ctypes.create_string_buffer(program, len(program))
    filters = ctypes.create_string_buffer(struct.pack('HP', len(program) // 8, ctypes.addressof(steps)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, mode_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0 or libc.prctl(set_seccomp, mode_filter, filters, 0, 0) != 0:
        sys.exit(f'prctl: {os.strerror(ctypes.get_errno())}')


def check_calls(session, *both, **options):
    """Returns the output of both sides, all of whose calls were answered."""
    server = listen(session, *both, **options)
    caller = client(session, '--duration', '0.5', *both, **options)
    out, said = caller.communicate(timeout=40)
    expect(caller.returncode == 0, f'exit code {caller.returncode}: {said}')
    result = json.loads(out)
    expect(result['rate_mops'] > 0 and result['failed'] == 0, f'{result}')
    return said, end(server)


def no_io_uring(session):
    """io_uring is disabled by seccomp or by sysctl (both EPERM), or not in the kernel. Plain system calls are used, and
    the reason is reported."""
    for error, text in ((errno.EPERM, 'Operation not permitted'), (errno.ENOSYS, 'Function not implemented')):
        wrap = [sys.executable, os.path.abspath(__file__), 'deny', str(IO_URING_SETUP), str(error)]
        for mode in ('defer', 'sqpoll'):
            for said in check_calls(session, '--uring', mode, wrap=wrap):
                expect('plain system calls' in said and f'refuses io_uring: {text}' in said, f'{mode}: {said}')


def no_memlock(session):
    """No memory may be locked."""
    wrap = ['prlimit', '--memlock=0:0']
    if os.geteuid() == 0:
        wrap += ['setpriv', '--bounding-set=-ipc_lock', '--inh-caps=-ipc_lock']
    if not all(shutil.which(tool) for tool in ('prlimit', 'setpriv')):
        skip('no prlimit or setpriv here')
    for said in check_calls(session, wrap=wrap):
        expect('over io_uring' in said or 'refuses io_uring' in said, f'does not say how: {said}')


def no_batches(session):
    """The interface takes no GSO: datagrams leave one by one, also those of the first batch, and that is counted."""
    wrap = ['env', f'LD_PRELOAD={sys.argv[3]}', 'ASAN_OPTIONS=verify_asan_link_order=0']
    for path_mtu, bytes_each in (('1024', '32'), ('4096', '100000')):
        both = check_calls(session, '--uring', 'plain', '--path-mtu', path_mtu, '--req', bytes_each, wrap=wrap)
        expect('port_sent_singly' in both[0], f'not counted: {both[0]}')  # the server may have sent single ones only
        expect(all('port_send_failed' not in said for said in both), f'{both}')


def no_steering(session):
    """The kernel lets no program choose among sockets: several workers are refused, one is served."""
    wrap = ['env', f'LD_PRELOAD={sys.argv[3]}', 'ASAN_OPTIONS=verify_asan_link_order=0']
    expect_refused(start(session, '--port', f'uring:{SERVER}', '--server', wrap=wrap, lcores='0,1'), 'cairn-rpcbench',
                   'SO_ATTACH_REUSEPORT_CBPF')
    check_calls(session, wrap=wrap)


if sys.argv[1] == 'deny':
    deny(int(sys.argv[2]), int(sys.argv[3]))
    os.execv(sys.argv[4], sys.argv[4:])
run_case(no_io_uring, no_memlock, no_batches, no_steering)
