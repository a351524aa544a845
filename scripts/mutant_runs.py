"""Runs a test so that no process of it is left, whether it ends or not."""
import os
import pathlib
import select
import signal
import subprocess
import time


def alive_in(session):
    """The processes of a session, in whatever process group, but for those that have ended."""
    found = []
    for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = stat.read_text(encoding='utf-8', errors='replace').rsplit(')', 1)[1].split()
        except OSError:  # it has ended meanwhile
            continue
        if fields[0] not in 'ZX' and int(fields[3]) == session:
            found.append(int(stat.parent.name))
    return found


def end_session(session):
    while left := alive_in(session):
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def has_ended(process, seconds):
    """Waits for so long, or, with None, for ever. The process stays a zombie, so that nobody gets its number."""
    descriptor = os.pidfd_open(process)
    try:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(None if seconds is None else seconds * 1000))
    finally:
        os.close(descriptor)


def exit_code(command, seconds, **options):
    """Runs the command as a session of its own. Returns its exit code; None if it does not end within that time."""
    process = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, **options)
    try:
        ended = has_ended(process.pid, seconds)
    finally:
        end_session(process.pid)
        process.wait()
    return process.returncode if ended else None
