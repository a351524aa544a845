#!/usr/bin/env python3
"""verbs_ruler, as two processes over memif.

    rulers_test.py CASE FOLDER_OF_PROGRAMS

Exit 0 passed, 77 skipped with the reason on stdout, else failed.
"""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../eal'))
from session import end, expect, expect_refused, result_of, run_case  # noqa: E402


def ruler(session):
    return os.path.join(session.folder, 'verbs_ruler')


def asking(session, *own):
    return session.start([session.memif('client')], own, lcores='1', program=ruler(session))


def verbs_pingpong(session):
    """Runs both ways, one client after another with the same echo."""
    echo = session.listen(['echo'], program=ruler(session))
    for way in 'write_imm', 'send', 'write_imm':
        result = result_of(asking(session, way, '0.3'))
        expect(0 < result['p50_us'] <= result['p99_us'], f'{way}: {result}')
    end(echo)


def verbs_bad_input(session):
    """Each bad command line gives one line that names the cause and the remedy, and exit code 2."""
    for own in ([], ['echo', '1'], ['write_imm'], ['send', '0'], ['read', '1']):
        expect_refused(asking(session, *own), 'verbs_ruler', 'write_imm|send SECONDS')


run_case(verbs_pingpong, verbs_bad_input)
