#!/usr/bin/env python3
"""Checks the messages of commits: a subject such as `area: verb object`, and a body unless the change is small.

    commits.py [RANGE]     a range as git log takes it; without one, the commits after the last change of this file

So a new rule never judges older commits. Exit 0: clean, or there is no history; 1: findings, one line each.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OWN_PATH = 'tests/lint/commits.py'

SUBJECT_COLUMNS, SMALL_LINES = 72, 10
AREA = r'(?:[a-z0-9_.][a-z0-9_.*/-]*|[A-Z]+(?:\.md)?)'  # a folder, a program, or a document at the root
SUBJECT = re.compile(rf'{AREA}(?:, {AREA})*: (\S.*)')
CLAUSE = re.compile(r'(?:who|whoever|whom|whose|what|those|that of)\b', re.I)


def complaints(subject, body, changed):
    """Yields the rules that a message breaks; `changed` is the number of lines that its commit adds and removes."""
    match = SUBJECT.fullmatch(subject)
    if not match:
        yield 'the subject is not `area: verb object`, with areas in lower case'
    elif CLAUSE.match(match.group(1)):
        yield f'the subject begins with "{CLAUSE.match(match.group(1)).group()}": begin with a verb'
    if len(subject) > SUBJECT_COLUMNS:
        yield f'the subject has {len(subject)} columns, {SUBJECT_COLUMNS} are allowed'
    if not body.strip() and changed > SMALL_LINES:
        yield f'{changed} changed lines need a body: why, and how it was checked'


def git(root, *arguments):
    """Returns the output of git, or None if it fails: there may be no history, or no git."""
    try:
        done = subprocess.run(['git', *arguments], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def commits(root, chosen=None):
    """Returns (hash, subject, body, changed lines) of each commit of the range but merges; None without a history.

    Lines of documents do not count: they say themselves what they are for.
    """
    if chosen is None:
        last_change = git(root, 'log', '-1', '--format=%H', '--', OWN_PATH)
        if not last_change:
            return None
        chosen = f'{last_change.strip()}..HEAD'
    log = git(root, 'log', '--no-merges', '--numstat', '--format=%x1e%h%x1f%s%x1f%b%x1f', chosen, '--')
    if log is None:
        return None
    found = []
    for entry in log.split('\x1e')[1:]:
        commit, subject, body, counts = entry.split('\x1f')
        found.append((commit, subject, body, sum(
            int(added) + int(removed) for added, removed, path in re.findall(r'^(\d+)\t(\d+)\t(.*)', counts, re.M)
            if not path.endswith('.md'))))
    return found


def findings(root, chosen=None):
    """Returns a line for each rule that a commit breaks; None without a history."""
    found = commits(root, chosen)
    if found is None:
        return None
    return [f'{commit} {subject}: {complaint}' for commit, subject, body, changed in found
            for complaint in complaints(subject, body, changed)]


def main():
    lines = findings(ROOT, *sys.argv[1:2])
    if lines is None:
        print(f'commits: git shows no history of {sys.argv[1] if sys.argv[1:] else OWN_PATH}; nothing is checked')
        return 1 if sys.argv[1:] else 0
    print(*lines, sep='\n', end='\n' if lines else '')
    return 1 if lines else 0


if __name__ == '__main__':
    sys.exit(main())
