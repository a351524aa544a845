"""A filter of system calls for tests, with the refusals of containers and hosted runners."""
import ctypes
import errno
import struct

UNSHARE, SETNS, CLONE3, IO_URING_SETUP, IO_URING_ENTER, IO_URING_REGISTER = 272, 308, 435, 425, 426, 427  # x86-64
# The error of each refused call. Docker hides clone3() so that programs use clone(), whose flags it can see.
NAMESPACES = {UNSHARE: errno.EPERM, SETNS: errno.EPERM}
RINGS = {IO_URING_SETUP: errno.EPERM, IO_URING_ENTER: errno.EPERM, IO_URING_REGISTER: errno.EPERM}
CONTAINER = {**NAMESPACES, **RINGS, CLONE3: errno.ENOSYS}


def refuse(calls):
    """Refuses the system calls from now on, in this process and the programs that it executes."""
    load, equal, ret = 0x20, 0x15, 0x06
    allow, fail = 0x7fff0000, 0x00050000
    filters = [(load, 0, 0, 0)]  # the number of the system call
    for number, reason in calls.items():
        filters += [(equal, 0, 1, number), (ret, 0, 0, fail | reason)]
    filters.append((ret, 0, 0, allow))
    buffer = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *each) for each in filters))
    program = struct.pack('HxxxxxxP', len(filters), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    set_no_new_privileges, set_seccomp, by_filter = 38, 22, 2
    if libc.prctl(set_no_new_privileges, 1, 0, 0, 0) != 0 or libc.prctl(set_seccomp, by_filter, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'no seccomp filter')
