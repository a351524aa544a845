"""Runs a test so that no process of it is left, whether it ends or not, not even a daemon in a session of its own.

    mutant_runs.py SECONDS|ever COMMAND...    prints the exit code, or None if the command does not end in time
"""
import ctypes
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

SET_DEATH_SIGNAL, SET_CHILD_SUBREAPER = 1, 36  # of prctl()


def descendants(ancestor):
    """As far as a look at one process after the other finds them."""
    children = {}
    for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = stat.read_text(encoding='utf-8', errors='replace').rsplit(')', 1)[1].split()
        except OSError:  # it has ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, left = [], [ancestor]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return found


# An orphan becomes a child of this process, which so has children as long as anything is left.
def end_children():
    while True:
        for process in descendants(os.getpid()):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def begin(command):
    process = os.fork()
    if process != 0:
        return process
    try:
        os.setsid()
        nothing = os.open('/dev/null', os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.execvp(command[0], command)
    finally:
        os._exit(127)


def has_ended(process, seconds):
    """Waits for so long, or, with None, for ever."""
    descriptor = os.pidfd_open(process)
    try:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(None if seconds is None else seconds * 1000))
    finally:
        os.close(descriptor)


def run(command, seconds):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    prctl = ctypes.CDLL(None).prctl
    prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    try:
        process = begin(command)
        if not has_ended(process, seconds):
            return None
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_children()


def exit_code(command, seconds, **options):
    """Runs the command. Returns its exit code; None if it does not end within that time."""
    runner = subprocess.Popen([sys.executable, '-I', os.path.realpath(__file__), 'ever' if seconds is None else
                               str(seconds), *map(str, command)], start_new_session=True, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **options)
    try:
        said, _ = runner.communicate()
    finally:
        runner.terminate()
        runner.wait()
    return None if said.strip() == 'None' else int(said or runner.returncode)


if __name__ == '__main__':
    print(run(sys.argv[2:], None if sys.argv[1] == 'ever' else float(sys.argv[1])))
